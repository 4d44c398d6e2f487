"""Tiers of a KV cache: LMCache by name, unit and direction; those of the offloading connector of vLLM by label."""

from collector.presets.catalog import lookup
from collector.presets.preset import Preset


def one(name: str) -> Preset:
    (preset,) = lookup(name)
    return preset


def test_lookups_and_hits_are_tokens_whichever_way_they_are_spelt() -> None:
    for name in ("lmcache:num_lookup_hits", "lmcache:num_lookup_hits_total", "lmcache_num_lookup_hits_total"):
        assert (one(name).source, one(name).canonical) == ("lmcache", "kv_connector_lookup_hit_tokens_total")
        assert one(name).unit == "tokens"


def test_times_are_seconds_whatever_the_exporter_counts_in() -> None:
    assert one("lmcache:time_to_retrieve_sum").scale == 1.0
    remote, reuse = one("lmcache:remote_time_to_get_bucket"), one("lmcache:request_cache_lifespan_bucket")
    assert (remote.canonical, remote.le_scale) == ("kv_remote_get_seconds_bucket", 0.001)
    assert (reuse.canonical, reuse.le_scale) == ("kv_connector_reuse_seconds_bucket", 60.0)


def test_reads_and_writes_of_the_remote_backend_are_one_metric_by_direction() -> None:
    read, write = one("lmcache:num_remote_read_bytes_total"), one("lmcache:num_remote_write_bytes_total")
    assert read.canonical == write.canonical == "kv_remote_bytes_total"
    assert (read.labels["direction"], write.labels["direction"]) == ("load", "store")


def test_tiers_of_vllms_offloading_connector_are_media_of_one_metric() -> None:
    hits, read = one("vllm:kv_offload_tiering_chunk_hits_total"), one("vllm:kv_offload_tiering_read_bytes_total")
    assert (hits.canonical, hits.copy["medium"]) == ("kv_tier_hits_total", ("tier",))
    assert (read.canonical, read.labels["direction"]) == ("kv_tier_bytes_total", "load")
