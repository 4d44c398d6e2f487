"""`analyze p99`: how far the tail of latency is above its baseline, and which drivers it is associated with."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.drivers import asked_for
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import MetricQuery, Query, SpanQuery
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, TS = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME

AUTO_COLUMNS = ("input_tokens", "cached_input_tokens")
AUTO_COVARIATES = ("output_tokens",)
"""Adjusted for where the target is a whole answer: as a driver among others, output length hides every other one."""
AUTO_METRICS = (
    "requests_waiting", "requests_running", "kv_cache_usage_ratio", "gpu_utilization_ratio",
    "gpu_pcie_bytes_per_second", "gpu_dram_active_ratio", "cpu_pressure_ratio",
    "host_pressure_ratio", "prefix_cache_hit_ratio",
)  # fmt: skip
"""Candidates of `--drivers auto`. Parts of the target (queue_s, prefill_s, …) only when named: they explain nothing."""


ENGINE_STATE = ("requests_waiting", "requests_running", "kv_cache_usage_ratio", "gpu_utilization_ratio")
FOLLOWS = {"cpu_pressure_ratio": ENGINE_STATE, "host_pressure_ratio": ENGINE_STATE}
"""What follows from a driver that is out of line: stalled CPUs make requests wait, waiting stalls no CPU. So the queue
that goes with them is theirs where a change is split (`analytics.p99.change`)."""
FULL_CACHE = ("kv_cache_usage_ratio", "requests_waiting")
"""One driver where the cache became full: requests then wait for its blocks."""


AT_MOST = 2_000_000
"""Spans read; of more, those of a share of the traces: P99s of windows then rest on fewer requests, and say so."""
WHO = ("service", "server_address", "host")
"""Columns that tell which series of a metric a request sees (analytics.drivers)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class P99Params(Params):
    """Parameters of `analyze p99`."""

    target: str = param("ttft_s", "latency to explain: a numeric span column or an attribute")
    drivers: tuple[str, ...] = param(
        ("auto",),
        "span columns, attributes or metrics, as NAME or NAME{label=value,…}; counters as growth per second; "
        "attr:NAME, metric:NAME if unclear",
    )
    covariates: tuple[str, ...] = param(
        ("auto",), "adjusted for and shown apart; auto: output_tokens for whole answers; none for none"
    )
    tau: float = param(0.99, "quantile to explain", within=(0.01, 0.9999))
    taus: tuple[str, ...] = param(("0.5", "0.9"), "further quantiles to fit, so that effects show as a curve")
    before: str = param(
        "", "what changed since: a part A..B of the window, held against what follows; empty: calm against last episode"
    )
    method: str = param("qr", "qr: quantile regression on requests; ols: on windowed P99s", choices=("qr", "ols"))
    tail_rows: int = param(
        50,
        "requests beyond tau that slopes want; with fewer, a lower quantile is fitted (named drivers: 10 each do)",
        within=(1, 1_000_000),
    )
    bucket: str = param("auto", "width of a window: auto, or a duration such as 1m")
    resamples: int = param(200, "bootstrap resamples for intervals", within=(2, 10_000))
    seed: int = param(0, "seed of the bootstrap", within=(0, 2**32 - 1))


def is_whole_answer(target: str) -> bool:
    """Whether the target includes decoding, so that output length drives it."""
    return target in ("e2e_s", "duration_s", "decode_s", "inference_s")


def wanted_covariates(params: P99Params) -> tuple[str, ...]:
    """Names that are adjusted for: none of them is among the drivers."""
    auto = AUTO_COVARIATES if is_whole_answer(params.target) else ()
    asked = auto if params.covariates == ("auto",) else params.covariates
    return tuple(name for name in asked if name not in params.drivers)


