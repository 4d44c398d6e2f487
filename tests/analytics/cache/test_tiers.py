"""Tiers from the counters of connectors, hierarchical caches, stores and gateways."""

from typing import Any

import polars as pl
import pytest

from analytics.cache.names import ROLLED
from analytics.cache.tier import TIERS
from collector.presets.catalog import catalog
from tests.analytics.cache.given import counter, run, series
from tests.analytics.frames_of import times

TS = times([0, 60]).to_list()


def tiers(*given: pl.DataFrame) -> dict[str, dict[str, Any]]:
    result = run({"series": series(pl.concat(given))})
    return {row["medium"]: row for row in result.frames["tiers"].to_dicts()}


def histogram(name: str, counts: dict[str, float], total: float, first: int) -> list[pl.DataFrame]:
    made = [counter(f"{name}_bucket", TS, n, first + i, f'{{"le":"{le}"}}') for i, (le, n) in enumerate(counts.items())]
    made.append(counter(f"{name}_sum", TS, total, first + 50))
    return [*made, counter(f"{name}_count", TS, max(counts.values()), first + 51)]


def test_every_metric_that_is_asked_for_is_canonical() -> None:
    known = catalog().canonical
    parts = ("_bucket", "_sum", "_count")
    stems = {name.removesuffix(next((part for part in parts if name.endswith(part)), "")) for name in ROLLED}
    assert {stem for stem in stems if stem not in known} == set()


def test_every_counter_of_a_tier_is_asked_for() -> None:
    named = [getattr(tier, field) for tier in TIERS for field in ("queries", "hits", "misses", "moved", "loading_s")]
    assert {count.name for count in named if count is not None} <= set(ROLLED)


def test_vllm_with_a_connector_and_offloading_has_three_tiers() -> None:
    found = tiers(
        counter("prefix_cache_queries_total", TS, 1000, 1),
        counter("prefix_cache_hits_total", TS, 600, 2),
        counter("external_prefix_cache_queries_total", TS, 400, 3),
        counter("external_prefix_cache_hits_total", TS, 100, 4),
        counter("kv_offload_bytes_total", TS, 4e9, 5, '{"direction":"load"}'),
        counter("kv_offload_bytes_total", TS, 6e9, 6, '{"direction":"store"}'),
        counter("kv_offload_seconds_total", TS, 2.0, 7, '{"direction":"load"}'),
        counter("cached_tokens_total", TS, 600, 8, '{"source":"device"}'),
        counter("cached_tokens_total", TS, 100, 9, '{"source":"host"}'),
    )
    assert {name: row["hits"] for name, row in found.items()} == {"device": 600, "connector": 100, "host": 100}
    assert (found["device"]["hit_ratio"], found["connector"]["hit_ratio"]) == (0.6, 0.25)
    assert (found["host"]["loaded_bytes"], found["host"]["written_bytes"]) == (4e9, 6e9)
    assert found["host"]["load_bytes_per_second"] == 2e9


def test_the_hierarchical_cache_of_sglang_moves_and_drops() -> None:
    found = tiers(
        counter("cached_tokens_total", TS, 50, 1, '{"source":"host"}'),
        counter("cached_tokens_total", TS, 20, 2, '{"source":"storage"}'),
        counter("kv_loaded_back_tokens_total", TS, 48, 3),
        counter("kv_dropped_tokens_total", TS, 5, 4),
        counter("kv_prefetched_tokens_total", TS, 30, 5),
    )
    assert (found["host"]["hits"], found["host"]["moved"], found["host"]["removed"]) == (50, 48, 5)
    assert (found["storage"]["hits"], found["storage"]["moved"]) == (20, 30)
    assert found["host"]["hit_ratio"] is None  # nobody counts what was looked up there


def test_lmcache_has_hits_and_latency_and_its_remote_backend_traffic() -> None:
    found = tiers(
        counter("kv_connector_lookup_tokens_total", TS, 1000, 1),
        counter("kv_connector_lookup_hit_tokens_total", TS, 300, 2),
        counter("kv_remote_operations_total", TS, 10, 3, '{"direction":"load"}'),
        counter("kv_remote_bytes_total", TS, 1e6, 4, '{"direction":"load"}'),
        *histogram("kv_connector_retrieve_seconds", {"0.01": 50.0, "0.1": 100.0, "+Inf": 100.0}, 2.0, 100),
        *histogram("kv_remote_get_seconds", {"0.01": 5.0, "+Inf": 10.0}, 3.0, 200),
    )
    assert (found["LMCache"]["hit_ratio"], found["LMCache"]["load_s"]) == (0.3, 0.02)
    assert 0.09 < found["LMCache"]["load_p99_s"] <= 0.1
    assert (found["LMCache remote"]["moved"], found["LMCache remote"]["load_s"]) == (10, 0.3)
    assert found["LMCache remote"]["load_p99_s"] is None  # beyond the last bound


def test_answers_of_a_gateway_count_requests_and_an_idle_tier_has_no_row() -> None:
    found = tiers(
        counter("gateway_cache_hits_total", TS, 20, 1, '{"tier":"gateway"}'),
        counter("gateway_cache_misses_total", TS, 60, 2, '{"tier":"gateway"}'),
        counter("external_prefix_cache_queries_total", TS, 0, 3),
        counter("external_prefix_cache_hits_total", TS, 0, 4),
    )
    assert list(found) == ["answers: gateway"]
    row = found["answers: gateway"]
    assert (row["queries"], row["hit_ratio"], row["unit"]) == (80, 0.25, "requests")
    assert row["hits_low"] == pytest.approx(0.1682, abs=1e-3)


def test_each_tier_of_the_offloading_connector_has_its_row() -> None:
    found = tiers(
        counter("kv_tier_queries_total", TS, 1000, 1, '{"medium":"0:primary"}'),
        counter("kv_tier_hits_total", TS, 700, 2, '{"medium":"0:primary"}'),
        counter("kv_tier_queries_total", TS, 300, 3, '{"medium":"1:fs"}'),
        counter("kv_tier_hits_total", TS, 150, 4, '{"medium":"1:fs"}'),
        counter("kv_tier_bytes_total", TS, 3e9, 5, '{"medium":"1:fs","direction":"load"}'),
        counter("kv_tier_seconds_total", TS, 1.5, 6, '{"medium":"1:fs","direction":"load"}'),
    )
    assert {name: row["hit_ratio"] for name, row in found.items()} == {
        "offload tier 0:primary": 0.7,
        "offload tier 1:fs": 0.5,
    }
    assert found["offload tier 1:fs"]["load_bytes_per_second"] == 2e9
    assert found["offload tier 0:primary"]["loaded_bytes"] is None
