"""A start succeeds whatever happened to the files, with every acknowledged row, or says exactly why not."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import snapshot
from store.appending import insert
from store.batch import Batch
from store.columns import Table
from store.database import FILE_NAME, Database
from store.errors import StoreDamagedError, StoreError, StoreLockedError
from store.journal import Journal
from store.settings import StoreSettings
from store.trim import trim_journal
from tests.store.rows import NOON, event, seal_hour, span_ids, spans

FILL = """
import os, sys
from pathlib import Path
from store.batch import Batch
from store.database import Database
from tests.store.rows import spans
database = Database(Path(sys.argv[1]))
for n in range(50):
    database.append([Batch("t", {"spans": spans([n])})])
os._exit(9)
"""
WORK = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from store import snapshot
from store.batch import Batch
from store.database import Database
from store.lake.compact import compact
from store.lake.seal import seal
from store.lake.sweep import sweep
from store.trim import trim_journal
from tests.store.rows import spans
database = Database(Path(sys.argv[1]))
first, later = int(sys.argv[2]), datetime.now(UTC) + timedelta(days=1)
for n in range(first, first + 10_000):
    database.append([Batch("t", {"spans": spans([n])})])
    print(f"{n:016x}", flush=True)
    if n % 5 == 4:
        seal(database, later, hot=timedelta(0))
        snapshot.take(database)
        trim_journal(database, later)
        compact(database, later, parts=3)
        sweep(database, later, grace=timedelta(0))
"""


def killed_after_fifty(directory: Path) -> Path:
    """A store whose process was killed after fifty acknowledged batches of a row, all of them in the log only."""
    code = subprocess.run([sys.executable, "-c", FILL, directory], check=False).returncode
    assert code == 9
    return directory / f"{FILE_NAME}.wal"


def damaged(path: Path, change: Callable[[bytearray], bytearray]) -> None:
    path.write_bytes(change(bytearray(path.read_bytes())))


def told(database: Database) -> str:
    return "\n".join(notice.what for notice in database.notices)


@pytest.mark.parametrize(("mode", "missing"), [("tail", 1), ("flip", None), ("garbage", 50), ("empty", 50)])
def test_rows_that_a_damaged_log_lost_come_back_and_it_is_said(
    tmp_path: Path, shared: Path, mode: str, missing: int | None
):
    log = killed_after_fifty(tmp_path)
    script = (shared / "cases/72-wal-damage-silent-row-loss/make_damage.py").read_text()
    names = {"mode": mode, "b": bytearray(log.read_bytes()), "os": os}
    for line in script.splitlines():
        if line.startswith("if mode=="):
            exec(line, names)
    assert isinstance(names["b"], bytearray)
    log.write_bytes(names["b"])
    with Database(tmp_path) as database:
        assert span_ids(database) == [f"{n:016x}" for n in range(50)]
        notice = database.notices[-1]  # before it, that DuckDB refused the log, where it did
        found = re.match(r"the last (\d+) batches \((\d+) of \d+ rows", notice.what)
        assert found
        assert found[1] == found[2] == str(notice.rows)
        assert notice.rows == missing or (missing is None and 0 < (notice.rows or 0) <= 50)
        assert notice.rows == 50 or " s of ingest" in notice.what
        if mode != "empty":
            assert len(list((tmp_path / "aside").glob("*.wal"))) == 1
    with Database(tmp_path) as database:
        assert database.notices[-1] == notice  # nothing was missing this time
        assert len(span_ids(database)) == 50


def test_a_kill_with_a_whole_log_says_nothing_and_keeps_no_copy(tmp_path: Path):
    killed_after_fifty(tmp_path)
    with Database(tmp_path) as database:
        assert len(span_ids(database)) == 50
        assert database.notices == ()
        assert not list((tmp_path / "aside").glob("*.wal"))


