"""Requests without metrics of their service: no driver can be named for them, whatever the metrics show."""

from collections.abc import Iterator

import polars as pl

from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts

_ENGINE = ("requests_running", "requests_waiting", "kv_cache_usage_ratio")


def check(facts: Facts) -> Iterator[Advice]:
    """Compare the services of requests with those of engine metrics."""
    engines = facts.series.filter(pl.col("canonical").is_in(_ENGINE))
    with_metrics = set(engines["service"].drop_nulls())
    instances = set(engines["instance"].drop_nulls())
    asked = facts.services.select("service", "addresses").iter_rows()
    with_requests = {service for service, addresses in asked if service and instances.isdisjoint(addresses or ())}
    if not with_metrics or not with_requests:
        return
    strangers = sorted(with_metrics - with_requests)
    for service in sorted(with_requests - with_metrics):
        fact = f"requests of service {service} meet no engine metrics; metrics name {', '.join(strangers) or 'none'}"
        remedy = "give the scrape job of its engine the label that joins them:"
        yield Advice("joins", Severity.WARNING, service, fact, remedy, (f"labels: {{service: {service}}}",))
