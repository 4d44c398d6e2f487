"""`analyze engines`: serving engines side by side: from requests, live metrics and files of load tests."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.result import Result
from store.columns import Column, Kind
from store.query import MetricQuery, Query, RowQuery, SpanQuery
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, B = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.BOOL
AT_MOST = 1_000_000
"""Requests read; of more, a share of the traces."""
COLUMNS = (
    "ts", "trace_id", "span_id", "service", "model", "status", "error_code", "input_tokens", "output_tokens", "ttft_s",
    "ttft_source", "tpot_s", "e2e_s",
)  # fmt: skip
TESTS = (
    "run", "stage", "ts", "tool", "engine", "model", "concurrency", "request_rate", "metric", "statistic", "value",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class EnginesParams(Params):
    """Parameters of `analyze engines`."""

    baseline: str = param("", "group to hold the others against (its labels, comma-separated); none: the most requests")
    p99_limit: float = param(2.0, "seconds that the P99 of a load test may take at its best rate", within=(0, 1e6))
    measure: str = param("e2e_s", "what that limit is on", choices=("e2e_s", "ttft_s", "itl_s", "tpot_s"))
    tokens_differ: float = param(0.1, "share by which mean prompt and answer may differ to be compared", within=(0, 10))
    load_differ: float = param(0.25, "the same of requests per second", within=(0, 10))


def inputs(params: EnginesParams) -> "Mapping[str, Query]":
    """Ask for requests, for what engines expose, and for the figures of load tests."""
    from analytics.engines.live import NAMES

    columns = dict.fromkeys((*COLUMNS, *(name for name in params.by if SPANS.column(name) is not None)))
    attributes = tuple(name for name in params.by if SPANS.column(name) is None)
    return {
        "requests": SpanQuery(tuple(columns), attributes, where=params.where, requests_only=True, at_most=AT_MOST),
        "metrics": MetricQuery(NAMES, where=params.where),
        "benchmarks": RowQuery("benchmarks", TESTS, where=params.where),
    }


def _limits(name: str, doc: str) -> tuple[Column, ...]:
    return (
        Column(f"{name}_p50_s", F, f"median {doc}", "s"),
        Column(f"{name}_p95_s", F, f"P95 of {doc}; null below 20 requests", "s"),
        Column(f"{name}_p99_s", F, f"P99 of {doc}; null below 100 requests", "s"),
        Column(f"{name}_p99_low_s", F, "lower 95 % limit of the P99", "s"),
        Column(f"{name}_p99_high_s", F, "upper 95 % limit of the P99; null below 367 requests", "s"),
    )


_RATES = (
    Column("error_ratio", F, "share of requests that failed", "ratio"),
    Column("error_low", F, "lower 95 % limit", "ratio"),
    Column("error_high", F, "upper 95 % limit", "ratio"),
    Column("sent_per_second", F, "requests sent per second of the load", "1/s"),
    Column("requests_per_second", F, "successful requests per second of the load", "1/s"),
    Column("output_tokens_per_second", F, "tokens generated per second of the load", "tokens/s"),
)
FRAMES = {
    "engines": (
        Column("n", N, "requests", "requests"),
        Column("failed", N, "of these, failed: in no latency", "requests"),
        *_RATES,
        Column("input_tokens", F, "mean prompt", "tokens"),
        Column("output_tokens", F, "mean answer", "tokens"),
        Column("models", T, "models that answered"),
        Column("ttft_source", T, "client or server: who measured the time to the first token"),
        *_limits("ttft", "time to the first token"),
        *_limits("tpot", "time per token after the first, a mean per request"),
        *_limits("e2e", "time of the whole answer"),
    ),
    "bands": (
        Column("band", T, "prompt length: up to so many tokens"),
        Column("n", N, "successful requests", "requests"),
        Column("tokens_per_second", F, "median over requests of tokens generated per second of the answer", "tokens/s"),
        Column("tokens_low", F, "lower 95 % limit", "tokens/s"),
        Column("tokens_high", F, "upper 95 % limit", "tokens/s"),
        Column("ttft_p50_s", F, "median time to the first token", "s"),
        Column("tpot_p50_s", F, "median time per token after the first", "s"),
    ),
    "differences": (
        Column("baseline", T, "group held against"),
        Column("group", T, "group that is compared"),
        Column("measure", T, "what is compared"),
        Column("baseline_value", F, "value of the baseline"),
        Column("value", F, "value of the group"),
        Column("estimate", F, "value less that of the baseline"),
        Column("ci_low", F, "lower 95 % limit of it"),
        Column("ci_high", F, "upper 95 % limit of it"),
        Column("p_adj", F, "p of no difference, adjusted over all rows (Benjamini & Hochberg 1995)"),
        Column("verdict", T, "lower, higher, undecided, or why this is no comparison"),
    ),
    "live": (
        Column("service", T, "service"),
        Column("instance", T, "scraped address"),
        Column("model", T, "model"),
        Column("engine", T, "engine, by the names of its metrics"),
        Column("requests_per_second", F, "requests per second", "1/s"),
        Column("output_tokens_per_second", F, "tokens generated per second", "tokens/s"),
        Column("error_ratio", F, "share of requests that the engine failed", "ratio"),
        Column("ttft_p50", T, "median time to the first token, as far as its buckets know"),
        Column("ttft_p99", T, "P99 of it: '> 30 s' lies beyond the last bucket"),
        Column("ttft_p99_s", F, "estimate; null where the buckets give none", "s"),
        Column("ttft_p99_low_s", F, "lower bound of the bucket", "s"),
        Column("ttft_p99_high_s", F, "upper bound of the bucket", "s"),
        Column("itl_p99", T, "P99 of the time between steps"),
        Column("tpot_p99", T, "P99 of a request's mean time per token"),
        Column("e2e_p99", T, "P99 of the whole answer"),
        Column("peak_memory_bytes", F, "highest GPU memory in use that this instance exposes", "By"),
        Column("since_start", B, "scraped once: totals since the engine started"),
        Column("notes", T, "what to know before believing it"),
    ),
    "tests": (
        Column("run", T, "run of a load test"),
        Column("stage", T, "stage or load level within it"),
        Column("tool", T, "tool that measured it"),
        Column("engine", T, "serving engine"),
        Column("model", T, "model"),
        Column("request_rate", F, "requests sent per second, as asked for", "1/s"),
        Column("concurrency", F, "concurrent requests, as asked for", "requests"),
        Column("n", N, "requests that ended", "requests"),
        Column("failed", N, "of these, failed", "requests"),
        *_RATES,
        Column("input_tokens", F, "mean prompt", "tokens"),
        Column("output_tokens", F, "mean answer", "tokens"),
        *(
            Column(f"{name}_{q}_s", F, f"{q.upper()} as the tool states it; null where it does not", "s")
            for name in ("ttft", "itl", "tpot", "e2e")
            for q in ("p50", "p95", "p99")
        ),
        Column("itl_is", T, "what the tool calls inter-token latency"),
    ),
    "best_rate": (
        Column("run", T, "configuration: one run of a load test"),
        Column("tool", T, "tool that measured it"),
        Column("engine", T, "serving engine"),
        Column("model", T, "model"),
        Column("stages", N, "load levels with this P99"),
        Column("best_rate", F, "highest rate whose P99 is within the limit; null: none is", "1/s"),
        Column("p99_s", F, "P99 there", "s"),
        Column("achieved_per_second", F, "requests completed per second there", "1/s"),
        Column("next_rate", F, "next higher rate, which is beyond the limit; null: the test went no higher", "1/s"),
        Column("next_p99_s", F, "P99 there", "s"),
        Column("note", T, "what to know before believing it"),
    ),
}  # fmt: skip


def run(inputs: Inputs, params: EnginesParams, window: Window) -> Result:
    """Put engines side by side; empty without requests, metrics of engines and load tests."""
    from analytics.engines.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="engines",
    title="Serving engines side by side",
    doc="Latency, rates, errors, memory and speed by prompt length of serving engines, from requests, from their live "
    "metrics and from files of load tests; differences with intervals, or why there is no comparison.",
    params=EnginesParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    lookback=timedelta(hours=6),
    every=timedelta(minutes=10),
)
