"""`analyze cache`: how polluted prefix caches are, what another size would give, and how evenly shards are used."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import MetricQuery, Query, RowQuery, SpanQuery
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, TS, B = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME, Kind.BOOL
QUERIES, HITS = "prefix_cache_queries_total", "prefix_cache_hits_total"
AT_MOST = 200_000
"""Requests read for the time of prefill and the balance of engines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheParams(Params):
    """Parameters of `analyze cache`."""

    blocks: int = param(10_000, "blocks of the LRU cache that traces of requests are replayed on", within=(1, 10**9))
    bucket: int = param(300, "seconds of a window", within=(1, 86_400))
    trigger: str = param(
        "baseline",
        "baseline: above the own median + 5 MAD for 3 windows; documents: 0.4 three windows running or a rise by 0.25",
        choices=("baseline", "documents"),
    )
    idle: float = param(
        10.0, "seconds after which what continues a stored block is another request (KV events)", within=(0, 86_400)
    )
    exact_to: int = param(2_000_000, "accesses up to which the curve is exact; more are sampled", within=(1, 10**9))
    rate: float = param(0.1, "share of the blocks a sampled curve rests on", within=(0.001, 1))


def inputs(params: CacheParams) -> "Mapping[str, Query]":
    """Ask for KV events, traced blocks, prefix-cache counters and what prefill cost."""
    named = tuple(pair for pair in params.where if pair[0] in ("service", "instance"))
    service = tuple(pair for pair in params.where if pair[0] == "service")
    return {
        "events": RowQuery(
            "kv_events",
            (
                "ts", "stream", "sequence", "position", "service", "instance", "kind", "block_hashes",
                "parent_block_hash", "tokens", "block_size", "medium",
            ),
            where=named,
        ),
        "blocks": RowQuery(
            "request_blocks", ("ts", "service", "conversation", "block_size", "unit", "block_hashes"), where=service
        ),
        "counters": MetricQuery((QUERIES, HITS), where=named),
        "requests": SpanQuery(
            ("ts", "service", "server_address", "input_tokens", "cached_input_tokens", "prefill_s"),
            where=service,
            requests_only=True,
            at_most=AT_MOST,
        ),
    }  # fmt: skip


POLLUTION = Signal("cache_pollution_index_ratio", "", "CPI of the latest window: share of accesses", ("service",))
EXCESS = Signal(
    "cache_pollution_excess_ratio",
    "",
    "least excess over the trigger's bound in the latest windows; above 0 they all break it",
    ("service",),
)
POLLUTED = Trigger(
    "CachePolluted",
    EXCESS,
    0.0,
    Severity.WARNING,
    "The prefix cache of {service} is polluted: its index is {value} above its bound",
    "cache-polluted",
)

_COUNTS = (
    Column("accesses", N, "block lookups", "blocks"),
    Column("hits", N, "blocks found", "blocks"),
    Column("expired", N, "lookups of a block that was there and was evicted", "blocks"),
    Column("redundant", N, "blocks loaded and evicted unused, or loaded although present", "blocks"),
    Column("cpi", F, "accesses that are expired or redundant, each counted once, over accesses", "ratio"),
    Column("cpi_sum", F, "expired plus redundant over accesses: may exceed 1", "ratio"),
)
FRAMES = {
    "windows": (
        Column("bucket", TS, "start of the window"),
        *_COUNTS,
        Column("pending", N, "blocks loaded, neither used again nor evicted yet", "blocks"),
        Column("conflicts", N, "of the expired: last used by another conversation", "blocks"),
        Column("hit_ratio", F, "hits over accesses", "ratio"),
        Column("ceiling", F, "hit ratio had nothing been evicted", "ratio"),
        Column(
            "basis",
            T,
            "exact: from block hashes (of events: but for redundant); proxy: from counters, cpi is then an upper limit",
        ),
        Column("dominant", T, "largest part: expired, redundant, or cross_session (expired by other conversations)"),
    ),
    "rounds": (Column("round", N, "request of its conversation, from 1"), Column("requests", N, ""), *_COUNTS),
    "curve": (
        Column("blocks", N, "size of an LRU cache", "blocks"),
        Column("hit_ratio", F, "its hit ratio: LRU model", "ratio"),
        Column("gain_doubling", F, "what twice the size adds", "ratio"),
        Column("tokens_saved_per_request", F, "prompt tokens less to prefill per request at twice the size", "tokens"),
        Column("ttft_saved_s", F, "those times the median prefill time per uncached token", "s"),
        Column("bend", B, "the size where the curve bends: beyond it a block adds less than the curve's mean"),
        Column("method", T, "Mattson (exact) or SHARDS-adj (sampled)"),
    ),
    "tiers": (
        Column("medium", T, "where the blocks are"),
        Column("stored", N, "blocks stored", "blocks"),
        Column("removed", N, "blocks removed", "blocks"),
        Column("present", N, "blocks there at the end", "blocks"),
        Column("life_p50_s", F, "median time from store to removal", "s"),
        Column("moved", N, "blocks stored that were in another tier then", "blocks"),
    ),
    "shards": (
        Column("shard", T, "engine: its address"),
        Column("requests", N, "requests it served", "requests"),
        Column("blocks", N, "blocks stored there", "blocks"),
        Column("tokens", N, "prompt tokens it was sent: stands for bytes", "tokens"),
        Column("share", F, "share of the requests, else of the blocks", "ratio"),
        Column("load_cv", F, "standard deviation of the shards' load over its mean"),
        Column("p_hot", F, "chance of that much or more were shards equal; adjusted for their number (BH)"),
        Column("hot", B, "p_hot below 0.01 and a load at least 1.2 times the mean"),
    ),
}


def run(inputs: Inputs, params: CacheParams, window: Window) -> Result:
    """Measure pollution, curve, tiers and shards; empty where no cache was seen."""
    from analytics.cache.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="cache",
    title="Prefix caches",
    doc="How polluted prefix caches are (expired and redundant loads), what hit ratio each size would have, "
    "tiers, and how evenly the engines of a cache are used.",
    params=CacheParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(POLLUTION, EXCESS),
    triggers=(POLLUTED,),
    lookback=timedelta(hours=6),
    every=timedelta(minutes=10),
)