def wanted_drivers(params: P99Params) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Span columns, attribute keys and metric names that the parameters ask for, covariates included."""
    auto = params.drivers == ("auto",)
    columns: list[str] = list(AUTO_COLUMNS) if auto else []
    metrics: list[str] = list(AUTO_METRICS) if auto else []
    attributes: list[str] = []
    for name in (*(() if auto else params.drivers), *wanted_covariates(params)):
        kind, colon, rest = name.partition(":")
        if colon and kind == "attr":
            attributes.append(rest)
        elif colon and kind == "metric":
            metrics.append(rest)
        elif SPANS.column(name) is not None:
            columns.append(name)
        else:
            attributes.append(name)
            metrics.append(name)
    return tuple(dict.fromkeys(columns)), tuple(attributes), tuple(dict.fromkeys(metrics))


def inputs(params: P99Params) -> "Mapping[str, Query]":
    """Ask for the requests with their target, drivers and labels, and for the metrics among the drivers."""
    columns, attributes, metrics = wanted_drivers(params)
    names = ["ts", *WHO, "trace_id", "span_id", *columns]
    extra = list(attributes)
    for name in (params.target, *params.by):
        (names if SPANS.column(name) is not None else extra).append(name)
    stored = SPANS.column(params.target)
    queries: dict[str, Query] = {
        "requests": SpanQuery(
            columns=tuple(dict.fromkeys(names)),
            attributes=tuple(dict.fromkeys(extra)),
            where=params.where,
            not_null=(params.target,) if stored is not None else (),
            requests_only=stored is not None and params.target != "duration_s",
            at_most=AT_MOST,
        )
    }
    if metrics:
        queries["metrics"] = MetricQuery(asked_for(metrics))
    return queries


LABELS = ("service", "target")
LATENCY = Signal("p99_latency", "seconds", "P99 of the latest window; null below 30 requests", LABELS)
BASELINE = Signal("p99_baseline", "seconds", "median P99 of the calm earlier windows; null below 3", LABELS)
RATIO = Signal("p99_baseline_ratio", "", "lower 95 % limit of the latest window's P99 over the baseline", LABELS)
SHARE = Signal(
    "p99_driver_share_ratio", "", "share of the explained tail associated with a driver", (*LABELS, "driver")
)

_SUMMARY = "P99 {target} of {service} is at least {value} times its baseline"
ABOVE = Trigger("P99AboveBaseline", RATIO, 1.5, Severity.WARNING, _SUMMARY, "p99-above-baseline")
FAR_ABOVE = Trigger("P99FarAboveBaseline", RATIO, 3.0, Severity.CRITICAL, _SUMMARY, "p99-above-baseline")

FRAMES = {
    "coefficients": (
        Column("term", T, "driver, covariate, or (intercept)"),
        Column("role", T, "driver, covariate (adjusted for, no share) or intercept"),
        Column("estimate", F, "change of the target's quantile per unit of the driver"),
        Column("ci_low", F, "lower 95 % limit"),
        Column("ci_high", F, "upper 95 % limit"),
        Column("unit", T, "unit of the estimate"),
        Column("per", T, "unit of the driver"),
        Column("effect", F, "change of the quantile as the driver goes from its 10 % to its 90 % quantile"),
        Column("effect_low", F, "lower 95 % limit of that"),
        Column("effect_high", F, "upper 95 % limit of that"),
    ),
    "contributions": (
        Column("driver", T, "driver, or drivers that cannot be told apart"),
        Column("share", F, "Shapley share of the explained tail; shares of a group add up to 1", "ratio"),
        Column("ci_low", F, "lower 95 % limit", "ratio"),
        Column("ci_high", F, "upper 95 % limit", "ratio"),
    ),
    "change": (
        Column("part", T, "driver or covariate, rest (not explained) or total; the parts add up to the total"),
        Column("change", F, "change of the target's quantile tau associated with it"),
        Column("ci_low", F, "lower 95 % limit"),
        Column("ci_high", F, "upper 95 % limit"),
        Column("share", F, "share of the total; null where the quantile hardly moved", "ratio"),
        Column("before", F, "mean of the (first) driver before; of the total: the quantile"),
        Column("after", F, "the same after"),
    ),
    "fit": (
        Column("method", T, "qr or ols"),
        Column("tau", F, "quantile fitted; below the one asked for where the tail is too thin"),
        Column("n", N, "requests (ols: windows) used", "rows"),
        Column("n_tail", N, "requests beyond the quantile: n (1 - tau)", "rows"),
        Column("n_eff", F, "independent windows they amount to"),
        Column(
            "r1",
            F,
            "share of the check loss that the drivers explain beyond the covariates, R1(tau) (ols: R2)",
            "ratio",
        ),
        Column("r1_low", F, "lower 95 % limit", "ratio"),
        Column("r1_high", F, "upper 95 % limit", "ratio"),
        Column("r1_covariates", F, "share that the covariates explain alone; null without covariates", "ratio"),
        Column("coverage", F, "share at or below the quantile in the last quarter, fitted on the rest", "ratio"),
        Column("coverage_error", F, "standard error of that: neighbours in time count as one", "ratio"),
        Column(
            "curvature", F, "held-out check loss that bent instead of straight effects save; null: not checked", "ratio"
        ),
        Column("residual_lag1", F, "lag-1 autocorrelation of the windows' median residual"),
        Column("bucket_s", F, "width of a window", "s"),
        Column("dropped", N, "requests left out", "rows"),
        Column("dropped_reasons", Kind.JSON, "requests left out by reason"),
        Column(
            "verdict", T, "ok, low confidence, not calibrated, non-linear, no driver identified, or why there is no fit"
        ),
    ),
    "vif": (
        Column("driver", T, "driver"),
        Column("vif", F, "variance inflation; null: follows from the other drivers"),
    ),
    "quantiles": (
        Column("tau", F, "quantile fitted"),
        Column("n_tail", N, "requests beyond it", "rows"),
        Column("term", T, "driver or covariate"),
        Column("estimate", F, "change of this quantile per unit of the driver"),
        Column("ci_low", F, "lower 95 % limit"),
        Column("ci_high", F, "upper 95 % limit"),
        Column("effect", F, "change of this quantile as the driver goes from its 10 % to its 90 % quantile"),
        Column("effect_low", F, "lower 95 % limit of that"),
        Column("effect_high", F, "upper 95 % limit of that"),
    ),
    "windows": (
        Column("ts", TS, "start of the window"),
        Column("n", N, "requests", "requests"),
        Column("p50", F, "median of the target"),
        Column("p99", F, "quantile tau of the target (P99 unless --tau says otherwise)"),
        Column("fitted_p99", F, "the same from the model"),
        Column("baseline", F, "median p99 of the earlier windows that were not above the band"),
        Column("low", F, f"lower edge of the expected band: baseline / {ABOVE.bound:g}"),
        Column("high", F, f"upper edge of the expected band: baseline x {ABOVE.bound:g}"),
        Column("p99_low", F, "lower 95 % confidence limit of p99, from order statistics"),
        Column("p99_high", F, "upper 95 % limit; null where the window is too small to have one"),
        Column("ratio", F, "p99_low over baseline: what the alert looks at"),
    ),
    "residuals": (
        Column("ts", TS, "arrival"),
        Column("fitted", F, "fitted quantile"),
        Column("residual", F, "target minus fitted"),
    ),
    "tail": (
        Column("ts", TS, "arrival"),
        Column("trace_id", T, "trace"),
        Column("span_id", T, "span"),
        Column("value", F, "target"),
        Column("fitted", F, "fitted quantile"),
        Column("drivers", Kind.JSON, "driver values"),
    ),
    "episodes": (
        Column("since", TS, "start of the first window above the bound"),
        Column("until", TS, "end of the last one; null while it lasts"),
        Column("severity", T, "worst bound crossed"),
        Column("n", N, "requests", "requests"),
        Column("p99", F, "highest p99 of a window"),
        Column("baseline", F, "baseline at the start"),
        Column("ratio", F, "highest ratio"),
        Column(
            "driver", T, "driver to whose change most of the rise goes, in a fit on the calm requests and this episode"
        ),
        Column("moved", F, "how much of the rise: its part of the change, see frame change"),
        Column("driver_inside", F, "its mean inside"),
        Column("driver_outside", F, "its mean outside"),
    ),
}


def run(inputs: Inputs, params: P99Params, window: Window) -> Result:
    """Answer from frames alone; see `analytics.p99.answer`."""
    from analytics.p99.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="p99",
    title="What drives P99",
    doc=(
        "Fits the tail of a latency on its drivers (quantile regression on requests), shares out what they explain "
        "(Shapley, adding up to 1), and compares each window's P99 with the windows before it."
    ),
    params=P99Params,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(LATENCY, BASELINE, RATIO, SHARE),
    triggers=(ABOVE, FAR_ABOVE),
    lookback=timedelta(hours=24),
    every=timedelta(minutes=5),
)
