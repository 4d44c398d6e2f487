"""The frames of `analyze cache`."""

from analytics.result import Frames
from store.columns import Column, Kind

F, N, T, TS, B, M = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME, Kind.BOOL, Kind.MONEY

_COUNTS = (
    Column("accesses", N, "block lookups", "blocks"),
    Column("hits", N, "blocks found", "blocks"),
    Column("expired", N, "lookups of a block that was there and was evicted", "blocks"),
    Column("redundant", N, "blocks loaded and evicted unused, or loaded although present", "blocks"),
    Column("cpi", F, "accesses that are expired or redundant, each counted once, over accesses", "ratio"),
    Column("cpi_sum", F, "expired plus redundant over accesses: may exceed 1", "ratio"),
)
WINDOWS = (
    Column("bucket", TS, "start of the window"),
    *_COUNTS,
    Column("pending", N, "blocks loaded, neither used again nor evicted yet", "blocks"),
    Column("conflicts", N, "of the expired: last used by another conversation", "blocks"),
    Column("hit_ratio", F, "hits over accesses", "ratio"),
    Column("ceiling", F, "hit ratio had nothing been evicted", "ratio"),
    Column(
        "basis",
        T,
        "exact: from block hashes (of events: but for redundant); proxy: from counters, spans: from cached tokens of "
        "requests, and cpi is then an upper limit and accesses are tokens",
    ),
    Column("dominant", T, "largest part: expired, redundant, or cross_session (expired by other conversations)"),
)
ROUNDS = (Column("round", N, "request of its conversation, from 1"), Column("requests", N, ""), *_COUNTS)
SOURCES = (
    Column("source", T, "who says so"),
    Column("looked_up", N, "prompt tokens looked up", "tokens"),
    Column("found", N, "prompt tokens found", "tokens"),
    Column("hit_ratio", F, "found over looked up", "ratio"),
    Column("computed", N, "tokens not found, and those generated: what was written to the cache", "tokens"),
)
CURVE = (
    Column("blocks", N, "size of an LRU cache", "blocks"),
    Column("hit_ratio", F, "its hit ratio: LRU model", "ratio"),
    Column("gain_doubling", F, "what twice the size adds", "ratio"),
    Column("tokens_saved_per_request", F, "prompt tokens less to prefill per request at twice the size", "tokens"),
    Column("ttft_saved_s", F, "those times the median prefill time per uncached token", "s"),
    Column("bend", B, "the size where the curve bends: beyond it a block adds less than the curve's mean"),
    Column("method", T, "Mattson (exact) or SHARDS-adj (sampled)"),
)
DOUBLING = (
    Column("basis", T, "price list: input less cached price; GPU time: prefill time saved at --gpu-hour"),
    Column("provider", T, "provider of the requests"),
    Column("model", T, "model of the requests"),
    Column("blocks", N, "size that is doubled: --blocks", "blocks"),
    Column("tokens_saved_per_request", F, "prompt tokens found instead of computed", "tokens"),
    Column("gpu_s_saved_per_request", F, "GPU seconds less of prefill", "s"),
    Column("currency", T, "currency, ISO 4217"),
    Column("saved_per_million", M, "input less cached price of a million tokens, at the window's end"),
    Column("saved_per_1k_requests", M, "what a thousand requests cost less"),
    Column("requests", N, "requests of this model in the window (scaled where a share was read)", "requests"),
    Column("saved", M, "what the requests of the window would have cost less"),
)
TIERS = (
    Column("medium", T, "where the blocks are, or which cache of answers"),
    Column("source", T, "KV events, counters or spans"),
    Column("unit", T, "of stored, removed, moved, queries and hits: blocks, chunks, tokens or requests"),
    Column("stored", N, "stored"),
    Column("removed", N, "removed"),
    Column("present", N, "there at the end"),
    Column(
        "life_p50_s", F, "median time from store to removal; of those still there as far as seen (Kaplan-Meier)", "s"
    ),
    Column("moved", N, "stored that were in another tier then, or loaded back from this one"),
    Column("queries", N, "looked up"),
    Column("hits", N, "found"),
    Column("hit_ratio", F, "hits over queries", "ratio"),
    Column("hits_low", F, "lower 95 % Wilson limit (of requests only)", "ratio"),
    Column("hits_high", F, "upper 95 % Wilson limit (of requests only)", "ratio"),
    Column("loaded_bytes", F, "read from this tier", "bytes"),
    Column("written_bytes", F, "written to this tier", "bytes"),
    Column("load_s", F, "mean time of a load, from a histogram", "s"),
    Column("load_p99_s", F, "its P99; null where the histogram cannot tell", "s"),
    Column("write_s", F, "mean time of a write, from a histogram", "s"),
    Column("load_bytes_per_second", F, "bytes read over the time that reading took", "bytes/s"),
    Column("hit_latency_p50_s", F, "median latency of requests answered from it", "s"),
    Column("miss_latency_p50_s", F, "median latency of the others", "s"),
)
SHARDS = (
    Column("shard", T, "engine: its address"),
    Column("requests", N, "requests it served", "requests"),
    Column("blocks", N, "blocks stored there", "blocks"),
    Column("tokens", N, "prompt tokens it was sent", "tokens"),
    Column("bytes", F, "blocks times their tokens times --bytes-per-token; null where these are not known", "bytes"),
    Column("share", F, "share of the requests, else of the blocks; null of a single shard", "ratio"),
    Column("load_cv", F, "standard deviation of the shards' load over its mean"),
    Column("p_hot", F, "chance of that much or more were shards equal; adjusted for their number (BH)"),
    Column("hot", B, "p_hot below 0.01 and a load at least 1.2 times the mean"),
    Column(
        "conflicts", N, "blocks whose version here and elsewhere does not know the other; null: no versions", "blocks"
    ),
)
RING = (
    Column("shard", T, "engine: its address"),
    Column("arc", F, "share of the ring that is this shard's: expected of equal keys", "ratio"),
    Column("by_ring", F, "share of the requests if every key sat where the ring says", "ratio"),
    Column("observed", F, "share of the requests that have a key", "ratio"),
    Column("keys", N, "keys seen there"),
    Column("moved_keys", N, "of these, keys that the ring has elsewhere; null where the ring is not the router's"),
    Column("moved_requests", N, "requests of those", "requests"),
)
NODES = (
    Column("nodes", N, "virtual nodes per shard"),
    Column("arc_cv", F, "load CV of the ring alone: equal keys without end"),
    Column("keys_cv", F, "load CV of the keys seen, were they placed by this ring"),
    Column("observed_cv", F, "load CV observed"),
    Column("even_cv", F, "load CV of the keys seen, placed by chance on a perfectly even ring: the keys' own part"),
)
DECAY = (
    Column("source", T, "what was fitted: KV events, traced requests, or a quality by turn"),
    Column("step", T, "unit of step and tau: s, accesses or turns"),
    Column("r0", F, "retention at step 0", "ratio"),
    Column("r0_low", F, "lower 95 % limit", "ratio"),
    Column("r0_high", F, "upper 95 % limit", "ratio"),
    Column("a", F, "share of r0 that is lost in the end", "ratio"),
    Column("a_low", F, "lower 95 % limit", "ratio"),
    Column("a_high", F, "upper 95 % limit", "ratio"),
    Column("tau", F, "steps until 63 % of the loss"),
    Column("tau_low", F, "lower 95 % limit (profile)"),
    Column("tau_high", F, "upper 95 % limit (profile)"),
    Column("n", N, "observations fitted"),
    Column("rmse", F, "root mean square residual", "ratio"),
    Column("verdict", T, "fitted, or why not"),
)
RETENTION = (
    Column("source", T, "KV events, or traced requests"),
    Column("step", F, "age at which it holds: seconds since stored, or accesses since the last use"),
    Column("at_risk", N, "blocks seen at that age", "blocks"),
    Column("retention", F, "share still there (Kaplan-Meier)", "ratio"),
    Column("low", F, "lower 95 % limit", "ratio"),
    Column("high", F, "upper 95 % limit", "ratio"),
)
REUSE = (
    Column("what", T, "lifetime of a block, idle_before_evict, reuse_gap, or reuse_distance"),
    Column("source", T, "counters (a sample of the engine's blocks), KV events, or traced requests"),
    Column("unit", T, "s, or blocks"),
    Column("n", N, "observed"),
    Column("p50", F, "median"),
    Column("p90", F, "P90"),
    Column("p99", F, "P99; null where the histogram or the censoring cannot tell"),
    Column("p99_above", F, "it is above this, where P99 is null"),
)
COMPRESSION = (
    Column("level", T, "compression level: --level"),
    Column("turns", N, "turns (requests) with a score", "requests"),
    Column("windows", N, "windows of --turns turns"),
    Column("quality", F, "mean over the windows of the exponentially weighted score"),
    Column("quality_low", F, "lower 95 % limit (Student t over windows)"),
    Column("quality_high", F, "upper 95 % limit"),
    Column("quality_cost", F, "quality less that of the least compressed level"),
    Column("ttft_s", F, "mean over the windows of the exponentially weighted TTFT", "s"),
    Column("ttft_cost_s", F, "ttft_s less that of the least compressed level", "s"),
)
FRAMES: Frames = {
    "windows": WINDOWS,
    "sources": SOURCES,
    "rounds": ROUNDS,
    "curve": CURVE,
    "doubling": DOUBLING,
    "tiers": TIERS,
    "shards": SHARDS,
    "ring": RING,
    "nodes": NODES,
    "decay": DECAY,
    "retention": RETENTION,
    "reuse": REUSE,
    "compression": COMPRESSION,
}
