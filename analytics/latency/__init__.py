"""`analyze latency`: where the time of requests goes - in which segment, on which span, and how waiting grows."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.latency.names import ATTRIBUTE_SEGMENTS
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import Query, RollupQuery, SpanQuery
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, TS = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME

REQUEST_COLUMNS = (
    "trace_id", "span_id", "ts", "service", "status", "error_code", "server_address", "e2e_s", "duration_s", "ttft_s",
    "queue_s",
)  # fmt: skip
TREE_COLUMNS = (
    "trace_id", "span_id", "parent_span_id", "ts", "duration_s", "name", "kind", "status", "service", "operation",
    "scope", "quality", "ttft_s", "queue_s", "prefill_s", "decode_s", "e2e_s",
)  # fmt: skip
COLD_ATTRIBUTES = ("faas.coldstart",)
HISTOGRAMS = ("ttft", "queue", "prefill", "decode", "inference", "e2e")
"""Stages that engines expose as histograms `<name>_seconds`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyParams(Params):
    """Parameters of `analyze latency`."""

    tau: float = param(0.99, "the tail: requests at or beyond this quantile of end-to-end time", within=(0.5, 0.9999))
    bucket: str = param("auto", "width of the buckets of queue_load: auto, or a duration such as 1m")
    at_most: int = param(
        400_000, "spans to read; of more, those of a random share of the traces", within=(1_000, 100_000_000)
    )


def inputs(params: LatencyParams) -> "Mapping[str, Query]":
    """Ask for the requests, for all spans of their traces, and for what engines say of stages, loads and starts."""
    fields = (*params.by, *(field for field, _ in params.where))
    columns = tuple(name for name in fields if SPANS.column(name) is not None)
    attributes = tuple(dict.fromkeys(name for name in fields if SPANS.column(name) is None))
    extra = tuple(name for name in dict.fromkeys((*COLD_ATTRIBUTES, *attributes)))
    tree = tuple(dict.fromkeys((*ATTRIBUTE_SEGMENTS, *attributes)))
    stages = tuple(f"{name}_seconds_{part}" for name in HISTOGRAMS for part in ("bucket", "count"))
    return {
        "requests": SpanQuery(
            tuple(dict.fromkeys((*REQUEST_COLUMNS, *columns))),
            extra,
            where=params.where,
            requests_only=True,
            at_most=params.at_most,
        ),
        "spans": SpanQuery(tuple(dict.fromkeys((*TREE_COLUMNS, *columns))), tree, at_most=params.at_most),
        "stages": RollupQuery("metrics", (), params.where, None, names=stages),
        "loads": RollupQuery(
            "metrics", (), params.where, None, names=("model_load_seconds", "process_start_time_seconds")
        ),
    }


LABELS = ("service",)
SHARE = Signal("latency_tail_share", "ratio", "share of the tail's time in a segment", (*LABELS, "segment"))
P99 = Signal("latency_segment_p99", "seconds", "P99 of a segment; null below 100 requests", (*LABELS, "segment"))
WAIT = Signal(
    "latency_tail_wait_ratio",
    "",
    "lower limit of the queue's P99 in the latest bucket over the usual time without queue; null below 30 requests",
    LABELS,
)
QUEUED = Trigger(
    "TailWaitsInQueue",
    WAIT,
    3.0,
    Severity.WARNING,
    "The slowest requests of {service} wait in the queue {value} times as long as a request takes",
    "tail-waits-in-queue",
    hold=timedelta(minutes=5),
    keep_firing=timedelta(minutes=15),
)

