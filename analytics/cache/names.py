"""Names of the metrics that the tiers of a cache and the age of its blocks are read from."""

HISTOGRAMS = {
    "kv_block_lifetime_seconds": "lifetime",
    "kv_block_idle_before_evict_seconds": "idle_before_evict",
    "kv_block_reuse_gap_seconds": "reuse_gap",
    "kv_connector_reuse_seconds": "reuse_gap (LMCache)",
}
"""Histograms of the age of blocks, and what they are."""
TIMES = (
    "kv_connector_retrieve_seconds", "kv_connector_store_seconds", "kv_remote_get_seconds", "kv_remote_put_seconds",
)  # fmt: skip
"""Histograms of the time of a load or a write."""
COUNTERS = (
    "prefix_cache_queries_total", "prefix_cache_hits_total", "kv_evicted_tokens_total", "prefix_cache_block_hits_total",
    "prefix_cache_block_misses_total", "external_prefix_cache_queries_total", "external_prefix_cache_hits_total",
    "cached_tokens_total", "prompt_tokens_total", "generation_tokens_total", "kv_loaded_back_tokens_total",
    "kv_dropped_tokens_total", "kv_offload_bytes_total", "kv_offload_seconds_total", "kv_prefetched_tokens_total",
    "kv_cache_disk_prefetch_blocks_total", "kv_connector_lookup_tokens_total", "kv_connector_lookup_hit_tokens_total",
    "kv_connector_stored_tokens_total", "kv_connector_retrieved_tokens_total", "kv_remote_operations_total",
    "kv_remote_bytes_total", "kv_store_operations_total", "kv_store_bytes_total", "gateway_cache_hits_total",
    "gateway_cache_misses_total", "response_cache_hits_total", "response_cache_misses_total",
    "response_cache_evictions_total", "kv_tier_queries_total", "kv_tier_hits_total", "kv_tier_bytes_total",
    "kv_tier_seconds_total",
)  # fmt: skip
ROLLED = (
    *COUNTERS,
    *(f"{name}_{part}" for name in (*HISTOGRAMS, *TIMES) for part in ("bucket", "sum", "count")),
)
