"""`analyze overview`: requests, errors, latency and tokens per service, and which targets answer."""

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.result import Result, Severity, Signal, Status, Trigger
from store.columns import Column, Kind
from store.query import Choice, MetricQuery, Query, RollupQuery, SpanQuery, in_rollups
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, TS = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME
COLUMNS = (
    "ts", "service", "trace_id", "status", "error_code", "ttft_s", "e2e_s", "input_tokens", "output_tokens",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class OverviewParams(Params):
    """Parameters of `analyze overview`."""

    bucket: str = param("auto", "width of a bucket: auto, or a duration such as 1m")


def inputs(params: OverviewParams) -> "Mapping[str, Query | Choice]":
    """Ask for all model requests of the window, or their rollups, and for `up`, which every scrape writes."""
    columns = dict.fromkeys((*COLUMNS, *(name for name in params.by if SPANS.column(name) is not None)))
    attributes = tuple(name for name in params.by if SPANS.column(name) is None)
    raw = SpanQuery(tuple(columns), attributes, where=params.where, requests_only=True)
    rolled = params.bucket in ("auto", *STEPS) and in_rollups(params.by, params.where)
    requests = Choice(raw, lambda window: rollups(params, window)) if rolled else raw
    return {"requests": requests, "up": MetricQuery(("up",))}


STEPS = {"5m": 300, "1h": 3600}


def rollups(params: OverviewParams, window: Window) -> "Mapping[str, RollupQuery]":
    """Ask for totals and buckets of requests, and for the histograms of both latencies."""
    step_s = STEPS.get(params.bucket) or (300 if window.span <= timedelta(days=4) else 3600)
    latency = RollupQuery("latency", params.by, params.where, None, ("ttft_s", "e2e_s"), (0.5, 0.99))
    return {
        "rolled_requests": RollupQuery("requests", (*params.by, "error_code"), params.where, step_s),
        "rolled_latency": replace(latency, step_s=step_s),
        "total_latency": latency,
    }


RATE = Signal("request_rate", "", "requests per second in the latest bucket", ("service",))
ERRORS = Signal("error_ratio", "", "share of requests of the latest bucket that failed", ("service",))
ERRORS_LOW = Signal("error_low_ratio", "", "lower 95 % Wilson limit of the error ratio", ("service",))
UP = Signal("target_up", "", "1: the target's latest scrape worked; 0: it did not", ("job", "instance"))

_ERRORS = "At least {value} of requests to {service} fail"
HIGH_ERRORS = Trigger("HighErrorRatio", ERRORS_LOW, 0.05, Severity.WARNING, _ERRORS, "high-error-ratio")
VERY_HIGH_ERRORS = Trigger("VeryHighErrorRatio", ERRORS_LOW, 0.20, Severity.CRITICAL, _ERRORS, "high-error-ratio")
_DOWN = "Target {instance} of job {job} does not answer"
DOWN = Trigger("TargetDown", UP, 0.5, Severity.CRITICAL, _DOWN, "target-down", above=False)

_LATENCIES = (
    Column("ttft_p50_s", F, "median time to first token", "s"),
    Column("ttft_p99_s", F, "P99 of the time to first token", "s"),
    Column("e2e_p50_s", F, "median end-to-end latency", "s"),
    Column("e2e_p99_s", F, "P99 of the end-to-end latency", "s"),
)
FRAMES = {
    "services": (
        Column("requests", N, "requests", "requests"),
        Column("requests_per_second", F, "requests over the length of the window", "1/s"),
        Column("errors", N, "requests that failed", "requests"),
        Column("error_ratio", F, "errors over requests", "ratio"),
        Column("error_ratio_low", F, "lower 95 % Wilson limit", "ratio"),
        Column("error_ratio_high", F, "upper 95 % Wilson limit", "ratio"),
        *_LATENCIES,
        Column("input_tokens", N, "prompt tokens", "tokens"),
        Column("output_tokens", N, "generated tokens", "tokens"),
        Column("output_tokens_per_second", F, "generated tokens over the length of the window", "tokens/s"),
        Column("last_ts", TS, "arrival of the latest request"),
    ),
    "timeline": (
        Column("ts", TS, "start of the bucket"),
        Column("requests", N, "requests", "requests"),
        Column("errors", N, "requests that failed", "requests"),
        Column("error_ratio", F, "errors over requests", "ratio"),
        Column("error_ratio_low", F, "lower 95 % Wilson limit", "ratio"),
        *_LATENCIES,
    ),
    "targets": (
        Column("job", T, "scrape job"),
        Column("instance", T, "scraped address"),
        Column("up", F, "1: the latest scrape worked; 0: it did not; null: none for five minutes"),
        Column("last_ts", TS, "time of the latest scrape"),
        Column("since", TS, "start of the state it is in, as far as the window shows"),
    ),
}


def run(inputs: Inputs, params: OverviewParams, window: Window) -> Result:
    """Summarise; status empty where there are neither requests nor targets."""
    from analytics import overview_rolled as rolled
    from analytics import overview_services as services
    from analytics import overview_targets as targets

    raw = inputs.get("requests")
    found = rolled.summarise(inputs, params, window) if raw is None else services.summarise(raw, params, window)
    scraped = targets.summarise(inputs["up"], window)
    nothing = found.services.height == 0 and scraped.height == 0
    return Result(
        analysis="overview",
        status=Status.EMPTY if nothing else Status.OK,
        window=window,
        params=asdict(params),
        frames={"services": found.services, "timeline": found.timeline, "targets": scraped},
        samples=services.samples(found, params) | {UP.name: targets.samples(scraped)},
        findings=(*services.findings(found, params), *targets.findings(scraped)),
        notes=found.notes,
    )


ANALYSIS = Analysis(
    name="overview",
    title="Services and targets",
    doc="Requests, errors, latency and tokens of every service over the window and over time; targets up or down.",
    params=OverviewParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(RATE, ERRORS, ERRORS_LOW, UP),
    triggers=(HIGH_ERRORS, VERY_HIGH_ERRORS, DOWN),
)
