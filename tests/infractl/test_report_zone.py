"""One report zone in every command, whatever the zone of the machine."""

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from analytics.buckets import calendar
from collector.files import ImportOptions, load
from collector.files.options import FileKind
from store.window import Window
from store.zone import zone
from tests.infractl.test_cli import run

ZONES = ("UTC", "Europe/Berlin", "Asia/Shanghai")
DAYS = """SELECT CAST(ts AT TIME ZONE 'UTC' AT TIME ZONE '{zone}' AS DATE) AS day, sum(billed_cost) AS cost
FROM costs GROUP BY ALL ORDER BY ALL"""


@pytest.mark.parametrize("machine", ZONES)
def test_day_totals_are_those_of_the_zone_asked_for(shared: Path, tmp_path: Path, machine: str):
    folder = shared / "cases/74-time-zone-of-buckets"
    right = json.loads((folder / "expected.json").read_text())
    done = run("import", str(folder / "events.csv"), "--as", "bill", cwd=tmp_path, TZ=machine)
    assert done.returncode == 0, done.stderr
    for name in ZONES:
        text = run("sql", DAYS.format(zone=name), "--format", "json", cwd=tmp_path, TZ=machine).stdout
        assert {row["day"]: row["cost"] for row in json.loads(text)} == right[name]


@pytest.mark.parametrize("name", ZONES)
def test_buckets_of_an_analysis_give_the_same_totals(shared: Path, name: str):
    folder = shared / "cases/74-time-zone-of-buckets"
    window = Window(datetime(2026, 10, 25, tzinfo=UTC), datetime(2026, 10, 26, tzinfo=UTC))
    lines = load(folder / "events.csv", ImportOptions(kind=FileKind.BILL)).batches[0].frames["costs"]
    where = zone(name)
    totals = lines.group_by(calendar(window, "day", where)).agg(pl.col("billed_cost").sum()).sort("bucket")
    days = {str(at.replace(tzinfo=UTC).astimezone(where).date()): cost for at, cost in totals.iter_rows()}
    assert days == json.loads((folder / "expected.json").read_text())[name]


@pytest.mark.parametrize(
    ("file", "name", "hours"),
    [("berlin-2026-10-25", "Europe/Berlin", 25), ("berlin-2026-03-29", "Europe/Berlin", 23),
     ("newyork-2026-11-01", "America/New_York", 25)],
)  # fmt: skip
def test_an_hour_shown_twice_is_two_buckets_of_one_day(shared: Path, file: str, name: str, hours: int):
    path = shared / f"cases/53-dst-23-and-25-hour-days/{file}.csv"
    lines = load(path, ImportOptions(kind=FileKind.BILL)).batches[0].frames["costs"]
    low, high = (lines["ts"].min(), lines["ts"].max())
    window = Window(low.replace(tzinfo=UTC), high.replace(tzinfo=UTC, minute=59))
    by_hour, by_day = (
        lines.group_by(calendar(window, size, zone(name))).agg(pl.col("billed_cost").sum())["billed_cost"].to_list()
        for size in ("hour", "day")
    )
    assert by_hour == [10] * hours
    assert by_day == [10 * hours]


@pytest.mark.parametrize("machine", ZONES)
def test_tables_name_the_zone_and_json_stays_utc(tmp_path: Path, machine: str):
    rows = "\n".join(f"2026-10-25T{hour:02}:30:00Z,0.5" for hour in range(24))
    (tmp_path / "requests.csv").write_text("timestamp,ttft_s\n" + rows)
    assert run("import", "requests.csv", cwd=tmp_path, TZ=machine).returncode == 0
    words = ("analyze", "overview", "--window", "2026-10-25..2026-10-26")
    (tmp_path / "infractl.yaml").write_text("global:\n  time_zone: Europe/Berlin\n")
    berlin = run(*words, cwd=tmp_path, TZ=machine).stdout
    assert "2026-10-25T00:00:00+02:00..2026-10-26T00:00:00+01:00 (times in Europe/Berlin)" in berlin
    made = json.loads(run(*words, "--format", "json", cwd=tmp_path, TZ=machine).stdout)
    assert made["window"] == {"start": "2026-10-24T22:00:00Z", "end": "2026-10-25T23:00:00Z"}
    utc = run(*words, cwd=tmp_path, TZ=machine, INFRACTL_TIME_ZONE="UTC").stdout
    assert "2026-10-25T00:00:00Z..2026-10-26T00:00:00Z\n" in utc
    shanghai = run(*words, "--time-zone", "Asia/Shanghai", cwd=tmp_path, TZ=machine).stdout
    assert "(times in Asia/Shanghai)" in shanghai


def test_the_zone_of_an_import_is_that_of_its_input_alone(tmp_path: Path):
    (tmp_path / "infractl.yaml").write_text("global:\n  time_zone: Asia/Shanghai\n")
    (tmp_path / "bill.csv").write_text("ts,cost\n2026-10-25 12:00:00,1\n")
    done = run("import", "bill.csv", "--as", "bill", cwd=tmp_path)
    assert "2026-10-25T20:00:00+08:00" in done.stdout
    stored = json.loads(run("sql", "SELECT ts FROM costs", "--format", "json", cwd=tmp_path).stdout)
    assert stored == [{"ts": "2026-10-25T12:00:00Z"}]


def test_an_unknown_zone_is_refused_with_file_line_and_the_nearest(tmp_path: Path):
    (tmp_path / "infractl.yaml").write_text("global:\n  time_zone: Europe/Berln\n")
    done = run("status", cwd=tmp_path)
    assert done.returncode == 2
    assert "infractl.yaml, line 2" in done.stderr
    assert "Europe/Berlin" in done.stderr
    named = run("status", "--time-zone", "Asia/Shanghia", cwd=tmp_path / "..")
    assert (named.returncode, "Asia/Shanghai" in named.stderr) == (2, True)
