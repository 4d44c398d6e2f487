"""A real engine under a labelled programme: each slow phase goes with its driver, calm phases have no finding."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.catalog import load
from analytics.result import Result
from store.window import Window
from tests.analytics.frames_of import lines, metric, vllm_real, window_of

ANALYSIS = load("p99")
SCRAPED = {
    "vllm:num_requests_running{": "requests_running",
    "vllm:prefix_cache_hits_total{": "prefix_cache_hits_total",
    "vllm:prefix_cache_queries_total{": "prefix_cache_queries_total",
}


def at(milliseconds: list[int]) -> pl.Series:
    return pl.Series([one * 1000 for one in milliseconds]).cast(pl.Datetime("us"))


def everything(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Requests, and every candidate driver that was recorded: engine gauges and counters, CPU pressure of the host."""
    spans, gauges = vllm_real(folder)
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in SCRAPED.values()}
    for scrape in lines(folder / "vllm_metrics.jsonl.gz"):
        for line in scrape["text"].splitlines():
            for start, name in SCRAPED.items():
                if line.startswith(start):
                    found[name].append((scrape["ts_ms"], float(line.rpartition(" ")[2])))
    host = lines(folder / "host.jsonl.gz")
    pressure = [row["psi_cpu_some_avg10"] / 100 for row in host]
    parts = [metric("cpu_pressure_ratio", at([row["ts_ms"] for row in host]).to_list(), pressure, series_id=9)]
    for i, (name, points) in enumerate(found.items()):
        ts, values = at([t for t, _ in points]).to_list(), [v for _, v in points]
        parts.append(metric(name, ts, values, series_id=10 + i))
    return spans, pl.concat([gauges, *parts]).sort("ts")


@pytest.fixture(scope="module")
def recording(request: pytest.FixtureRequest) -> tuple[pl.DataFrame, pl.DataFrame, list[dict[str, Any]]]:
    folder = request.getfixturevalue("shared") / "data" / "vllm_real"
    phases = [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]
    return *everything(folder), phases


def run(spans: pl.DataFrame, metrics: pl.DataFrame, window: Window | None = None, **given: Any) -> Result:
    inputs = {"requests": spans, "metrics": metrics}
    return ANALYSIS.run(inputs, ANALYSIS.make_params({"resamples": 20} | given), window or window_of(spans))


def clock(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


EXPECTED = {
    "burst": {"requests_waiting"},
    "unique_long_prompts": {"kv_cache_usage_ratio", "prefix_cache_hit_ratio", "input_tokens"},
    "cpu_contention": {"cpu_pressure_ratio"},
}


def test_each_slow_phase_goes_with_its_own_driver_when_all_candidates_are_stored(recording: Any) -> None:
    spans, metrics, phases = recording
    whole = Window(clock(phases[0]["start"] - 5), datetime(2026, 11, 30, 16, 29, tzinfo=UTC))
    episodes = run(spans, metrics, whole).frames["episodes"]
    for phase in phases:
        if phase["phase"] in EXPECTED:
            start, end = clock(phase["start"]).replace(tzinfo=None), clock(phase["end"]).replace(tzinfo=None)
            (row,) = episodes.filter(pl.col("since") < end, pl.col("until") > start + timedelta(seconds=15)).to_dicts()
            assert set(row["driver"].split(" + ")) & EXPECTED[phase["phase"]], phase["phase"]
            assert row["moved"] > 0.5 * (row["p99"] - row["baseline"]), phase["phase"]


def test_nothing_is_found_in_calm_phases(recording: Any) -> None:
    spans, metrics, phases = recording
    calm = Window(clock(phases[-3]["start"]), clock(phases[-1]["end"]))  # errors and aborts, which slow nobody
    within = pl.col("ts").is_between(calm.start.replace(tzinfo=None), calm.end.replace(tzinfo=None))
    assert run(spans.filter(within), metrics, calm).findings == ()
    first = Window(clock(phases[0]["start"]), clock(phases[1]["end"]))
    assert run(spans.filter(pl.col("ts") < first.end.replace(tzinfo=None)), metrics, first).findings == ()


@pytest.mark.parametrize("number", [2, 4, 6])
def test_a_phase_held_against_the_calm_one_is_split_by_its_driver_and_adds_up(recording: Any, number: int) -> None:
    spans, metrics, phases = recording
    calm, slow = (Window(clock(p["start"]), clock(p["end"])) for p in (phases[1], phases[number]))
    kept = pl.any_horizontal(
        pl.col("ts").is_between(w.start.replace(tzinfo=None), w.end.replace(tzinfo=None)) for w in (calm, slow)
    )
    window = Window(calm.start, slow.end)
    frame = run(spans.filter(kept), metrics, window, before=str(calm), tau=0.9).frames["change"]
    assert set(frame["part"][0].split(" + ")) & EXPECTED[phases[number]["phase"]], frame
    assert frame["part"].to_list()[-2:] == ["rest", "total"]
    assert frame["change"].to_list()[-1] == pytest.approx(sum(frame["change"].to_list()[:-1]))
    assert frame["share"][0] > 0.4