@pytest.mark.parametrize(
    "change",
    [lambda b: b[:8] + bytes([99]) + b[9:], lambda b: b[:30] + bytes(reversed(b[30:46])) + b[46:]],
    ids=["version", "identifier"],
)
def test_a_log_that_is_refused_is_set_aside_and_its_rows_come_from_the_journal(
    tmp_path: Path, change: Callable[[bytearray], bytearray]
):
    damaged(killed_after_fifty(tmp_path), change)
    with Database(tmp_path) as database:
        assert len(span_ids(database)) == 50
        assert "the last 50 batches (50 of 50 rows" in told(database)
        assert list((tmp_path / "aside").glob("*.wal"))


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b[: len(b) // 2],
        lambda b: bytearray(),
        lambda b: bytearray(os.urandom(50_000)),
        lambda b: bytes(4096) + b[4096:],
        lambda b: b[:4096] + os.urandom(8192) + b[12288:],
    ],
    ids=["half", "empty", "garbage", "no header", "no second header"],
)
def test_a_damaged_file_is_made_anew_with_every_row(tmp_path: Path, change: Callable[[bytearray], bytearray]):
    with Database(tmp_path) as database:
        history(database)
        expected = database.counts()
    damaged(tmp_path / FILE_NAME, change)
    with Database(tmp_path) as database:
        assert database.counts() == expected
        assert "the database was made anew from lake, snapshot and journal" in told(database)
        assert list((tmp_path / "aside").glob(f"*{FILE_NAME}"))
        database.append([Batch("t", {"spans": spans([99])})])
        assert len(span_ids(database)) == expected["spans"] + 1


def test_a_file_that_is_gone_is_made_anew(tmp_path: Path):
    with Database(tmp_path) as database:
        history(database)
        expected = {name: database.table(name) for name in database.counts()}
    (tmp_path / FILE_NAME).unlink()
    with Database(tmp_path) as database:
        for name, frame in expected.items():
            made = database.table(name).drop("committed", strict=False)
            assert made.sort(pl.all()).equals(frame.drop("committed", strict=False).sort(pl.all())), name
        assert "was not there" in told(database)


def test_a_rebuild_that_was_stopped_is_begun_again(tmp_path: Path):
    with Database(tmp_path) as database:
        history(database)
        expected = span_ids(database)
    (tmp_path / FILE_NAME).rename(tmp_path / f"{FILE_NAME}.rebuilding")
    damaged(tmp_path / f"{FILE_NAME}.rebuilding", lambda b: b[:20_000])
    with Database(tmp_path) as database:
        assert span_ids(database) == expected


def test_a_damaged_file_with_nothing_to_make_it_from_is_named(tmp_path: Path):
    (tmp_path / FILE_NAME).write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreDamagedError, match=r"infractl.duckdb is damaged") as caught:
        Database(tmp_path)
    assert caught.value.hint
    assert (tmp_path / FILE_NAME).exists()


def test_the_files_of_the_lake_are_enough_without_their_manifest(tmp_path: Path):
    with Database(tmp_path) as database:
        history(database)
        lake, expected = Path(database.lake), span_ids(database)
    (tmp_path / FILE_NAME).unlink()
    for path in lake.glob("manifest-*.json"):
        path.write_text("{")
    with Database(tmp_path) as database:
        assert span_ids(database) == expected
        assert "were listed instead" in told(database)


def test_a_snapshot_that_cannot_be_read_costs_small_tables_only_and_is_named(tmp_path: Path):
    with Database(tmp_path) as database:
        history(database)
        expected = span_ids(database)
    (tmp_path / FILE_NAME).unlink()
    (tmp_path / "snapshot" / snapshot.POINTER).write_text("{")
    with Database(tmp_path) as database:
        assert span_ids(database) == expected
        assert "small tables" in told(database)


@pytest.mark.parametrize("gone", [True, False])
def test_a_sealed_file_that_cannot_be_read_is_set_aside_by_name(tmp_path: Path, gone: bool):
    with Database(tmp_path) as database:
        database.append([Batch("t", {"spans": spans([n], NOON + timedelta(hours=n))}) for n in range(4)])
        paths = [seal_hour(database, NOON + timedelta(hours=n)) for n in range(3)]
    assert paths[1]
    paths[1].unlink() if gone else paths[1].write_bytes(b"PAR1")
    with Database(tmp_path) as database:
        assert span_ids(database) == [f"{n:016x}" for n in (0, 2, 3)]
        (notice,) = database.notices
        assert paths[1].name in notice.what
        assert notice.rows == 1


