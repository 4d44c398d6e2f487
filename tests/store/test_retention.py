"""What is too old or too much goes, oldest first, and is counted; what is not stays."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from store.batch import Batch
from store.database import Database
from store.lake.seal import seal
from store.retention import TOO_OLD, Dropped, retain, too_old
from store.rollups.build import roll
from store.settings import Retention, StoreSettings
from store.tables import SPANS
from tests.store.rows import NOON, event, seal_hour, span_ids, spans

NOW = NOON.replace(tzinfo=UTC)
DAY = timedelta(days=1)
WEEK = StoreSettings(min_free_bytes=0, retention={"spans": Retention(7 * DAY), "events": Retention(7 * DAY)})


def opened(directory: Path, settings: StoreSettings = WEEK) -> Database:
    return Database(directory, settings)


def sealed(database: Database, hours: list[datetime]) -> list[Path]:
    """Store and seal ten spans in each hour, whatever the retention of the database says."""
    kept, database.settings = database.settings, replace(database.settings, retention={})
    database.append([Batch("t", {"spans": spans(range(n * 10, n * 10 + 10), hour)}) for n, hour in enumerate(hours)])
    database.settings = kept
    return [path for hour in hours if (path := seal_hour(database, hour))]


def test_a_sealed_file_goes_when_its_last_row_is_over_the_age(tmp_path: Path):
    with opened(tmp_path) as database:
        old, _ = sealed(database, [NOON - 8 * DAY, NOON - 6 * DAY])
        gone = retain(database, NOW)
        assert gone == (Dropped("spans", "age", 10, old.stat().st_size),)
        assert database.counts()["spans"] == 10
        assert database.table("spans").height == 10
        assert old.exists()  # readers may still have it in their list; compaction's sweep deletes it
        assert retain(database, NOW) == ()


def test_a_file_with_one_row_within_the_age_stays(tmp_path: Path):
    with opened(tmp_path) as database:
        sealed(database, [NOON - 7 * DAY])
        assert retain(database, NOW) == ()
        assert retain(database, NOW + timedelta(seconds=9)) == ()
        assert [item.rows for item in retain(database, NOW + timedelta(seconds=10))] == [10]


def test_old_rows_that_were_imported_lately_are_kept_by_a_default_age(tmp_path: Path):
    with opened(tmp_path, StoreSettings(min_free_bytes=0)) as database:
        database.append([Batch("t", {"spans": spans(range(10), NOON - 800 * DAY)})])
        now = datetime.now(UTC)
        seal(database, now)
        assert retain(database, now) == ()
        assert [item.rows for item in retain(database, now + 31 * DAY)] == [10]


def test_by_size_the_oldest_files_go_until_the_rest_fits(tmp_path: Path):
    with opened(tmp_path) as database:
        paths = sealed(database, [NOON - n * DAY for n in (4, 3, 2, 1)])
        size = paths[0].stat().st_size
        database.settings = replace(WEEK, retention={"spans": Retention(size_bytes=size * 2 + size // 2)})
        gone = retain(database, NOW)
        assert [(item.table, item.reason, item.rows) for item in gone] == [("spans", "size", 20)]
        assert sorted(database.table("spans")["ts"].dt.date().unique()) == [(NOON - n * DAY).date() for n in (2, 1)]


def test_rows_of_the_database_go_by_age(tmp_path: Path):
    with opened(tmp_path) as database:
        database.append([Batch("t", {"events": event("new", NOON - DAY)})])
        kept, database.settings = database.settings, StoreSettings(min_free_bytes=0)
        frames = {"events": event("old", NOON - 9 * DAY), "spans": spans([1], NOON - 9 * DAY)}
        database.append([Batch("t", frames)])
        database.settings = kept
        assert retain(database, NOW) == (Dropped("spans", "age", 1, None), Dropped("events", "age", 1, None))
        assert database.table("events")["event_id"].to_list() == ["new"]


def test_rows_of_the_database_go_by_size_and_then_no_more(tmp_path: Path):
    settings = StoreSettings(min_free_bytes=0, retention={"events": Retention(size_bytes=4_000)})
    with opened(tmp_path, settings) as database:
        names = [f"{n:04d}" for n in range(200)]
        database.append(
            [Batch("t", {"events": pl.concat([event(n, NOON + timedelta(seconds=int(n))) for n in names])})]
        )
        (gone,) = retain(database, NOW)
        left = database.table("events").sort("ts")["event_id"].to_list()
        assert gone == Dropped("events", "size", 200 - len(left), None)
        assert left == names[-len(left) :]
        assert 0 < len(left) < 200
        assert retain(database, NOW) == ()


def test_the_ledger_keeps_its_newest_sequence(tmp_path: Path):
    with opened(tmp_path) as database:
        for n in range(3):
            database.append([Batch("t", {"spans": spans([n])})])
        database.journal.trim(3)
        retain(database, datetime.now(UTC) + 60 * DAY)
        assert database.table("ingest_batch")["sequence"].to_list() == [1, 2, 3]  # not in the rollups yet
        roll(database, datetime.now(UTC))
        retain(database, datetime.now(UTC) + 60 * DAY)
        assert database.table("ingest_batch")["sequence"].to_list() == [3]


def test_the_ledger_keeps_what_the_journal_still_has(tmp_path: Path):
    with opened(tmp_path) as database:
        for n in range(3):
            database.append([Batch("t", {"spans": spans([n])})])
        retain(database, datetime.now(UTC) + 60 * DAY)
        assert sorted(database.table("ingest_batch")["sequence"]) == [1, 2, 3]


def test_a_series_without_samples_goes_with_its_last_one(tmp_path: Path):
    settings = StoreSettings(min_free_bytes=0, retention={"metric_samples": Retention(7 * DAY)})
    series = pl.DataFrame({"series_id": [1, 2], "name": ["a", "b"]})
    samples = pl.DataFrame({"series_id": [1, 2, 1], "ts": [NOON, NOON, NOON + 3 * DAY], "value": [1.0, 2.0, 3.0]})
    with opened(tmp_path, settings) as database:
        database.append([Batch("t", {"metric_series": series, "metric_samples": samples})])
        gone = retain(database, NOW + 8 * DAY)
        assert [(item.table, item.rows) for item in gone] == [("metric_samples", 2), ("metric_series", 1)]
        assert database.table("metric_series")["series_id"].to_list() == [1]


def test_a_row_that_arrives_too_old_is_refused_and_counted(tmp_path: Path):
    now = datetime.now(UTC).replace(tzinfo=None)
    with opened(tmp_path) as database:
        batch = Batch("late", {"spans": pl.concat([spans([1], now - 9 * DAY), spans([2], now)])}, {"bad": 1})
        assert database.append([batch])[0].stored == {"spans": 1}
        drops = {row["reason"]: row["rows"] for row in database.table("ingest_drops").iter_rows(named=True)}
        assert drops == {TOO_OLD: 1, "bad": 1}
        assert span_ids(database) == [f"{2:016x}"]


@given(st.lists(st.integers(-20, 5), max_size=20), st.integers(1, 15))
def test_too_old_is_exactly_what_lies_before_the_age(days: list[int], age: int):
    settings = StoreSettings(retention={"spans": Retention(age * DAY)})
    frame = pl.DataFrame({"ts": [NOON + n * DAY for n in days]}, schema={"ts": pl.Datetime("us")})
    assert too_old(SPANS, frame, NOON, settings).to_list() == [n < -age for n in days]
    assert not too_old(SPANS, frame, NOON, StoreSettings()).any()


def test_a_reader_in_the_middle_sees_a_dropped_file_to_its_end(tmp_path: Path):
    with opened(tmp_path) as database:
        sealed(database, [NOON - 8 * DAY])
        with database.snapshot() as cursor:
            cursor.execute("SELECT count(*) FROM spans").fetchone()
            retain(database, NOW)
            assert cursor.execute("SELECT count(*) FROM spans").fetchone() == (10,)
        assert database.extent("spans") is None


def test_fine_buckets_go_before_coarse_ones(tmp_path: Path):
    ages = [(300, 89), (300, 91), (3600, 91), (3600, 729), (3600, 731)]
    frame = pl.DataFrame({"bucket": [NOON - n * DAY for _, n in ages], "step_s": [s for s, _ in ages], "series_id": 1})
    with opened(tmp_path) as database:
        database.append([Batch("t", {"rollup_metrics": frame})])
        assert retain(database, NOW) == (Dropped("rollup_metrics", "age", 2, None),)
        left = database.table("rollup_metrics").sort("step_s", "bucket")
        assert left["step_s"].to_list() == [300, 3600, 3600]
