"""Cases of public bug reports about bills."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from collector.files.load import load
from collector.files.options import FileKind, ImportOptions
from tests.collector.files.bills.bills import costs, spans

BILL = ImportOptions(kind=FileKind.BILL)
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_credits_and_refunds_stay_negative_and_apart_from_usage(shared: Path) -> None:
    folder = shared / "cases/43-credits-and-refunds"
    right = json.loads((folder / "expected.json").read_text())
    lines = costs(load(folder / "focus.csv", ImportOptions()))
    usage = lines.filter(pl.col("category") == "Usage")
    assert usage["billed_cost"].sum() == Decimal(str(right["usage_total"]))
    assert lines["billed_cost"].sum() == Decimal(str(right["net_total"]))
    assert int((lines["billed_cost"] < 0).sum()) == 3


def test_currencies_are_never_added(shared: Path) -> None:
    folder = shared / "cases/55-mixed-currencies"
    found = load(folder / "focus.csv", ImportOptions())
    lines = costs(found)
    totals = dict(zip(lines["currency"], lines["billed_cost"], strict=True))
    assert totals == json.loads((folder / "expected.json").read_text())
    assert len([note for note in found.notes if note.startswith("billed:")]) == 3
    assert lines["line_id"].n_unique() == 3


@pytest.mark.parametrize(
    ("file", "hours"), [("berlin-2026-10-25", 25), ("berlin-2026-03-29", 23), ("newyork-2026-11-01", 25)]
)
def test_a_day_has_as_many_hours_as_its_clock(shared: Path, file: str, hours: int) -> None:
    lines = costs(load(shared / f"cases/53-dst-23-and-25-hour-days/{file}.csv", BILL))
    by_hour = lines.group_by("ts").agg(pl.col("billed_cost").sum())
    assert by_hour.height == hours
    assert set(by_hour["billed_cost"]) == {10.0}


@pytest.mark.parametrize(
    ("file", "zone"),
    [("berlin-2026-10-25", "Europe/Berlin"), ("berlin-2026-03-29", "Europe/Berlin"),
     ("newyork-2026-11-01", "America/New_York")],
)  # fmt: skip
def test_local_times_without_an_offset_follow_the_zone_hour_by_hour(
    shared: Path, tmp_path: Path, file: str, zone: str
) -> None:
    stated = shared / f"cases/53-dst-23-and-25-hour-days/{file}.csv"
    local = tmp_path / "local.csv"
    local.write_text(
        "\n".join(line[:19] + line[25:] if line[:4] == "2026" else line for line in stated.read_text().splitlines())
    )
    given = costs(load(local, ImportOptions(kind=FileKind.BILL, time_zone=zone)))
    assert given["ts"].to_list() == costs(load(stated, BILL))["ts"].to_list()


def test_a_table_of_daily_costs_needs_a_word_only(shared: Path) -> None:
    path = shared / "cases/57-graduated-tiers-and-month-reset/bill.csv"
    lines = costs(load(path, BILL))
    assert (lines.height, float(lines["billed_cost"].sum()), float(lines["quantity"].sum())) == (40, 600.0, 400.0)
    assert set(lines["quality"]) == {"no_currency"}


def test_a_cost_in_millionths_is_read_by_its_unit(shared: Path) -> None:
    path = shared / "cases/49-batch-discount-and-units/micro.csv"
    lines = costs(load(path, ImportOptions(kind=FileKind.BILL, at=NOON)))
    assert lines["billed_cost"].to_list() == [Decimal("0.001067"), Decimal(1067)]
    assert set(lines["currency"]) == {"USD"}


@pytest.mark.parametrize("file", ["full", "cancelled"])
def test_a_stream_is_one_request_with_its_last_total(shared: Path, file: str) -> None:
    folder = shared / "cases/48-cumulative-usage-in-stream"
    found = load(folder / f"{file}.sse", ImportOptions(at=NOON))
    row = spans(found).row(0, named=True)
    assert found.kind is FileKind.LLM_CALLS
    assert [row["input_tokens"], row["output_tokens"]] == json.loads((folder / "expected.json").read_text())[file]
    assert (row["finish_reason"] == "cancelled") is (file == "cancelled")
