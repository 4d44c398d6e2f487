"""A backup taken while rows come in restores to a store as it was at one acknowledged moment, which goes on."""

import shutil
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from store.backup import LIST, backup, restore
from store.batch import Batch
from store.database import FILE_NAME, Database
from store.errors import StoreDamagedError, StoreError
from store.settings import StoreSettings
from store.verify import verify
from tests.store.rows import NOON, event, seal_hour, span_ids, spans

HOUR = timedelta(hours=1)
PLAIN = StoreSettings(min_free_bytes=0)


def test_a_backup_under_ingest_is_of_one_acknowledged_moment(tmp_path: Path):
    acknowledged: list[int] = []
    stop = threading.Event()
    with Database(tmp_path / "data", PLAIN) as database:
        database.append([Batch("t", {"spans": spans(range(10**6, 10**6 + 50), NOON - HOUR)})])
        seal_hour(database, NOON - HOUR)

        def ingest() -> None:
            while not stop.is_set():
                n = len(acknowledged)
                database.append([Batch("t", {"spans": spans([n, n + 10**5], NOON), "events": event(str(n))})])
                acknowledged.append(n)

        thread = threading.Thread(target=ingest)
        thread.start()
        while len(acknowledged) < 10:
            pass
        before = len(acknowledged)
        made = backup(database, tmp_path / "backup")
        after = len(acknowledged)
        stop.set()
        thread.join()
    restored = restore(tmp_path / "backup", tmp_path / "restored")
    assert restored == made
    with Database(tmp_path / "restored", PLAIN) as database:
        events = sorted(int(name) for name in database.table("events")["event_id"])
        assert before <= len(events) <= after + 1
        assert events == list(range(len(events)))
        expected = [*range(len(events)), *range(10**5, 10**5 + len(events)), *range(10**6, 10**6 + 50)]
        assert span_ids(database) == [f"{n:016x}" for n in expected]
        assert made.total_rows == sum(database.counts().values())
        assert verify(database) == ()
        assert database.notices == ()
        database.append([Batch("t", {"spans": spans([5, 10**7])})])
        assert database.journal.last_sequence > made.sequence
    with Database(tmp_path / "restored", PLAIN) as database:
        assert len(span_ids(database)) == len(expected) + 1


def test_a_sealed_file_is_linked_and_survives_its_deletion(tmp_path: Path):
    with Database(tmp_path / "data", PLAIN) as database:
        database.append([Batch("t", {"spans": spans(range(5))})])
        sealed = seal_hour(database, NOON)
        assert sealed
        backup(database, tmp_path / "backup")
        assert sealed.stat().st_nlink == 2
    shutil.rmtree(tmp_path / "data")
    restore(tmp_path / "backup", tmp_path / "data")
    assert sealed.stat().st_nlink == 1
    with Database(tmp_path / "data", PLAIN) as database:
        assert len(span_ids(database)) == 5


def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path):
    with Database(tmp_path / "data", PLAIN) as database:
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "something").touch()
        with pytest.raises(StoreError, match="full is not empty"):
            backup(database, tmp_path / "full")
        backup(database, tmp_path / "backup")
    with pytest.raises(StoreError, match="data is not empty"):
        restore(tmp_path / "backup", tmp_path / "data")
    assert (tmp_path / "full").stat().st_nlink == 2


def test_a_backup_without_its_list_was_not_finished(tmp_path: Path):
    with Database(tmp_path / "data", PLAIN) as database:
        backup(database, tmp_path / "backup")
    (tmp_path / "backup" / LIST).unlink()
    with pytest.raises(StoreError, match="no complete backup"):
        restore(tmp_path / "backup", tmp_path / "new")


@pytest.mark.parametrize("which", ["tables/events.parquet", "lake"])
def test_a_damaged_backup_restores_nothing(tmp_path: Path, which: str):
    with Database(tmp_path / "data", PLAIN) as database:
        database.append([Batch("t", {"spans": spans(range(5)), "events": event("a")})])
        seal_hour(database, NOON)
        backup(database, tmp_path / "backup")
    path = tmp_path / "backup" / which
    if path.is_dir():
        (path,) = path.rglob("*.parquet")
    path.write_bytes(b"PAR1")
    with pytest.raises(StoreDamagedError, match=path.name):
        restore(tmp_path / "backup", tmp_path / "new")
    assert not (tmp_path / "new" / FILE_NAME).exists()
