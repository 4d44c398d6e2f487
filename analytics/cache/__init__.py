"""`analyze cache`: how polluted prefix caches are, what another size would give, and how evenly shards are used."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.cache.columns import FRAMES
from analytics.result import Result, Severity, Signal, Trigger
from store.query import MetricQuery, PriceQuery, Query, RollupQuery, RowQuery, SpanQuery, in_rollups
from store.tables import SPANS
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

QUERIES, HITS = "prefix_cache_queries_total", "prefix_cache_hits_total"
COUNTED = ((QUERIES, HITS), ("prompt_tokens_total", "cached_tokens_total"))
"""Pairs of counters of tokens looked up and found, the better first: SGLang and gateways have the second only."""
AT_MOST = 200_000
"""Requests read for the time of prefill, the balance of engines, and cached tokens."""
PREFIX = "prefix"


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
    gpu_hour: float = param(
        0.0, "price of a GPU hour, to say what less prefill is worth; 0: not known", within=(0, 1e6)
    )
    gpus: int = param(1, "GPUs that one engine computes on", within=(1, 10_000))
    currency: str = param("USD", "currency of --gpu-hour")
    key: tuple[str, ...] = param(
        ("gen_ai.conversation.id", "session.id"),
        "what requests are routed by: attributes of spans, the first that is there, or prefix (first block of a trace)",
    )
    nodes: int = param(128, "virtual nodes per shard of the hash ring", within=(1, 100_000))
    ring_hash: str = param("blake2b", "hash of the ring", choices=("blake2b", "md5", "sha1", "sha256"))
    bytes_per_token: float = param(0.0, "bytes of KV cache per token; 0: not known", within=(0, 1e9))
    versions: str = param("", "attribute of KV events with a version vector {node: count}; empty: none")
    cache_hit: tuple[str, ...] = param(
        ("gen_ai.cache.hit", "llm.cache_hit", "cache_hit"),
        "attributes of spans that say whether a cache of answers (semantic cache) had this one",
    )
    cache_tier: str = param("gen_ai.cache.tier", "attribute that says which tier of it did (document, paragraph, …)")
    score: str = param("quality_score", "attribute of spans with a score of the answer")
    level: str = param("compression_level", "attribute of spans with how far the context was compressed")
    turns: int = param(50, "turns of a window of the quality per compression level", within=(2, 100_000))
    gamma: float = param(0.985, "weight of a turn over that of the next, within such a window", within=(0.01, 1))


def inputs(params: CacheParams) -> "Mapping[str, Query]":
    """Ask for KV events, traced blocks, counters of all tiers, requests and what their prompts cost."""
    from analytics.cache.names import ROLLED

    named = tuple(pair for pair in params.where if pair[0] in ("service", "instance"))
    service = tuple(pair for pair in params.where if pair[0] == "service")
    spans = tuple(pair for pair in params.where if pair[0] != "instance")
    asked: dict[str, Query] = {
        "events": RowQuery(
            "kv_events",
            (
                "ts", "stream", "sequence", "position", "service", "instance", "kind", "block_hashes",
                "parent_block_hash", "tokens", "block_size", "medium", *(("attributes",) if params.versions else ()),
            ),
            where=named,
        ),
        "blocks": RowQuery(
            "request_blocks",
            ("ts", "trace_id", "span_id", "service", "conversation", "block_size", "unit", "block_hashes"),
            where=service,
        ),
        "counters": MetricQuery(tuple(name for pair in COUNTED for name in pair), where=named),
        "series": RollupQuery("metrics", (), named, None, names=ROLLED),
        "requests": _requests(params, spans),
        "prices": PriceQuery(),
    }  # fmt: skip
    if in_rollups(params.by, spans):
        asked["rolled"] = RollupQuery("requests", params.by, spans, 300)
    return asked


COLUMNS = (
    "ts", "trace_id", "span_id", "service", "server_address", "provider", "model", "input_tokens",
    "cached_input_tokens", "prefill_s", "ttft_s", "e2e_s",
)  # fmt: skip


def _requests(params: CacheParams, where: tuple[tuple[str, str], ...]) -> SpanQuery:
    asked = (*params.by, *params.key, *params.cache_hit, params.cache_tier, params.score, params.level)
    named = tuple(dict.fromkeys(name for name in asked if name and name != PREFIX))
    stored = tuple(name for name in named if SPANS.column(name) is not None and name not in COLUMNS)
    attributes = tuple(name for name in named if SPANS.column(name) is None)
    return SpanQuery((*COLUMNS, *stored), attributes, where=where, requests_only=True, at_most=AT_MOST)


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


def run(inputs: Inputs, params: CacheParams, window: Window) -> Result:
    """Measure pollution, curve, tiers, shards and decay; empty where no cache was seen."""
    from analytics.cache.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="cache",
    title="Prefix caches",
    doc="How polluted prefix caches are (expired and redundant loads), what hit ratio each size would have and what "
    "doubling is worth, tiers, how long blocks stay, and how evenly the engines of a cache are used.",
    params=CacheParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(POLLUTION, EXCESS),
    triggers=(POLLUTED,),
    lookback=timedelta(hours=6),
    every=timedelta(minutes=10),
)