def test_a_lake_that_is_not_mounted_is_named_and_nothing_forgotten(tmp_path: Path):
    elsewhere = StoreSettings(lake=str(tmp_path / "disk"))
    with Database(tmp_path / "data", elsewhere) as database:
        database.append([Batch("t", {"spans": spans([n], NOON + timedelta(hours=n))}) for n in range(4)])
        for n in range(4):
            seal_hour(database, NOON + timedelta(hours=n))
    (tmp_path / "disk").rename(tmp_path / "unplugged")
    with pytest.raises(StoreDamagedError, match=r"4 of 4 sealed files below .*disk/ cannot be read") as caught:
        Database(tmp_path / "data", elsewhere)
    assert "mounted" in caught.value.hint
    (tmp_path / "unplugged").rename(tmp_path / "disk")
    with Database(tmp_path / "data", elsewhere) as database:
        assert len(span_ids(database)) == 4


def test_a_journal_entry_that_cannot_be_stored_is_named_and_left_out(tmp_path: Path):
    with Database(tmp_path) as database:
        database.append([Batch("t", {"spans": spans([1])})])
    journal = Journal(tmp_path / "journal")
    bad = pl.DataFrame({"trace_id": ["x"], "no_such_column": [1]})
    journal.append([Batch("old", {"spans": bad}), Batch("t", {"spans": spans([2])}), Batch("new", {"nowhere": bad})])
    journal.close()
    for _ in range(2):
        with Database(tmp_path) as database:
            assert span_ids(database) == [f"{n:016x}" for n in (1, 2)]
            assert sum("cannot be stored" in notice.what for notice in database.notices) == 2
            assert "no_such_column" in told(database)
    assert len(list((tmp_path / "aside").glob("*.batch"))) == 2


def test_an_entry_that_the_database_refuses_is_left_out_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Database(tmp_path).close()
    journal = Journal(tmp_path / "journal")
    journal.append([Batch("t", {"spans": spans([n])}) for n in range(9)])
    journal.close()

    def choosy(cursor: duckdb.DuckDBPyConnection, table: Table, rows: pl.DataFrame, lake: str) -> int:
        if f"{7:016x}" in rows["span_id"]:
            raise duckdb.ConversionException("not this one")
        return insert(cursor, table, rows, lake)

    monkeypatch.setattr("store.replay.insert", choosy)
    with Database(tmp_path) as database:
        assert span_ids(database) == [f"{n:016x}" for n in range(9) if n != 7]
        assert [n.rows for n in database.notices if "entry 8 cannot be stored" in n.what] == [1]


def test_a_sealed_file_that_is_lost_while_reading_is_named_in_a_sentence(tmp_path: Path):
    with Database(tmp_path) as database:
        database.append([Batch("t", {"spans": spans([1])})])
        sealed = seal_hour(database, NOON)
        assert sealed
        sealed.unlink()
        with pytest.raises(StoreDamagedError, match=sealed.name) as caught:
            database.table("spans")
        assert "--verify" in caught.value.hint
        database.append([Batch("t", {"spans": spans([2], NOON + timedelta(hours=1))})])


def test_a_file_that_another_process_reads_is_named_with_its_pid_and_left_alone(tmp_path: Path, shared: Path):
    with Database(tmp_path) as database:
        database.append([Batch("t", {"spans": spans([1])})])
    hold = shared / "cases/71-reader-while-writer-holds-lock/hold.py"
    with subprocess.Popen(
        [sys.executable, hold, tmp_path / FILE_NAME, "ro"], stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout
        assert reader.stdout.readline() == "holding\n"
        with pytest.raises(StoreLockedError, match=f"infractl.duckdb is in use by process {reader.pid}") as caught:
            Database(tmp_path)
        assert (caught.value.pid, caught.value.hint != "") == (reader.pid, True)
        reader.kill()
    with Database(tmp_path) as database:
        assert span_ids(database) == [f"{1:016x}"]
        assert database.notices == ()


@pytest.mark.parametrize("gone", [False, True], ids=["reopened", "rebuilt"])
def test_a_kill_amid_appends_and_upkeep_leaves_what_was_acknowledged_once(tmp_path: Path, gone: bool):
    acknowledged: list[str] = []
    for run in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WORK, tmp_path, str(run * 10_000)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            acknowledged += [process.stdout.readline().strip() for _ in range(13 + run)]
            process.send_signal(signal.SIGKILL)
            acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]
        if gone:
            for path in tmp_path.glob(f"{FILE_NAME}*"):
                path.unlink()
    with Database(tmp_path) as database:
        found = span_ids(database)
        assert "" not in acknowledged
        assert set(acknowledged) <= set(found)
        assert len(found) == len(set(found))
        assert len(found) - len(acknowledged) <= 4  # one batch a run was stored and not told of


