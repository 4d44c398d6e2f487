"""`analyze cache` on made rows, public traces and the recording of a real engine."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics.cache import ANALYSIS, HITS, QUERIES
from analytics.cache.balance import judge
from analytics.cache.findings import excess
from analytics.result import Result
from collector.files import ImportOptions, load
from store.tables import BY_NAME, SPANS
from tests.analytics.frames_of import START, lines, metric, window_of

LABELS = {"service": "llm"}


def run(given: dict[str, pl.DataFrame], **params: Any) -> Result:
    made = ANALYSIS.make_params(params)
    inputs: dict[str, pl.DataFrame] = {"counters": metric(QUERIES, [], [])}
    for name, table in (("events", BY_NAME["kv_events"]), ("blocks", BY_NAME["request_blocks"]), ("requests", SPANS)):
        columns: Any = ANALYSIS.inputs(made)[name]
        types = {column: table.schema()[column] for column in columns.columns}
        inputs[name] = given[name].select(list(types)) if name in given else pl.DataFrame(schema=types)
    inputs |= {name: frame for name, frame in given.items() if name == "counters"}
    return ANALYSIS.run(inputs, made, window_of(next(iter(given.values()))))


def imported(path: Path, table: str, **labels: str) -> pl.DataFrame:
    frames = [
        batch.frames[table] for batch in load(path, ImportOptions(labels=labels)).batches if table in batch.frames
    ]
    return pl.concat(frames)


def counters(folder: Path) -> pl.DataFrame:
    """The two prefix-cache counters of the recording."""
    found: dict[str, list[tuple[int, float]]] = {QUERIES: [], HITS: []}
    for scrape in lines(folder / "vllm_metrics.jsonl.gz"):
        for line in scrape["text"].splitlines():
            for name, points in found.items():
                if line.startswith(f"vllm:{name}{{"):
                    points.append((scrape["ts_ms"] * 1000, float(line.rpartition(" ")[2])))
    return pl.concat(
        metric(
            name,
            pl.Series([t for t, _ in points]).cast(pl.Datetime("us")).to_list(),
            [v for _, v in points],
            series_id=i,
        )
        for i, (name, points) in enumerate(found.items())
    )


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


def test_the_recorded_engine_is_polluted_while_long_prompts_come_that_nobody_repeats(shared: Path) -> None:
    folder = shared / "data/vllm_real"
    counted = counters(folder)
    result = run({"counters": counted, "events": imported(folder / "kv.jsonl.gz", "kv_events", **LABELS)}, bucket=20)
    windows = result.frames["windows"]
    assert windows["basis"].unique().to_list() == ["exact"]
    # hits of the counters are whole blocks of 32 tokens; rounding by window loses none
    assert windows["hits"].sum() == 226_240 / 32
    assert windows["accesses"].sum() == 226_240 / 32 + 8_087
    phase = next(
        row
        for row in map(json.loads, (folder / "labels.jsonl").read_text().splitlines())
        if row["phase"] == "unique_long_prompts"
    )
    seconds = pl.col("bucket").dt.epoch("s")
    inside = (seconds >= phase["start"]) & (seconds + 20 <= phase["end"])
    assert windows.filter(inside)["cpi"].gt(0.9).all()
    assert windows.filter(seconds + 20 < phase["start"])["cpi"].lt(0.6).all()
    assert any("nobody uses" in note for note in result.notes)
    assert result.findings == ()  # hardly a hit was lost: advice, no alert
    assert windows["cpi"].is_between(0, 1).all()
    (tier,) = result.frames["tiers"].to_dicts()
    assert (tier["medium"], tier["stored"], tier["present"]) == ("GPU", 8_087, 295)


def test_what_the_engine_computed_is_what_it_stored(shared: Path) -> None:
    """Prompt tokens not found plus tokens answered fill the blocks stored; each request leaves one block unfilled."""
    folder = shared / "data/vllm_real"
    counted = counters(folder)
    values = [counted.filter(pl.col("name") == name)["value"].to_numpy() for name in (QUERIES, HITS)]
    grown = [float(value.max() - value.min()) for value in values]
    computed = (grown[0] - grown[1] + 80_631) / 32
    assert 0 <= computed - 8_087 <= 1_505  # 1,458 whole requests and 47 given up


def test_counters_alone_are_a_proxy_and_one_sample_counts_since_the_start() -> None:
    ts = [START]
    frame = pl.concat([metric(QUERIES, ts, [117.0]), metric(HITS, ts, [64.0], series_id=2)])
    result = run({"counters": frame})
    (row,) = result.frames["windows"].to_dicts()
    assert (row["basis"], round(row["hit_ratio"], 3), row["expired"]) == ("proxy", 0.547, None)
    assert any("since their engine started" in note for note in result.notes)
    assert "cache_pollution_index_ratio" not in {n for n, f in result.samples.items() if f.height}


def row(cpi: float, hit: float, ceiling: float, i: int) -> dict[str, Any]:
    at = {"bucket": START + timedelta(minutes=5 * i), "basis": "exact", "accesses": 1000}
    return at | {"cpi": cpi, "hit_ratio": hit, "ceiling": ceiling}


def test_the_baseline_trigger_needs_three_windows_and_lost_hits() -> None:
    params = ANALYSIS.make_params({})
    calm = [row(0.2 + 0.01 * (i % 3), 0.7, 0.72, i) for i in range(12)]
    bad = [row(0.6, 0.5, 0.7, 12 + i) for i in range(3)]
    dead = [row(0.6, 0.5, 0.52, 12 + i) for i in range(3)]

    def over(rows: list[dict[str, Any]]) -> bool:
        found = excess(rows, params)
        return found is not None and found[0] > 0

    assert over(calm + bad)
    assert not over(calm + bad[:2])
    assert not over(calm + dead)
    assert excess(bad, params) is None


def test_the_documents_triggers_fire_at_their_level_and_rise() -> None:
    params = ANALYSIS.make_params({"trigger": "documents"})
    level: Any = excess([row(c, 0, 0, i) for i, c in enumerate([0.4, 0.4, 0.4])], params)
    assert level == (pytest.approx(0, abs=1e-8), "level")
    assert (excess([row(c, 0, 0, i) for i, c in enumerate([0.4, 0.39, 0.4])], params) or (0,))[0] < 0
    rise: Any = excess([row(c, 0, 0, i) for i, c in enumerate([0.1, 0.36])], params)
    assert rise == (pytest.approx(0.01), "rise")


def test_a_hot_shard_is_one_that_chance_does_not_explain() -> None:
    assert [hot for _, hot in judge(np.array([100.0, 110, 95, 300]))] == [False, False, False, True]
    assert not any(hot for _, hot in judge(np.array([4.0, 6, 5])))
    assert judge(np.array([7.0])) == [(None, None)]
