"""`analyze stream`: how evenly answers arrive: jitter, stalls, time per token, goodput, the worst streams."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.given_up import ABORTED
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import Choice, Query, RollupQuery, RowQuery, SpanQuery, in_rollups
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, TS, B = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME, Kind.BOOL
COLUMNS = (
    "ts", "trace_id", "span_id", "service", "model", "request_id", "status", "error_code", "finish_reason", "ttft_s",
    "tpot_s", "e2e_s", "output_tokens",
)  # fmt: skip
CONNECTS = ("connect", "tcp.connect", "http.connect")
"""Names of spans that open a connection: their length is one round trip."""
AT_MOST = 1_000_000
"""Requests read where rollups cannot answer; of more, a share of the traces."""
RAW_UP_TO = 500_000
"""Spans of a window, however long, that is read row by row."""
FINE_FOR = timedelta(days=4)
"""Longest window whose rollups are read in steps of five minutes; longer ones by the hour."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamParams(Params):
    """Parameters of `analyze stream`."""

    ttft_limit: float = param(
        2.0, "seconds to the first token that a request may take to count as good", within=(0, 1e6)
    )
    tpot_limit: float = param(0.1, "seconds per later token", within=(0, 1e6))
    e2e_limit: float = param(0.0, "seconds for the whole answer; 0: any", within=(0, 1e6))
    worst: int = param(5, "streams whose gaps are shown", within=(0, 100))


def inputs(params: StreamParams) -> "Mapping[str, Query | Choice]":
    """Ask for the arrivals of tokens and for the requests they belong to, or for the rollups of both."""
    columns = dict.fromkeys((*COLUMNS, *(name for name in params.by if SPANS.column(name) is not None)))
    attributes = (ABORTED, *(name for name in params.by if SPANS.column(name) is None))
    requests = SpanQuery(
        tuple(columns), tuple(dict.fromkeys(attributes)), where=params.where, requests_only=True, at_most=AT_MOST
    )
    arrivals = RowQuery(
        "token_arrivals", ("ts", "trace_id", "span_id", "measured_by", "offsets_us", "tokens", "paints_us")
    )
    round_trips = SpanQuery(("ts", "duration_s"), where=tuple(("name", name) for name in CONNECTS))
    if not in_rollups(params.by, params.where):
        return {"requests": requests, "round_trips": round_trips, "arrivals": arrivals}
    return {  # both choose alike: by the length of the window and the spans in it
        "requests": Choice(requests, lambda _: {}, RAW_UP_TO),
        "round_trips": Choice(round_trips, lambda _: {}, RAW_UP_TO),
        "arrivals": Choice(arrivals, lambda window: rollups(params, window), RAW_UP_TO),
    }


def rollups(params: StreamParams, window: Window) -> "Mapping[str, RollupQuery]":
    """Ask for sums of the gaps by bucket, and for the histograms of gaps and of time per token."""
    step_s = 300 if window.span <= FINE_FOR else 3600
    quantiles = (0.5, 0.99)
    return {
        "sums": RollupQuery("requests", params.by, params.where, step_s),
        "gaps": RollupQuery("latency", params.by, params.where, step_s, ("gap_s",), quantiles),
        "whole": RollupQuery("latency", params.by, params.where, None, ("gap_s", "tpot_s"), quantiles),
    }


STALLS = Signal(
    "stalled_stream_low_ratio",
    "",
    "lower 95 % limit of the share of the latest bucket's streams that stalled",
    ("service",),
)
USUAL = Signal(
    "stalled_stream_excess_ratio",
    "",
    "that limit over the upper limit of the share in the buckets before",
    ("service",),
)
GOODPUT = Signal("goodput_ratio", "", "share of the requests that met every limit", ("service",))
STALLING = Trigger(
    "StreamsStall",
    USUAL,
    1.5,
    Severity.WARNING,
    "Streams of {service} stall {value} times as often as before",
    "streams-stall",
)
GAP = Signal("stream_gap_p99", "seconds", "P99 of the gaps of the latest bucket's streams", ("service",))
GAPS = Signal(
    "stream_gap_ratio",
    "",
    "lower limit of that P99 over the median of the calm buckets before; null: too few streams",
    ("service",),
)
SLOWER = Trigger(
    "StreamsSlower",
    GAPS,
    1.5,
    Severity.WARNING,
    "Slowest gaps in streams of {service} are at least {value} times as long as before",
    "streams-slower",
)

_SPREAD = (
    Column("ji", F, "jitter index: standard deviation of the gaps over their mean; null below 3 gaps"),
    Column("tiav", F, "variance of the gaps", "s²"),
)


def _limits(name: str, unit: str = "") -> tuple[Column, Column]:
    end = f"_{unit}" if unit else ""
    return (
        Column(f"{name}_low{end}", F, "lower 95 % limit; null where streams, or minutes, are too few", unit),
        Column(f"{name}_high{end}", F, "upper 95 % limit", unit),
    )


