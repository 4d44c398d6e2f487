"""Histograms too coarse for what is asked of them: a P99 beyond the last bucket, a limit between two far bounds."""

from collections import defaultdict
from collections.abc import Iterator

import polars as pl

from analytics.metrics.quantiles import AT_LEAST, AT_MOST, quantiles, text, within
from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts

TELLING = 0.01
"""A share that the buckets leave open by more than one point of a hundred cannot be held against an objective."""
_ADD = "add bucket bounds (vLLM 0.33: --custom-histogram-buckets), or send spans: they time every request"
_BY = ("service",)


def check(facts: Facts) -> Iterator[Advice]:
    """Name the quantiles that buckets cannot tell, and the limits asked for that no bound is near to."""
    yield from _beyond(facts)
    for base, buckets in facts.buckets.items():
        yield from _broken(base, buckets)
        if base in facts.limits_s:
            yield from _coarse(base, buckets, facts.limits_s[base])


def _beyond(facts: Facts) -> Iterator[Advice]:
    """Name, by service, the lowest quantiles beyond the last bucket, and P99s within the lowest."""
    beyond: dict[str | None, list[str]] = defaultdict(list)
    within_lowest: dict[str | None, list[str]] = defaultdict(list)
    for base, buckets in facts.buckets.items():
        told = quantiles(buckets, _BY, (0.5, 0.99)).with_columns(text("s").alias("text"))
        for row in told.filter(pl.col("relation") == AT_LEAST).unique("service", keep="first").iter_rows(named=True):
            beyond[row["service"]].append(f"P{row['q'] * 100:.0f} of {base} ({row['text']})")
        for row in told.filter((pl.col("relation") == AT_MOST) & (pl.col("q") == 0.99)).iter_rows(named=True):
            within_lowest[row["service"]].append(f"{base} ({row['text']})")
    for service, names in beyond.items():
        fact = f"beyond the last bucket, no more can be told: {', '.join(names)}"
        yield Advice("histograms", Severity.WARNING, _service(service), fact, _ADD)
    for service, names in within_lowest.items():
        fact = f"P99 within the lowest bucket, all requests look alike: {', '.join(names)}"
        yield Advice("histograms", Severity.INFO, _service(service), fact, _ADD)


def _broken(base: str, buckets: pl.DataFrame) -> Iterator[Advice]:
    flags = buckets.group_by("service", maintain_order=True).agg(pl.col("no_inf", "merged").any())
    for service, no_inf, merged in flags.iter_rows():
        if no_inf:
            fact = f"{base} has no +Inf bucket: what lies beyond its last bound is counted by _count alone, if at all"
            yield Advice("histograms", Severity.WARNING, _service(service), fact, "report it to the exporter's authors")
        if merged:
            fact = f"parts of {base} have different bounds (a rollout?): only those that all have are used"
            yield Advice("histograms", Severity.INFO, _service(service), fact, "give all replicas the same bounds")


def _coarse(base: str, buckets: pl.DataFrame, limit_s: float) -> Iterator[Advice]:
    for row in within(buckets, _BY, limit_s).iter_rows(named=True):
        low, high = row["share_low"], row["share_high"]
        if low is None or (high is not None and high - low <= TELLING):
            continue
        bounds = f"{row['low']:g} s and {row['high']:g} s" if row["high"] is not None else f"{row['low']:g} s and more"
        upper = 1.0 if high is None else high
        fact = (
            f"the share of {base} within {limit_s:g} s lies between {low:.1%} and {upper:.1%}: "
            f"the nearest bounds are {bounds}"
        )
        remedy = f"add a bucket bound at {limit_s:g} s (vLLM 0.33: --custom-histogram-buckets), or send spans"
        yield Advice("histograms", Severity.WARNING, _service(row["service"]), fact, remedy)


def _service(name: str | None) -> str:
    return f"service {name}" if name else "(no service)"
