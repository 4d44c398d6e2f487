"""Long windows are answered from rollups: groups and gaps over time say what raw rows say, the rest is refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics import codec
from analytics.result import Result, Status
from analytics.stream import ANALYSIS
from infractl import runner
from infractl.priced import PricedReader
from store.batch import Batch
from store.database import Database
from store.query import Choice
from store.rollups.build import roll
from store.window import Window

START = datetime(2026, 11, 20, tzinfo=UTC)
DAYS = Window(START, START + timedelta(days=3))
N = 1200


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rng = np.random.default_rng(1)
    gaps = [(1e6 * 0.03 * np.exp(rng.normal(0, 0.5, 20))).astype(int) for _ in range(N)]
    for stalled in range(0, N, 40):
        gaps[stalled][7] = 900_000
    ids = {
        "trace_id": [f"{i:032x}" for i in range(N)],
        "span_id": [f"{i:016x}" for i in range(N)],
        "ts": [START.replace(tzinfo=None) + timedelta(seconds=200 * i) for i in range(N)],
    }
    named = {"operation": ["chat"] * N, "service": ["a" if i % 3 else "b" for i in range(N)], "tpot_s": [0.03] * N}
    streams = {"offsets_us": [np.cumsum([100_000, *one]).tolist() for one in gaps]}
    with Database(tmp_path_factory.mktemp("rolled")) as made:
        made.append([Batch("t", {"spans": pl.DataFrame(ids | named), "token_arrivals": pl.DataFrame(ids | streams)})])
        for _ in range(4):
            roll(made, DAYS.end)
        yield made


def answer(database: Database, rolled: bool, window: Window = DAYS, **params: Any) -> Result:
    def chosen(given: Any) -> dict[str, Any]:
        asked = ANALYSIS.inputs(given)
        few = {name: replace(query, raw_up_to=0) for name, query in asked.items() if isinstance(query, Choice)}
        return {**asked, **few} if rolled else dict(asked)

    analysis = replace(ANALYSIS, inputs=chosen)
    result = runner.run(PricedReader(database), analysis, analysis.make_params(params), window)[0]
    assert codec.to_json(codec.from_json(codec.to_json(result), ANALYSIS.frames)) == codec.to_json(result)
    return result


@pytest.mark.parametrize("by", ["service", "none"])
def test_groups_from_rollups_are_those_from_rows(database: Database, by: str) -> None:
    rows, rolled = (answer(database, which, by=by) for which in (False, True))
    assert rolled.status is rows.status is Status.OK
    for one, other in zip(rolled.frames["groups"].to_dicts(), rows.frames["groups"].to_dicts(), strict=True):
        assert (one["gaps"], one["stalls"]) == (other["gaps"], other["stalls"])
        assert one["ji_overall"] == pytest.approx(other["ji_overall"])
        assert one["ji_overall_low"] < one["ji_overall"] < one["ji_overall_high"]
        assert one["itl_p50_s"] == pytest.approx(other["itl_p50_s"], rel=0.02)
        assert one["itl_p99_s"] == pytest.approx(other["itl_p99_s"], rel=0.05), "another rule between two values"
        assert one["tpot_s"] == pytest.approx(0.03, rel=0.01)
        assert (one["ji_p50"], one["n"], one["goodput_ratio"]) == (None, None, None)


def test_gaps_over_time_are_there_and_the_rest_is_refused_in_words(database: Database) -> None:
    result = answer(database, rolled=True)
    timeline = result.frames["timeline"]
    assert timeline["gaps"].sum() == 20 * N
    assert timeline.filter(pl.col("gap_p99_s") < pl.col("gap_p50_s")).is_empty()
    assert timeline["gap_p99_s"].null_count() == 0
    assert result.frames["requests"].is_empty()
    assert result.findings == ()
    assert "within 1 %" in result.notes[0]
    assert "no jitter of requests, worst streams" in result.notes[1]


def test_few_rows_are_read_one_by_one_however_long_the_window(database: Database) -> None:
    assert answer(database, rolled=False).frames["requests"].height > 0
    assert not any("rollups" in note for note in answer(database, rolled=False).notes)


def test_labels_that_rollups_do_not_keep_are_read_from_rows(database: Database) -> None:
    assert not any("rollups" in note for note in answer(database, rolled=True, by="host").notes)


def test_a_long_window_without_requests_is_empty_and_says_so(database: Database) -> None:
    empty = Window(START - timedelta(days=9), START - timedelta(days=2))
    result = answer(database, True, empty)
    assert result.status is Status.EMPTY
    assert "no model requests" in result.notes[0]


def test_requests_without_arrivals_are_refused(tmp_path: Path) -> None:
    spans = {"trace_id": ["a" * 32], "span_id": ["b" * 16], "ts": [START.replace(tzinfo=None)], "operation": ["chat"]}
    with Database(tmp_path) as made:
        made.append([Batch("t", {"spans": pl.DataFrame(spans)})])
        result = answer(made, rolled=True)
    assert result.status is Status.REFUSED
    assert "needs the times when tokens came" in result.notes[0]