FRAMES = {
    "segments": (
        Column("segment", T, "part of a request: dns, tcp, tls, model_load, queue, prefill, decode, …; e2e is all"),
        Column("n", N, "requests that state it", "requests"),
        Column("p50_s", F, "median", "s"),
        Column("p99_s", F, "P99; null below 100 requests", "s"),
        Column("p99_low_s", F, "lower 95 % limit of the P99, from order statistics", "s"),
        Column("p99_high_s", F, "upper 95 % limit; null where the sample gives none", "s"),
        Column("mean_s", F, "mean", "s"),
        Column("cv", F, "coefficient of variation: standard deviation over mean"),
        Column("share", F, "share of the time of all requests", "ratio"),
        Column("share_of_p99", F, "share of the time of the requests at or beyond the tail's quantile", "ratio"),
        Column("share_low", F, "lower 95 % limit of that", "ratio"),
        Column("share_high", F, "upper 95 % limit of that", "ratio"),
        Column("tail_s", F, "mean in those requests", "s"),
        Column("n_tail", N, "how many they are", "requests"),
        Column("tail_q", F, "quantile at which they begin"),
    ),
    "critical_path": (
        Column("entry", T, "service in which the trace begins"),
        Column("service", T, "service of the span"),
        Column("span", T, "name of the span"),
        Column("self_s", F, "time that only this span accounts for, all traces together", "s"),
        Column("share", F, "share of the traces' time", "ratio"),
        Column("share_of_p99", F, "the same in the traces at or beyond the tail's quantile of length", "ratio"),
        Column("per_trace_s", F, "self time over the number of traces", "s"),
        Column("spans", N, "spans of that name on the critical path", "spans"),
        Column("traces", N, "traces of this entry", "traces"),
    ),
    "engine_stages": (
        Column("service", T, "service or job of the engine"),
        Column("stage", T, "stage: queue, prefill, decode, inference, ttft, e2e"),
        Column("n", F, "requests observed", "requests"),
        Column("p50", T, "median in words: '0.09 s', '> 60 s', '<= 0.3 s'"),
        Column("p50_s", F, "median, interpolated in its bucket; null where it would be a guess", "s"),
        Column("p99", T, "P99 in words"),
        Column("p99_s", F, "P99, interpolated in its bucket; null where it would be a guess", "s"),
        Column("p99_low_s", F, "lower bound of its bucket", "s"),
        Column("p99_high_s", F, "upper bound of its bucket; null beyond the last", "s"),
    ),
    "cold_starts": (
        Column("kind", T, "model load, request that met a cold start, or first request after a start"),
        Column("what", T, "name of the load, or service of the requests"),
        Column("n", N, "how many"),
        Column("p50_s", F, "median", "s"),
        Column("p90_s", F, "P90", "s"),
        Column("p99_s", F, "P99; null below 100", "s"),
        Column("cv", F, "coefficient of variation"),
        Column("usual_s", F, "median end-to-end time of the other requests, where these are requests", "s"),
    ),
    "queue_load": (
        Column("rate_low", F, "arrivals from", "requests/s"),
        Column("rate_high", F, "arrivals to", "requests/s"),
        Column("buckets", N, "buckets of time with that rate"),
        Column("requests", N, "requests in them", "requests"),
        Column("queue_mean_s", F, "mean time in the queue", "s"),
        Column("queue_p50_s", F, "median", "s"),
        Column("queue_p99_s", F, "P99; null below 100 requests", "s"),
        Column("depth", F, "mean number waiting: arrivals x mean wait (Little 1961)", "requests"),
    ),
    "waits": (
        Column("ts", TS, "start of the bucket"),
        Column("n", N, "requests with a queue time", "requests"),
        Column("queue_p99_s", F, "P99 of the time in the queue", "s"),
        Column("queue_p99_low_s", F, "lower 95 % limit, from order statistics", "s"),
        Column("work_s", F, "usual time of a request without its queue, up to then", "s"),
        Column("ratio", F, "queue_p99_low_s over work_s: what the alert looks at; null below 30 requests"),
    ),
    "queue_growth": (
        Column("knee_rate", F, "median arrival rate, where the two slopes meet", "requests/s"),
        Column("slope_below", F, "seconds of queue per request/s, below the knee", "s"),
        Column("slope_above", F, "the same above", "s"),
        Column("bend", F, "difference of the two", "s"),
        Column("bend_low", F, "lower 95 % limit, errors allowing for autocorrelation", "s"),
        Column("bend_high", F, "upper 95 % limit", "s"),
        Column("n", N, "buckets"),
        Column("verdict", T, "grows faster than the load, no bend found, or why there is no answer"),
    ),
}


def run(inputs: Inputs, params: LatencyParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.latency.answer`."""
    from analytics.latency.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="latency",
    title="Where the time goes",
    doc=(
        "Divides every request into segments (network, queue, prefill, decode, transfer, …), the tail apart; finds the "
        "critical path through span trees; cold starts; how time in the queue grows with the load."
    ),
    params=LatencyParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(SHARE, P99, WAIT),
    triggers=(QUEUED,),
    lookback=timedelta(hours=1),
    every=timedelta(minutes=5),
)