def test_after_the_connection_died_a_reader_is_told_and_the_next_reads(tmp_path: Path):
    with Database(tmp_path) as database:
        database.append([Batch("t", {"spans": spans([1])})])

        def read_across_a_failure() -> None:
            with database.snapshot() as cursor:
                cursor.close()  # as a connection that DuckDB gave up
                cursor.execute("SELECT 1")

        with pytest.raises(StoreError, match="reading was cut off"):
            read_across_a_failure()
        database._link.drop()
        assert span_ids(database) == [f"{1:016x}"]
        database.append([Batch("t", {"spans": spans([2])})])
        assert len(span_ids(database)) == 2
    with pytest.raises(StoreError, match="closed"):
        database.counts()


def test_a_reopening_that_fails_is_tried_again_at_the_next_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Database(tmp_path) as database:
        database.append([Batch("t", {"spans": spans([1])})])
        database._link.drop()
        with monkeypatch.context() as patched:
            patched.setattr(database, "_connect", refuse)
            for _ in range(2):
                with pytest.raises(StoreError, match="no memory"):
                    database.counts()
                with pytest.raises(StoreError, match="no memory"):
                    database.append([Batch("t", {"spans": spans([2])})])
        assert database.append([Batch("t", {"spans": spans([2])})])[0].stored == {"spans": 1}


def test_an_entry_whose_commit_failed_is_stored_once_it_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Database(tmp_path) as database:
        with monkeypatch.context() as patched:
            patched.setattr("store.database.append_all", fail)
            with pytest.raises(StoreError, match="cannot be changed"):
                database.append([Batch("t", {"spans": spans([1])})])
        assert span_ids(database) == []
        database.append([Batch("t", {"spans": spans([1, 2])})])
        assert len(span_ids(database)) == 2


HOURS = [NOON + timedelta(hours=n) for n in range(-2, 3)]
STEP = st.one_of(
    st.tuples(st.just("append"), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), min_size=1, max_size=4)),
    st.tuples(st.just("seal"), st.integers(0, 4)),
    st.tuples(st.sampled_from(["snapshot", "trim", "reopen"]), st.none()),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEP, min_size=1, max_size=14), data=st.data())
