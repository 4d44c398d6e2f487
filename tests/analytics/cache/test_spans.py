"""Cached tokens as requests state them, and answers from a semantic cache."""

from typing import Any

import polars as pl
import pytest

from analytics.cache import ANALYSIS
from tests.analytics.cache.given import run
from tests.analytics.frames_of import START, requests, times


def answered(**columns: object) -> pl.DataFrame:
    return requests({"ts": times([10, 20, 400, 410]), "service": ["api"] * 4} | columns)


def test_requests_that_state_cached_tokens_give_a_hit_ratio_per_window() -> None:
    spans = answered(input_tokens=[100, 300, 200, 50], cached_input_tokens=[0, 200, 50, None])
    result = run({"requests": spans})
    rows = result.frames["windows"].to_dicts()
    assert [(row["accesses"], row["hits"], row["basis"]) for row in rows] == [(400, 200, "spans"), (200, 50, "spans")]
    assert rows[0]["hit_ratio"] == 0.5
    assert rows[0]["expired"] is None
    assert any(note.startswith("spans:") for note in result.notes)
    assert result.findings == ()
    (source,) = result.frames["sources"].to_dicts()
    assert (source["source"], source["looked_up"], source["found"]) == ("spans", 600, 250)


def test_requests_without_cached_tokens_say_nothing() -> None:
    assert run({"requests": answered(input_tokens=[1, 2, 3, 4])}).status == "empty"


def test_where_a_share_of_the_requests_was_read_rollups_answer_and_say_that_they_are_a_limit() -> None:
    spans = answered(input_tokens=[100] * 4, cached_input_tokens=[10] * 4, share_read=[0.1] * 4)
    rolled = pl.DataFrame(
        {"bucket": [START], "service": ["api"], "input_tokens": [40_000], "cached_input_tokens": [10_000]},
        schema_overrides={"bucket": pl.Datetime("us")},
    )
    result = run({"requests": spans, "rolled": rolled})
    (row,) = result.frames["windows"].to_dicts()
    assert (row["accesses"], row["hit_ratio"]) == (40_000, 0.25)
    assert any("lower limit" in note for note in result.notes)


def test_a_semantic_cache_has_a_hit_ratio_with_its_interval_and_both_latencies() -> None:
    ts = times(range(100))
    hit = ["true"] * 30 + ["false"] * 60 + [None] * 10
    spans = requests({"ts": ts, "e2e_s": [0.05] * 30 + [2.0] * 70, "service": ["api"] * 100, "cache_hit": hit})
    result = run({"requests": spans})
    (row,) = result.frames["tiers"].to_dicts()
    assert (row["medium"], row["queries"], row["hits"]) == ("answers: semantic cache", 90, 30)
    assert row["hit_ratio"] == pytest.approx(1 / 3)
    assert row["hits_low"] < 1 / 3 < row["hits_high"]
    assert (row["hit_latency_p50_s"], row["miss_latency_p50_s"]) == (0.05, 2.0)


def test_another_attribute_can_be_named() -> None:
    spans = answered(**{"gptcache.status": ["HIT", "miss", "HIT", "other"]})
    (row,) = run({"requests": spans}, cache_hit="gptcache.status").frames["tiers"].to_dicts()
    assert (row["queries"], row["hits"]) == (3, 2)


def test_a_filter_that_only_requests_know_is_asked_of_them_alone_and_said() -> None:
    params = ANALYSIS.make_params({"where": [("model", "gpt-4o"), ("service", "api")]})
    asked: Any = ANALYSIS.inputs(params)
    assert asked["requests"].where == asked["rolled"].where == (("model", "gpt-4o"), ("service", "api"))
    assert asked["events"].where == asked["blocks"].where == (("service", "api"),)
    spans = answered(input_tokens=[100] * 4, cached_input_tokens=[10] * 4)
    result = run({"requests": spans}, where=[("model", "gpt-4o")])
    assert any("--where model chooses among requests only" in note for note in result.notes)


def test_hits_that_name_their_tier_have_a_row_each_among_all_lookups() -> None:
    hit = {"cache_hit": ["true", "true", "true", "false"]}
    spans = answered(**hit, **{"gen_ai.cache.tier": ["document", "document", "sentence", None], "e2e_s": [0.1] * 4})
    frame = run({"requests": spans}).frames["tiers"]
    assert frame.select("medium", "queries", "hits").rows() == [
        ("answers: semantic cache", 4, 3),
        ("answers: document", 4, 2),
        ("answers: sentence", 4, 1),
    ]
