"""`analyze ab`: whether one variant is slower, in its body or only in its tail, and how sure that is."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import Query, SpanQuery
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, TS = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME
TARGETS = ("ttft_s", "e2e_s", "tpot_s", "queue_s", "prefill_s", "decode_s", "duration_s")
SUGGESTED = ("service_version", "model", "provider", "environment", "host")
AT_MOST = 2_000_000
LEAST_TAIL = 2_000
"""Requests per variant for a verdict on P99: 20 beyond it. With 500 no method finds a tail half as long again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AbParams(Params):
    """Parameters of `analyze ab`."""

    variant: tuple[str, ...] = param(
        ("service_version",), "column or attribute, and its values: model=a,b; the first value is the baseline"
    )
    split: str = param("", "compare before and after this time (RFC 3339) instead")
    target: str = param("ttft_s", "duration to compare", choices=TARGETS)
    limit_s: float = param(0.0, "limit of the SLA in seconds; 0: the baseline's own P98", within=(0.0, 86_400.0))
    min_effect: float = param(0.05, "relative difference worth a verdict, either way", within=(0.0, 10.0))
    mode: str = param("final", "live: the experiment still runs, only the sequential test decides",
                      choices=("final", "live"))  # fmt: skip
    resamples: int = param(400, "bootstrap resamples for intervals", within=(50, 10_000))
    seed: int = param(0, "seed of the bootstrap", within=(0, 2**32 - 1))

    @property
    def field(self) -> str:
        """Column or attribute that tells variants apart."""
        return "" if self.split else (self.variant[0].partition("=")[0] if self.variant else "")

    @property
    def values(self) -> tuple[str, ...]:
        """Values asked for, the baseline first; none: the two most frequent."""
        first = self.variant[0].partition("=")[2] if self.variant else ""
        return tuple(value for value in (first, *self.variant[1:]) if value)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of `by` that can be held constant: not the variant itself."""
        return tuple(name for name in self.by if name != self.field)


def inputs(params: AbParams) -> "Mapping[str, Query]":
    """Ask for requests with the target, whether they failed, the variant and the labels."""
    wanted = ("ts", "trace_id", "status", "error_code", "service", params.target, params.field, *SUGGESTED)
    names = dict.fromkeys(name for name in (*wanted, *params.labels) if name)
    return {
        "requests": SpanQuery(
            columns=tuple(n for n in names if SPANS.column(n) is not None),
            attributes=tuple(n for n in names if SPANS.column(n) is None),
            where=params.where,
            requests_only=params.target != "duration_s",
            at_most=AT_MOST,
        )
    }


LABELS = ("service", "variant")
EXCESS = Signal(
    "ab_tail_excess_ratio",
    "",
    "how much more often the variant exceeds the baseline's P99 (1: twice), once the sequential test has decided; "
    "0 before",
    LABELS,
)
P_LIVE = Signal("ab_tail_p", "", "always-valid p-value of the difference in the tail", LABELS)
ATTAINMENT = Signal("ab_sla_difference_ratio", "", "share within the limit, variant minus baseline", LABELS)
WORSE = Trigger(
    "VariantTailWorse",
    EXCESS,
    0.05,
    Severity.WARNING,
    "Variant {variant} exceeds the baseline's P99 more often, by {value} times",
    "variant-tail-worse",
    hold=timedelta(0),
)

FRAMES = {
    "variants": (
        Column("variant", T, "value of the variant; the first one is the baseline"),
        Column("n", N, "requests that state the target and did not fail", "requests"),
        Column("failed", N, "requests that failed", "requests"),
        Column("p50_s", F, "median", "s"),
        Column("p90_s", F, "P90", "s"),
        Column("p99_s", F, "P99 (Harrell-Davis); null below 100 requests", "s"),
        Column("p99_low", F, "lower 95 % limit, minutes resampled", "s"),
        Column("p99_high", F, "upper 95 % limit", "s"),
        Column("sla", F, "share of all requests that succeeded within the limit", "ratio"),
        Column("sla_low", F, "lower 95 % Wilson limit", "ratio"),
        Column("sla_high", F, "upper 95 % Wilson limit", "ratio"),
        Column("design_effect", F, "by how much requests that come together inflate the variance of a share"),
        Column("blocks", N, "blocks of time that were resampled"),
    ),
    "difference": (
        Column("variant", T, "variant that is compared with the baseline"),
        Column("metric", T, "p50_s, p90_s, p99_s, sla, error_ratio, or tail_live: how often P99 is exceeded"),
        Column("estimate", F, "variant minus baseline"),
        Column("ci_low", F, "lower 95 % limit"),
        Column("ci_high", F, "upper 95 % limit"),
        Column("relative", F, "estimate over the baseline's value", "ratio"),
        Column("p", F, "p-value; of tail_live: valid at every look"),
        Column("p_adj", F, "p-value adjusted for all comparisons (Benjamini-Hochberg); null for tail_live"),
        Column("detectable", F, "relative difference that this much data finds in 8 of 10 cases", "ratio"),
        Column("verdict", T, "in words"),
    ),
    "quantiles": (
        Column("variant", T, "variant that is compared with the baseline"),
        Column("tau", F, "quantile"),
        Column("baseline_s", F, "the baseline's", "s"),
        Column("variant_s", F, "the variant's", "s"),
        Column("difference_s", F, "quantile treatment effect", "s"),
        Column("ci_low", F, "lower 95 % limit, of this quantile alone", "s"),
        Column("ci_high", F, "upper 95 % limit", "s"),
    ),
    "looks": (
        Column("variant", T, "variant that is compared with the baseline"),
        Column("ts", TS, "time of the look"),
        Column("n_baseline", N, "requests of the baseline so far", "requests"),
        Column("n_variant", N, "requests of the variant so far", "requests"),
        Column("exceeds_baseline", F, "share of them beyond the threshold", "ratio"),
        Column("exceeds_variant", F, "share of them beyond the threshold", "ratio"),
        Column("p", F, "always-valid p-value so far"),
    ),
}


def run(inputs: Inputs, params: AbParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.ab.answer`."""
    from analytics.ab.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="ab",
    title="Variants compared",
    doc=(
        "Compares variants (--variant model=a,b, any column or attribute; or before and after --split TIME): "
        "quantiles, share within the SLA, errors, and a test of the tail that may be looked at while it runs."
    ),
    params=AbParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(EXCESS, P_LIVE, ATTAINMENT),
    triggers=(WORSE,),
    lookback=timedelta(hours=24),
    every=timedelta(minutes=5),
)
