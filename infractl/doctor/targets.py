"""Targets that are down, slow or half readable, and discovery that fails."""

from collections.abc import Iterator, Mapping
from typing import Any

from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts


def check(facts: Facts) -> Iterator[Advice]:
    """Look at the targets of the running process; without one, at what the store says of their last scrape."""
    for target in facts.targets:
        yield from _live(target)
    for job in facts.discovery:
        yield from _discovered(job)
    if not facts.serving:
        yield from _stored(facts)
    if not facts.series.height and not facts.services.height:
        fact = "no metrics and no requests in the time looked at"
        remedy = "name engines and exporters in infractl.yaml, or send OTLP to port 4318 (HTTP) or 4317 (gRPC):"
        lines = (
            "scrape_configs:",
            "- job_name: vllm",
            "  static_configs:",
            "  - targets: [127.0.0.1:8000]",
            "    labels: {service: chat-api}",
        )
        yield Advice("targets", Severity.WARNING, "this store", fact, remedy, lines)


def _live(target: Mapping[str, Any]) -> Iterator[Advice]:
    subject = f"{target['job']} {target['instance']}"
    if target["up"] is False:
        remedy = target["remedy"] or f"try it by hand: curl -s {target['url']} | head"
        yield Advice("targets", Severity.CRITICAL, subject, f"does not answer: {target['last_error']}", remedy)
    if target["warning"]:
        yield Advice("targets", Severity.WARNING, subject, target["warning"], "see docs/sources/README.md")
    if target["dropped"]:
        fact = f"{target['dropped']} samples lost because the store was busy or failed"
        yield Advice("targets", Severity.CRITICAL, subject, fact, "scrape less often, or give the store a faster disk")


def _discovered(job: Mapping[str, Any]) -> Iterator[Advice]:
    """Tell what discovery of a job could not read or use; targets that were found before are kept."""
    for source in job["sources"]:
        for error in source["errors"]:
            remedy = "mend it; until then the targets found before are scraped"
            yield Advice("targets", Severity.WARNING, f"job {job['job']}", f"{source['kind']}: {error}", remedy)
    for error in job["refused"]:
        yield Advice("targets", Severity.WARNING, f"job {job['job']}", error, "mend its labels or relabel_configs")
    if not job["targets"]:
        fact = f"has no target ({job['dropped']} dropped by relabel_configs)"
        yield Advice(
            "targets", Severity.WARNING, f"job {job['job']}", fact, "name one, or let its relabelling keep one"
        )


def _stored(facts: Facts) -> Iterator[Advice]:
    for row in facts.series.iter_rows(named=True):
        if row["name"] == "up" and row["last_value"] == 0:
            subject = f"{row['job']} {row['instance']}"
            fact = f"did not answer at {row['last_ts']:%Y-%m-%d %H:%M:%S} UTC"
            yield Advice("targets", Severity.CRITICAL, subject, fact, "is it up, and the address right?")
