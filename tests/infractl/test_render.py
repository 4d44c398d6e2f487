"""Every output format of a Result, as golden files (`pytest --update-golden`, then read the diff) and by meaning."""

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import orjson
import polars as pl
import pytest

from analytics.codec import from_json
from analytics.result import Finding, Result, Severity, Status
from infractl.render import FORMATS, FRAME_FORMATS, cell, exact, render, render_frame
from store.columns import Column, Kind
from store.window import Window

GOLDEN = Path(__file__).parent / "golden"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
COLUMNS = (
    Column("ts", Kind.TIME, "start"),
    Column("p99_s", Kind.FLOAT, "P99", "s"),
    Column("n", Kind.INT, "requests"),
    Column("stream", Kind.BOOL, "streamed"),
)
FRAME = pl.DataFrame(
    {
        "service": ["chat", "rag | <b>search</b>"],
        "ts": [datetime(2026, 11, 30, 11), datetime(2026, 11, 30, 11, 30, 0, 500)],
        "p99_s": [0.123456789, None],
        "n": [9007199254740993, 0],
        "stream": [True, None],
    }
)


def finding(severity: Severity, until: datetime | None) -> Finding:
    return Finding(
        trigger="P99AboveBaseline",
        severity=severity,
        labels={"service": "chat"},
        value=2.5,
        expected=(None, 1.5),
        since=NOON,
        until=until,
        summary="P99 of chat is 2.5x its baseline",
        evidence={"trace_ids": ["a1", "b2", "c3", "d4"]},
    )


RESULT = Result(
    analysis="p99",
    status=Status.OK,
    window=Window(datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)),
    params={"tau": 0.99, "where": [["service", "chat"]]},
    frames={"fit": FRAME, "empty": FRAME.clear()},
    samples={"p99_baseline_ratio": pl.DataFrame({"service": ["chat", "rag"], "value": [2.5, float("nan")]})},
    findings=(finding(Severity.WARNING, None), finding(Severity.CRITICAL, None), finding(Severity.INFO, NOON)),
    notes=("not enough tail rows: 31 of 50",),
)


@pytest.mark.parametrize("form", FORMATS)
def test_the_text_of_a_result_is_as_agreed(form: str, update_golden: bool):
    file, made = GOLDEN / f"result.{form}", render(RESULT, form)
    if update_golden:
        file.write_text(made, encoding="utf-8")
    assert made == file.read_text(encoding="utf-8")


def test_json_is_read_back_to_an_equal_result():
    text = render(RESULT, "json").encode()
    back = from_json(text, {"fit": COLUMNS, "empty": COLUMNS})
    assert render(back, "json").encode() == text
    assert back.frames["fit"].equals(FRAME)
    assert back.findings == RESULT.findings


def test_json_has_no_nan_and_keeps_every_digit():
    made = orjson.loads(render(RESULT, "json"))
    assert made["samples"]["p99_baseline_ratio"][1]["value"] is None
    assert made["frames"]["fit"][0]["n"] == 9007199254740993


def test_csv_has_every_digit_and_the_table_the_same_cells_to_six():
    block = render(RESULT, "csv").split("# empty")[0].split("\n", 1)[1]
    rows = list(csv.DictReader(io.StringIO(block)))
    assert [float(row["p99_s"]) for row in rows if row["p99_s"]] == [0.123456789]
    cells = [value for row in rows for name, value in row.items() if value and name != "p99_s"]
    table = render(RESULT, "table")
    assert [value for value in [*cells, "0.123457"] if value not in table] == []


def test_a_person_reads_an_episode_once_at_its_worst():
    assert render(RESULT, "table").count("P99 of chat is 2.5x") == 2  # the one that lasts, and the one that is over
    assert "WARNING" not in render(RESULT, "table")


def test_markdown_rows_have_as_many_cells_as_the_header():
    rows = [line.replace("\\|", "") for line in render(RESULT, "md").splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {6}


def test_html_is_escaped():
    assert "<b>search</b>" not in render(RESULT, "html")


def test_no_findings_are_said_in_words():
    from dataclasses import replace

    assert "No findings." in render(replace(RESULT, findings=()), "table")


@pytest.mark.parametrize("form", FRAME_FORMATS)
def test_a_frame_without_rows_is_no_error(form: str):
    assert render_frame(FRAME.clear(), form).strip()


def test_missing_is_empty_never_zero_or_nan():
    assert [cell(value) for value in (None, float("nan"), 0, 0.0, False)] == ["", "", "0", "0", "false"]


def test_a_large_number_is_not_written_as_a_power_of_ten():
    assert [cell(1796055484.84), exact(1796055484.84), exact(2.0)] == ["1796055485", "1796055484.84", "2"]
