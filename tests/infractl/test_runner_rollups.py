"""The overview reads rollups where a window is long or full, and says what it says from raw rows."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.analysis import Analysis
from analytics.catalog import load
from analytics.result import Result
from infractl import runner
from infractl.priced import PricedReader
from store.batch import Batch
from store.database import Database
from store.query import Choice
from store.rollups.build import roll
from store.window import Window

START = datetime(2026, 11, 30, tzinfo=UTC)
DAY = Window(START, START + timedelta(hours=20))


@pytest.fixture
def database(tmp_path: Path):
    times = [START.replace(tzinfo=None) + timedelta(seconds=30 * i) for i in range(2400)]
    frame = pl.DataFrame(
        {
            "trace_id": [f"{i:032x}" for i in range(2400)],
            "span_id": [f"{i:016x}" for i in range(2400)],
            "ts": times,
            "operation": ["chat"] * 2400,
            "service": ["a" if i % 3 else "b" for i in range(2400)],
            "status": ["error" if i % 5 == 0 and i > 2000 else "ok" for i in range(2400)],
            "error_code": ["HTTP_503" if i % 5 == 0 and i > 2000 else None for i in range(2400)],
            "ttft_s": [0.1 + (i * 7 % 100) / 100 for i in range(2400)],
            "output_tokens": [i % 50 for i in range(2400)],
        }
    )
    with Database(tmp_path) as made:
        made.append([Batch("test", {"spans": frame})])
        roll(made, DAY.end)
        yield made


def overview(database: Database, params: Mapping[str, object]) -> Result:
    analysis = load("overview")
    return runner.run(database, analysis, analysis.make_params(params), DAY)[0]


@pytest.mark.parametrize("by", ["service", "none"])
def test_rollups_say_what_raw_rows_say(database: Database, monkeypatch: pytest.MonkeyPatch, by: str):
    raw = overview(database, {"bucket": "5m", "by": by})
    monkeypatch.setattr(runner, "RAW_ROWS", 1000)
    rolled = overview(database, {"bucket": "5m", "by": by})
    assert any("rollups" in note for note in rolled.notes)
    assert not any("rollups" in note for note in raw.notes)
    for name in ("services", "timeline"):
        about = [c for c in rolled.frames[name].columns if "_p50_" in c or "_p99_" in c]
        assert rolled.frames[name].drop(about).equals(raw.frames[name].drop(about))
    assert [replace(f, evidence={}) for f in rolled.findings] == [replace(f, evidence={}) for f in raw.findings]
    assert rolled.samples["error_ratio"].equals(raw.samples["error_ratio"])
    assert rolled.findings


def test_a_question_that_rollups_cannot_answer_is_read_from_raw_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runner, "RAW_ROWS", 1000)
    for params in ({"by": "team"}, {"where": [("host", "x")]}, {"bucket": "10m"}):
        assert not any("rollups" in note for note in overview(database, params).notes)


def test_a_long_window_without_requests_says_so(database: Database):
    analysis = load("overview")
    empty = Window(START - timedelta(days=9), START - timedelta(days=2))
    result = runner.run(database, analysis, analysis.make_params({}), empty)[0]
    assert result.status == "empty"
    assert any("no model requests" in note for note in result.notes)


def test_a_window_of_few_rows_is_read_row_by_row_however_long_where_the_analysis_wants_that(database: Database):
    analysis = load("tokens")
    long = Window(START - timedelta(days=60), DAY.end)
    reader = PricedReader(database)

    def rolled(analysis: Analysis[Any]) -> bool:
        return any("rollups" in note for note in runner.run(reader, analysis, analysis.make_params({}), long)[0].notes)

    assert not rolled(analysis)
    few = replace(analysis, inputs=lambda params: {**analysis.inputs(params), "requests": shortened(analysis, params)})
    assert rolled(few)


def shortened(analysis: Analysis[Any], params: Any) -> Choice:
    """The same choice for at most a thousand rows."""
    choice = analysis.inputs(params)["requests"]
    assert isinstance(choice, Choice)
    return replace(choice, raw_up_to=1000)
