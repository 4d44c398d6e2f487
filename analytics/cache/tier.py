"""Which counters say what of each tier of a cache: declared once, read in `tiers`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

TOKENS, BLOCKS, REQUESTS = "tokens", "blocks", "requests"
CHUNKS = "chunks"


@dataclass(frozen=True, slots=True)
class Count:
    """A counter by canonical name, and the labels (regular expressions) that its series must have."""

    name: str
    where: Mapping[str, str] | None = None

    def of(self, grown: pl.DataFrame) -> float | None:
        """Add up its series; None where there is none."""
        labels = [pl.col(name).str.contains(f"^(?:{text})$") for name, text in (self.where or {}).items()]
        found = grown.filter(pl.col("name") == self.name, *labels)
        return float(found["increase"].sum()) if found.height else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Which counters say what of a tier. Without `queries`, hits and `misses` make them."""

    medium: str
    unit: str = TOKENS
    queries: Count | None = None
    hits: Count | None = None
    misses: Count | None = None
    stored: Count | None = None
    removed: Count | None = None
    moved: Count | None = None
    loaded_bytes: Count | None = None
    written_bytes: Count | None = None
    loading_s: Count | None = None
    load: str = ""
    write: str = ""
    each: str = ""

    def parts(self, grown: pl.DataFrame) -> list[tuple["Tier", pl.DataFrame]]:
        """Return the tier with its series; one for each value of the label `each` where it has one."""
        if not self.each or self.queries is None:
            return [(self, grown)]
        values = grown.filter(pl.col("name") == self.queries.name)[self.each].drop_nulls().unique().sort()
        return [
            (replace(self, medium=f"{self.medium} {text}"), grown.filter(pl.col(self.each) == text)) for text in values
        ]


_LOAD, _STORE = {"direction": "load"}, {"direction": "store"}
_GET, _PUT = {"operation": ".*(?:get|load|read).*"}, {"operation": ".*(?:put|store|write).*"}
TIERS = (
    Tier(
        medium="device",
        queries=Count("prefix_cache_queries_total"),
        hits=Count("prefix_cache_hits_total"),
        removed=Count("kv_evicted_tokens_total"),
    ),
    Tier(
        medium="device",
        unit=BLOCKS,
        hits=Count("prefix_cache_block_hits_total"),
        misses=Count("prefix_cache_block_misses_total"),
    ),
    Tier(
        medium="connector",
        queries=Count("external_prefix_cache_queries_total"),
        hits=Count("external_prefix_cache_hits_total"),
    ),
    Tier(
        medium="host",
        hits=Count("cached_tokens_total", {"source": "host|cpu"}),
        moved=Count("kv_loaded_back_tokens_total"),
        removed=Count("kv_dropped_tokens_total"),
        loaded_bytes=Count("kv_offload_bytes_total", _LOAD),
        written_bytes=Count("kv_offload_bytes_total", _STORE),
        loading_s=Count("kv_offload_seconds_total", _LOAD),
    ),
    Tier(
        medium="offload tier",
        unit=CHUNKS,
        each="medium",
        queries=Count("kv_tier_queries_total"),
        hits=Count("kv_tier_hits_total"),
        loaded_bytes=Count("kv_tier_bytes_total", _LOAD),
        written_bytes=Count("kv_tier_bytes_total", _STORE),
        loading_s=Count("kv_tier_seconds_total", _LOAD),
    ),
    Tier(
        medium="storage",
        hits=Count("cached_tokens_total", {"source": "disk|storage.*|nvme|file"}),
        moved=Count("kv_prefetched_tokens_total"),
    ),
    Tier(medium="storage", unit=BLOCKS, moved=Count("kv_cache_disk_prefetch_blocks_total")),
    Tier(medium="peer", hits=Count("cached_tokens_total", {"source": "p2p|peer|remote"})),
    Tier(
        medium="LMCache",
        queries=Count("kv_connector_lookup_tokens_total"),
        hits=Count("kv_connector_lookup_hit_tokens_total"),
        stored=Count("kv_connector_stored_tokens_total"),
        moved=Count("kv_connector_retrieved_tokens_total"),
        load="kv_connector_retrieve_seconds",
        write="kv_connector_store_seconds",
    ),
    Tier(
        medium="LMCache remote",
        unit=REQUESTS,
        stored=Count("kv_remote_operations_total", _STORE),
        moved=Count("kv_remote_operations_total", _LOAD),
        loaded_bytes=Count("kv_remote_bytes_total", _LOAD),
        written_bytes=Count("kv_remote_bytes_total", _STORE),
        load="kv_remote_get_seconds",
        write="kv_remote_put_seconds",
    ),
    Tier(
        medium="Mooncake store",
        unit=REQUESTS,
        moved=Count("kv_store_operations_total", _GET),
        stored=Count("kv_store_operations_total", _PUT),
        loaded_bytes=Count("kv_store_bytes_total", _GET),
        written_bytes=Count("kv_store_bytes_total", _PUT),
    ),
    Tier(
        medium="answers: gateway",
        unit=REQUESTS,
        hits=Count("gateway_cache_hits_total"),
        misses=Count("gateway_cache_misses_total"),
    ),
    Tier(
        medium="answers: response cache",
        unit=REQUESTS,
        hits=Count("response_cache_hits_total"),
        misses=Count("response_cache_misses_total"),
        removed=Count("response_cache_evictions_total"),
    ),
)