FRAMES = {
    "requests": (
        Column("request_id", T, "request, else its trace"),
        Column("ts", TS, "start of the request"),
        Column("events", N, "arrivals with tokens, repeated ones left out", "events"),
        Column("tokens", N, "tokens that arrived", "tokens"),
        *_SPREAD,
        Column("ji_token", F, "jitter index of the gaps per token: an event of n tokens counts n times a gap of g/n"),
        Column("decode_share", F, "last arrival less first, over last arrival: 1 - TTFT / E2E", "ratio"),
        Column("ftlts", F, "the same by its other name, first-to-last-token skew", "ratio"),
        Column("half_time_skew", F, "when half of the tokens were there, as a share of the stream, less 0.5"),
        Column("ttft_s", F, "arrival of the first event with a token", "s"),
        Column("tpot_s", F, "time per token after the first", "s"),
        Column("itl_max_s", F, "longest gap", "s"),
        Column("stalls", N, "gaps over 0.2 s and over five times the median gap"),
        Column("cancelled", B, "the client gave it up: no success, and in no mean"),
        Column("frame_jitter", F, "jitter index of the frames of a browser that showed new text"),
        Column("frame_gap_max_s", F, "longest time between two such frames", "s"),
        Column("trace_id", T, "trace of the request"),
    ),
    "groups": (
        Column("n", N, "streams with arrivals", "requests"),
        Column("jittered", N, "of these, with three gaps or more: what jitter rests on", "requests"),
        Column("cancelled", N, "streams given up", "requests"),
        Column("tokens_per_event", F, "mean; where it differs, jitter cannot be compared", "tokens"),
        Column("ji_p50", F, "median jitter index"),
        *_limits("ji_p50"),
        Column("ji_p99", F, "P99 of it; null below 100 streams"),
        *_limits("ji_p99"),
        Column("ji_pooled", F, "of all gaps, each about the mean of its own stream"),
        *_limits("ji_pooled"),
        Column("ji_overall", F, "of all gaps about their common mean: streams of unequal speed add to it"),
        *_limits("ji_overall"),
        Column("gaps", N, "gaps of these streams: what ITL rests on"),
        Column("itl_p50_s", F, "median gap between events", "s"),
        *_limits("itl_p50", "s"),
        Column("itl_p99_s", F, "P99 of the gaps", "s"),
        *_limits("itl_p99", "s"),
        Column("itl_token_p50_s", F, "median time per token of a gap", "s"),
        Column("itl_token_p99_s", F, "P99 of it", "s"),
        Column("tpot_s", F, "median time per token after the first", "s"),
        Column("stalls", N, "stalls in all of them"),
        Column("stalled_ratio", F, "share of streams with a stall", "ratio"),
        Column("stalled_low", F, "lower 95 % limit", "ratio"),
        Column("stalled_high", F, "upper 95 % limit", "ratio"),
        Column(
            "goodput_ratio",
            F,
            "share of requests within every limit; failed and given up ones are not",
            "ratio",
        ),
        Column("goodput_low", F, "lower 95 % limit", "ratio"),
        Column("goodput_high", F, "upper 95 % limit", "ratio"),
        Column("goodput_per_second", F, "such requests per second of the window", "1/s"),
        Column("comparable", T, "yes, or why this group's jitter is not to be held against the others'"),
    ),
    "timeline": (
        Column("ts", TS, "start of the bucket"),
        Column("streams", N, "streams that began in it", "requests"),
        Column("itl_p50_s", F, "median of their median gaps", "s"),
        Column("itl_p99_s", F, "P99 of their longest gaps", "s"),
        Column("stalled_ratio", F, "share with a stall", "ratio"),
        Column("stalls", N, "stalls in them"),
        Column("gaps", N, "gaps of these streams"),
        Column("gap_p50_s", F, "median of all of them, within 1 %", "s"),
        Column("gap_p99_s", F, "P99 of all of them, within 1 %", "s"),
        Column("gap_p99_low_s", F, "its lower 95 % limit: gaps of a stream, or of one moment, count as fewer", "s"),
        Column("baseline_s", F, "median P99 of the calm buckets before; null below 5 with 20 streams each", "s"),
        Column(
            "gap_ratio", F, "gap_p99_low_s, or P99 less twice their spread, over baseline_s: what the alert looks at"
        ),
    ),
    "worst_gaps": (
        Column("trace_id", T, "one of the streams with the longest gap"),
        Column("at_s", F, "arrival after the start of the request", "s"),
        Column("gap_s", F, "time since the arrival before", "s"),
        Column("tokens", N, "tokens of the event", "tokens"),
    ),
    "chunk_advice": (
        Column("policy", T, "fixed 16 KiB or adaptive"),
        Column("first_packet_s", F, "mean time until the first chunk is full and across", "s"),
        Column("throughput_use", F, "bytes sent over what the link could have carried in that time", "ratio"),
        Column("chunk_bytes", F, "mean size of a chunk", "By"),
        Column("n", N, "round trips replayed"),
    ),
}


def run(inputs: Inputs, params: StreamParams, window: Window) -> Result:
    """Measure every stream and its groups, or of rollups what they say; empty without arrivals."""
    if not {"requests", "arrivals"} <= inputs.keys():
        from analytics.stream import rolled

        return rolled.answer(inputs, params, window)
    from analytics.stream.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="stream",
    title="Streams and their jitter",
    doc="How evenly the tokens of streamed answers arrive: jitter, stalls, time per token, goodput, the worst streams, "
    "and what chunk size their round trips would suggest.",
    params=StreamParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(STALLS, USUAL, GOODPUT, GAP, GAPS),
    triggers=(STALLING, SLOWER),
    lookback=timedelta(hours=6),
    every=timedelta(minutes=5),
)