def test_whatever_was_appended_sealed_and_trimmed_a_rebuild_has_it_all(
    steps: list[tuple[str, object]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
):
    directory = tmp_path_factory.mktemp("history")
    database = opened(directory)
    acknowledged: dict[str, datetime] = {}
    events: set[str] = set()
    later = datetime.now(UTC) + timedelta(days=1)  # so that every segment is old enough to be carried over
    for number, (kind, value) in enumerate(steps):
        match kind, value:
            case "append", list():
                rows = {f"{i:016x}": HOURS[h] + timedelta(seconds=i) for i, h in value}
                rows = {key: at for key, at in rows.items() if key not in acknowledged}
                frame = pl.concat([spans([int(key, 16)], at) for key, at in rows.items()]) if rows else spans([])
                database.append([Batch("t", {"spans": frame, "events": event(str(number))})])
                acknowledged |= rows
                events.add(str(number))
            case "seal", int():
                seal_hour(database, HOURS[value])
            case "snapshot", _:
                snapshot.take(database)
            case "trim", _:
                trim_journal(database, later)
            case _:
                database.close()
                database = opened(directory)
    database.close()
    for path in directory.glob(f"{FILE_NAME}*"):
        path.unlink()
    with opened(directory) as made:
        found = made.table("spans")
        assert dict(zip(found["span_id"], found["ts"], strict=True)) == acknowledged
        assert found.height == len(acknowledged)
        assert set(made.table("events")["event_id"]) == events


def test_a_trimmed_journal_is_smaller_and_holds_what_is_hot(tmp_path: Path):
    with opened(tmp_path) as database:
        for n in range(40):
            database.append([Batch("t", {"spans": spans(range(n * 50, n * 50 + 50), NOON, timedelta(0))})])
        far = NOON + timedelta(days=30_000)
        database.append([Batch("t", {"spans": spans([10**6], far)})])
        seal_hour(database, NOON)
        now = datetime.now(UTC)
        assert trim_journal(database, now) == 0  # no snapshot yet
        snapshot.take(database)
        before = database.journal.size_bytes
        assert trim_journal(database, now + timedelta(days=1)) > 0
        snapshot.take(database)
        trim_journal(database, now + timedelta(days=1))
        assert database.journal.size_bytes < before / 5
        entries = [batch for _, batch in database.journal.entries(0)]
        assert [batch.frames["spans"]["ts"].to_list() for batch in entries] == [[far]]
    with opened(tmp_path) as database:
        assert database.notices == ()


def test_a_journal_is_kept_while_the_lake_takes_no_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with opened(tmp_path) as database:
        database.append([Batch("t", {"spans": spans([1])})])
        seal_hour(database, NOON)
        snapshot.take(database)
        with monkeypatch.context() as patched:
            patched.setattr("store.lake.mirror.sync", refuse)
            with pytest.raises(StoreError):
                trim_journal(database, datetime.now(UTC))
        assert database.journal.oldest_sequence == 1
        assert trim_journal(database, datetime.now(UTC)) > 0


def test_a_rebuild_that_is_asked_for_keeps_every_row(tmp_path: Path):
    with Database(tmp_path) as database:
        history(database)
        expected = database.counts()
    with Database(tmp_path, rebuild=True) as database:
        assert database.counts() == expected
    with pytest.raises(StoreError, match="neither lake, snapshot nor journal"):
        Database(tmp_path / "empty", rebuild=True)


def opened(directory: Path) -> Database:
    """A store whose journal has a segment per append."""
    database = Database(directory, StoreSettings(min_free_bytes=0))
    database.journal._segment_bytes = 1
    return database


def history(database: Database) -> None:
    """Rows in each of the places: sealed and trimmed, sealed, hot, in a snapshot, in the journal only."""
    database.append([Batch("t", {"spans": spans(range(10)), "events": event("a")})])
    seal_hour(database, NOON)
    snapshot.take(database)
    trim_journal(database, datetime.now(UTC))
    assert database.journal.oldest_sequence is None
    hour = NOON + timedelta(hours=1)
    database.append([Batch("t", {"spans": spans(range(10, 20), hour), "events": event("b")})])
    seal_hour(database, hour)
    database.append([Batch("t", {"spans": spans(range(20, 30), hour)}, {"bad line": 3})])


def refuse(_: object) -> duckdb.DuckDBPyConnection:
    raise StoreError("no memory")


def fail(*_: object) -> None:
    raise duckdb.TransactionException("no")


def test_rollups_of_a_rebuilt_store_are_those_of_its_rows(tmp_path: Path):
    from datetime import UTC, datetime, timedelta

    from store.rollups.build import roll
    from store.snapshot import take

    noon = datetime(2026, 11, 30, 12)

    def some(first: int) -> pl.DataFrame:
        ids = range(first, first + 50)
        return pl.DataFrame(
            {
                "trace_id": [f"{i:032x}" for i in ids],
                "span_id": [f"{i:016x}" for i in ids],
                "ts": [noon + timedelta(seconds=11 * i) for i in ids],
                "service": ["chat"] * 50,
                "operation": ["chat"] * 50,
                "e2e_s": [0.5] * 50,
            }
        )

    def rolled(database: Database) -> int:
        while roll(database, datetime(2026, 12, 1, tzinfo=UTC)).more:
            pass
        found = database.sql("SELECT sum(requests)::BIGINT AS n FROM rollup_requests WHERE step_s = 300")
        return int(found.column(0)[0].as_py())

    with Database(tmp_path) as database:
        database.append([Batch("t", {"spans": some(0)})])
        assert rolled(database) == 50
        take(database)
        database.append([Batch("t", {"spans": some(50)})])
        assert rolled(database) == 100
        take(database)  # links the rollups of the first, which lack what came after
    with Database(tmp_path, rebuild=True) as database:
        assert rolled(database) == 100
