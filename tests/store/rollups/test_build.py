"""Buckets are built when they have closed, again when rows come late, and never from rows that are gone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from store.database import Database
from store.errors import StoreError
from store.query import RollupQuery
from store.retention import retain
from store.rollups import build
from store.rollups.build import roll
from store.settings import Retention, StoreSettings
from tests.store.rollups.raw import LATER, NOON, arrivals, query, roll_all, samples, seconds, spans, store

NOW = NOON.replace(tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path):
    with Database(tmp_path, StoreSettings(retention={"spans": Retention()})) as made:
        yield made


def chat(*ats: int, **more: object) -> list[dict[str, object]]:
    return [{"at": at, "operation": "chat", "service": "a"} | more for at in ats]


def built(database: Database, step: int = 300) -> dict[datetime, int]:
    rows = query(
        database, f"SELECT bucket, sum(requests)::BIGINT AS n FROM rollup_requests WHERE step_s = {step} GROUP BY 1"
    )
    return {row["bucket"]: row["n"] for row in rows}


def test_an_open_bucket_is_left_until_it_has_closed_and_settled(database: Database):
    store(database, spans=spans(chat(10, 310)))
    roll_all(database, NOW + timedelta(seconds=400))
    assert built(database) == {NOON: 1}
    roll_all(database, NOW + timedelta(seconds=600) + build.SETTLE)
    assert built(database) == {NOON: 1, NOON + timedelta(seconds=300): 1}


def test_an_hour_is_summed_when_all_of_it_has_closed(database: Database):
    store(database, spans=spans(chat(10, 3000)))
    roll_all(database, NOW + timedelta(seconds=3500))
    assert built(database, 3600) == {}
    roll_all(database, NOW + timedelta(seconds=3600) + build.SETTLE)
    assert built(database, 3600) == {NOON: 2}


def test_late_rows_build_their_bucket_and_hour_again_and_no_other(database: Database):
    store(database, spans=spans(chat(10, 400, 900)))
    roll_all(database)
    store(database, spans=spans(chat(20, 890), first=3))
    done = roll_all(database)
    assert (sum(d.buckets for d in done), sum(d.hours for d in done)) == (2, 1)  # the one between got no rows
    assert built(database) == {NOON: 2, NOON + timedelta(seconds=300): 1, NOON + timedelta(seconds=600): 1,
                               NOON + timedelta(seconds=900): 1}  # fmt: skip
    assert built(database, 3600) == {NOON: 5}


def test_rows_that_are_stored_already_build_nothing(database: Database):
    store(database, spans=spans(chat(10)))
    roll_all(database)
    store(database, spans=spans(chat(10)))
    assert roll_all(database) == [build.Rolled()]


def test_spans_that_are_no_model_request_are_not_counted(database: Database):
    store(database, spans=spans([*chat(10, operation="execute_tool"), *chat(20, operation=None), *chat(30)]))
    roll_all(database)
    assert built(database) == {NOON: 1}


def test_work_is_bounded_and_goes_on_at_the_next_call(database: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build, "MOST_ROWS", 2)
    store(database, spans=spans(chat(*range(0, 3000, 300))))
    assert roll(database, LATER).buckets == 2
    assert roll_all(database)[-1] == build.Rolled()
    assert sum(built(database).values()) == 10


def test_rows_years_apart_are_built_without_a_walk_through_the_time_between(database: Database):
    store(database, spans=spans(chat(-20 * 365 * 86400, 10)))
    done = roll_all(database)
    assert sum(d.buckets for d in done) == 2
    assert len(done) <= 4


def test_what_is_not_built_yet_is_read_from_raw_rows(database: Database):
    store(database, spans=spans(chat(10, 400)))
    roll_all(database, NOW + timedelta(seconds=301) + build.SETTLE)
    store(database, spans=spans(chat(20), first=2))
    found = database.read(RollupQuery("requests", step_s=300), seconds(0, 3600))
    assert found.select("bucket", "requests").rows() == [(NOON, 2), (NOON + timedelta(seconds=300), 1)]


def test_a_crash_between_computing_and_storing_loses_nothing(database: Database, monkeypatch: pytest.MonkeyPatch):
    store(database, spans=spans(chat(10)))
    with monkeypatch.context() as broken:
        broken.setattr(build, "insert_all", lambda *_: (_ for _ in ()).throw(StoreError("disk full", "")))
        with pytest.raises(StoreError):
            roll_all(database)
    assert built(database) == {}
    roll_all(database)
    assert built(database) == {NOON: 1}


def test_rows_that_come_while_a_bucket_is_computed_are_not_missed(database: Database, monkeypatch: pytest.MonkeyPatch):
    store(database, spans=spans(chat(10)))
    swap, more = build._swap, [spans(chat(20), first=1)]

    def late(*given: object) -> None:
        if more:
            store(database, spans=more.pop())
        swap(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "_swap", late)
    roll_all(database)
    roll_all(database)
    assert built(database) == {NOON: 2}


def test_a_bucket_whose_raw_rows_are_gone_stays_as_it_is(database: Database):
    store(database, spans=spans(chat(10, 20, 30)))
    roll_all(database)
    with database.transaction() as cursor:
        cursor.execute("DELETE FROM hot_spans")
    store(database, spans=spans(chat(40), first=3))
    roll_all(database)
    assert built(database) == built(database, 3600) == {NOON: 3}
    assert database.read(RollupQuery("requests"), seconds(0, 3600))["requests"].to_list() == [3]


def test_more_late_rows_than_retention_took_do_not_replace_a_bucket(database: Database):
    store(database, spans=spans(chat(10)))
    roll_all(database)
    with database.transaction() as cursor:
        cursor.execute("DELETE FROM hot_spans")
    store(database, spans=spans(chat(20, 30), first=1))
    roll_all(database, raw_since=lambda _: NOW + timedelta(hours=1))
    assert built(database) == {NOON: 1}


def test_buckets_are_kept_for_90_days_and_hours_for_two_years(database: Database):
    store(database, spans=spans(chat(10, 100 * 86400, 1000 * 86400)))
    roll_all(database, NOW + timedelta(days=1001))
    assert retain(database, NOW + timedelta(days=150))
    assert list(built(database)) == [NOON + timedelta(days=100), NOON + timedelta(days=1000)]
    assert len(built(database, 3600)) == 3
    retain(database, NOW + timedelta(days=1000, hours=1))
    assert list(built(database, 3600)) == [NOON + timedelta(days=1000)]


def test_what_has_no_buckets_any_more_is_read_from_raw_rows(database: Database):
    store(database, spans=spans(chat(10, 400, 200 * 86400)))
    roll_all(database, NOW + timedelta(days=201))
    retain(database, NOW + timedelta(days=201))
    found = database.read(RollupQuery("requests", step_s=300), seconds(0, 3600))
    assert found["requests"].to_list() == [1, 1]


def test_a_store_whose_rollups_were_never_built_is_rolled_from_all_its_rows(database: Database):
    store(database, metric_samples=samples([(1, 0, 5)]), spans=spans(chat(10)))
    with database.transaction() as cursor:
        cursor.execute("UPDATE ingest_batch SET sequence = NULL")  # as an earlier version left them
    roll_all(database)
    assert built(database) == {NOON: 1}
    assert query(database, "SELECT count(*) AS n FROM rollup_metrics") == [{"n": 2}]


def test_a_pause_in_a_stream_is_a_stall_where_it_stands_out(database: Database):
    rows = chat(10, 20)
    steady, short = [40_000 * i for i in range(1, 9)], [40_000, 900_000]  # of a short answer nobody can tell
    paused = [*steady[:-1], steady[-1] + 500_000]
    store(
        database,
        spans=spans(rows),
        token_arrivals=arrivals(rows, [{"of": 0, "offsets_us": paused}, {"of": 1, "offsets_us": short}]),
    )
    roll_all(database)
    found = database.read(RollupQuery("requests"), seconds(0, 3600)).to_dicts()[0]
    assert (found["gap_n"], found["stalls"], found["gap_max_s"]) == (8, 1, 0.86)
