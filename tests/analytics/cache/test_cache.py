"""`analyze cache` on made rows and public traces."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given as hypothesis
from hypothesis import settings
from hypothesis import strategies as st

from analytics.cache import HITS, QUERIES
from analytics.cache.balance import judge
from analytics.cache.counters import two_points
from analytics.result import Result
from infractl.priced import PricedReader
from infractl.runner import run_named
from sample_data import scraped
from store.database import Database
from tests.analytics.cache.given import imported, run, series, simulated
from tests.analytics.frames_of import START, metric, times

TRACES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=25)


def test_the_mooncake_conversations_have_their_pollution_and_curve(shared: Path) -> None:
    blocks = imported(shared / "data/mooncake_trace/conversation_trace.jsonl.gz", "request_blocks")
    result = run({"blocks": blocks})
    total = result.frames["windows"].select(pl.col("accesses", "hits", "expired", "redundant").sum()).row(0)
    assert [round(n / 288_500, 3) for n in total] == [1.0, 0.211, 0.155, 0.651]
    curve = result.frames["curve"]
    assert curve["hit_ratio"].is_sorted()
    assert curve["hit_ratio"].max() == pytest.approx(0.366412, abs=1e-6)
    assert curve["bend"].sum() == 1
    assert result.findings == ()  # a healthy workload: the documents' 0.4 would fire all along
    by_documents = run({"blocks": blocks}, trigger="documents")
    assert "two-way eviction" in by_documents.findings[0].summary


def test_the_agents_have_their_known_hit_ratios_without_limit(shared: Path) -> None:
    path = shared / "data/lmcache_agent_trace/requests_prefix_hashes_1024ch.parquet"
    curve = run({"blocks": imported(path, "request_blocks")}).frames["curve"]
    found = dict(curve.group_by("service").agg(pl.col("hit_ratio").max().round(5)).iter_rows())
    assert found == {"magagent": 0.85264, "miniswe": 0.93627, "taubench": 0.82812}


def test_counters_alone_are_a_proxy_and_one_sample_counts_since_the_start() -> None:
    ts = [START]
    frame = pl.concat([metric(QUERIES, ts, [117.0]), metric(HITS, ts, [64.0], series_id=2)])
    result = run({"counters": frame})
    (row,) = result.frames["windows"].to_dicts()
    assert (row["basis"], round(row["hit_ratio"], 3), row["expired"]) == ("proxy", 0.547, None)
    assert any("since their engine started" in note for note in result.notes)
    assert "cache_pollution_index_ratio" not in {n for n, f in result.samples.items() if f.height}


def test_a_hot_shard_is_one_that_chance_does_not_explain() -> None:
    assert [hot for _, hot in judge(np.array([100.0, 110, 95, 300]))] == [False, False, False, True]
    assert not any(hot for _, hot in judge(np.array([4.0, 6, 5])))
    assert judge(np.array([7.0])) == [(None, None)]


@settings(max_examples=25, deadline=None)
@hypothesis(TRACES, st.integers(1, 8))
def test_pollution_counts_an_access_once_whatever_the_trace(prompts: list[list[int]], size: int) -> None:
    blocks = pl.DataFrame({"ts": times(range(len(prompts))), "service": "llm", "block_hashes": prompts})
    result = run({"blocks": blocks}, blocks=size)
    assert result.frames["windows"]["cpi"].is_between(0, 1).all()
    assert result.frames["curve"].sort("blocks")["hit_ratio"].is_sorted()
    whole = result.frames["windows"].select(pl.col("accesses", "hits", "expired", "redundant").sum()).row(0)
    assert whole[0] == sum(map(len, prompts)) >= whole[1] + max(whole[2], whole[3])


def test_the_hand_trace_a_b_c_a_in_a_cache_of_two() -> None:
    blocks = pl.DataFrame({"ts": times(range(4)), "service": "llm", "block_hashes": [[1], [2], [3], [1]]})
    (window,) = run({"blocks": blocks}, blocks=2).frames["windows"].to_dicts()
    found = [window[name] for name in ("accesses", "hits", "expired", "redundant", "cpi", "cpi_sum")]
    assert found == [4, 0, 1, 2, 0.75, 0.75]


def test_sglang_counts_cached_and_prompt_tokens_and_a_gateway_is_not_counted_twice() -> None:
    ts = times([0, 60]).to_list()
    own = [metric("prompt_tokens_total", ts, [0.0, 1000.0], instance="a", service="sg", series_id=1)]
    own += [metric("cached_tokens_total", ts, [0.0, 400.0], instance="a", service="sg", series_id=2)]
    gateway = [
        frame.with_columns(pl.lit("gw").alias("instance"), pl.lit('{"tier":"gateway"}').alias("labels"),
                           (pl.col("series_id") + 10))
        for frame in own
    ]  # fmt: skip
    (row,) = run({"counters": pl.concat([*own, *gateway])}).frames["windows"].to_dicts()
    assert (row["accesses"], row["hits"], row["basis"]) == (1000, 400, "proxy")


def test_prompts_that_an_engine_counts_say_nothing_of_a_cache() -> None:
    result = run({"counters": metric("prompt_tokens_total", times([0, 60]).to_list(), [0.0, 1000.0])})
    assert result.status == "empty"


def test_series_of_one_sample_count_since_the_start_only_where_all_do() -> None:
    one = series(metric(HITS, [START], [7.0]))
    two = series(metric(QUERIES, times([0, 60]).to_list(), [5.0, 9.0], series_id=2))
    assert two_points(one)[1]
    points, from_zero = two_points(pl.concat([one, two]))
    assert (from_zero, points["value"].to_list()) == (False, [0.0, 4.0])


def captured(page: Path, directory: Path) -> Result:
    """Run on one scraped page."""
    target = {"job": "engine", "instance": "a", "service": "llm"}
    with Database(directory) as database:
        database.append([scraped.batch("page", [(1_796_055_600_000, page.read_text())], target)])
        return run_named(PricedReader(database), "cache", {}, None)


def test_a_captured_page_of_vllm_has_its_known_hit_ratio(shared: Path, tmp_path: Path) -> None:
    result = captured(shared / "data/engine_metrics/datadog_vllm_v0_v1_union.prom", tmp_path)
    (row,) = result.frames["windows"].to_dicts()
    assert (row["accesses"], row["hits"], round(row["hit_ratio"], 3)) == (117, 64, 0.547)
    assert any("since their engine started" in note for note in result.notes)
    assert result.frames["sources"].filter(pl.col("source") == "prefix-cache counters")["found"].to_list() == [64]


def test_hits_of_a_service_without_events_do_not_count_beside_the_events_of_another() -> None:
    prompts = [(at, [1, 2, 3]) for at in times(range(4)).to_list()]
    events, counters = simulated(prompts, [10] * 4, tokens=16)
    other = counters.with_columns(pl.lit("other").alias("service"), pl.col("series_id") + 10, pl.col("value") * 100)
    alone = run({"events": events, "counters": counters}, by="none").frames["windows"]
    result = run({"events": events, "counters": pl.concat([counters, other])}, by="none")
    assert result.frames["windows"].equals(alone)
    assert any("counters alone are left out" in note for note in result.notes)
