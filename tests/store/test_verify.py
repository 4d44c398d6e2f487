"""Verify names each file that is not as it was written, and nothing else."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from store import snapshot
from store.batch import Batch
from store.database import FILE_NAME, Database
from store.settings import StoreSettings
from store.verify import verify
from tests.store.rows import NOON, event, seal_hour, spans

HOUR = timedelta(hours=1)


def stored(directory: Path, rows: int = 20) -> tuple[Database, Path]:
    """A store with sealed, hot and small rows and a snapshot."""
    database = Database(directory, StoreSettings(min_free_bytes=0))
    database.append([Batch("t", {"spans": spans(range(rows)), "events": event("a")})])
    sealed = seal_hour(database, NOON)
    assert sealed
    database.append([Batch("t", {"spans": spans(range(10**6, 10**6 + rows), NOON + HOUR, timedelta(0))})])
    snapshot.take(database)
    return database, sealed


def test_a_store_that_is_well_has_no_flaw(tmp_path: Path):
    database, _ = stored(tmp_path)
    with database:
        assert verify(database) == ()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda b: b[:-1], "bytes of"),
        (lambda b: b[:4] + bytes([b[4] ^ 255]) + b[5:], "SHA-256 differs"),
        (lambda b: b[:-8] + b"\0\0\0\0PAR1", "cannot be read"),
    ],
)
def test_a_sealed_file_that_changed_is_named(tmp_path: Path, change, what: str):
    database, sealed = stored(tmp_path)
    with database:
        sealed.write_bytes(change(sealed.read_bytes()))
        (flaw,) = [flaw for flaw in verify(database) if flaw.file == str(sealed)]
        assert what in flaw.what
        assert "20 rows of spans" in flaw.what
        assert flaw.remedy


def test_a_sealed_file_that_is_gone_is_named(tmp_path: Path):
    database, sealed = stored(tmp_path)
    with database:
        kept = sealed.read_bytes()
        sealed.unlink()
        assert "is missing" in next(flaw.what for flaw in verify(database) if flaw.file == str(sealed))
        sealed.write_bytes(kept)
        assert verify(database) == ()


def test_a_file_that_no_manifest_names_is_an_orphan(tmp_path: Path):
    database, sealed = stored(tmp_path)
    with database:
        orphan = sealed.with_name("part-7.parquet")
        orphan.write_bytes(sealed.read_bytes())
        assert verify(database) == ()  # a seal may be about to name it
        os.utime(orphan, (0, 0))
        (flaw,) = verify(database)
        assert (flaw.file, "no manifest" in flaw.what) == (str(orphan), True)


def test_a_damaged_journal_entry_is_named(tmp_path: Path):
    database, _ = stored(tmp_path)
    with database:
        (segment,) = database.journal.segments()
        data = bytearray(segment.path.read_bytes())
        data[-10] ^= 255
        segment.path.write_bytes(data)
        (flaw,) = verify(database)
        assert flaw.file == str(segment.path)
        assert "damaged" in flaw.what


def test_a_damaged_snapshot_is_named(tmp_path: Path):
    database, _ = stored(tmp_path)
    with database:
        found = snapshot.current(tmp_path)
        assert found
        path = tmp_path / "snapshot" / found.folder / "events.parquet"
        path.write_bytes(b"PAR1")
        (flaw,) = verify(database)
        assert flaw.file == str(path)
        path.unlink()
        assert [flaw.file for flaw in verify(database)] == [str(path)]


def test_a_damaged_block_of_the_database_is_named_with_its_table(tmp_path: Path):
    database, _ = stored(tmp_path, 20_000)
    database.checkpoint()
    with database.snapshot() as cursor:
        text = "SELECT max(block_id) FROM pragma_storage_info('hot_spans') WHERE column_name = 'span_id'"
        ((block,),) = cursor.execute(text).fetchall()
    database.close()
    file = tmp_path / FILE_NAME
    data = bytearray(file.read_bytes())
    middle = 3 * 4096 + block * 2**18 + 2**16
    data[middle : middle + 4096] = os.urandom(4096)
    file.write_bytes(data)
    with Database(tmp_path) as database:
        flaws = [flaw for flaw in verify(database) if flaw.file == str(file)]
        assert "table hot_spans cannot be read" in flaws[0].what
        assert "rebuild" in flaws[0].remedy


def test_a_row_that_is_hot_and_sealed_is_stored_twice(tmp_path: Path):
    database, _ = stored(tmp_path)
    with database:
        with database.transaction() as cursor:
            cursor.execute(
                "INSERT INTO hot_spans BY NAME SELECT * FROM spans WHERE ts < TIMESTAMP '2026-11-30 12:00:03'"
            )
        assert [flaw.what for flaw in verify(database)] == ["3 rows of spans are stored twice"]
        with database.transaction() as cursor:
            cursor.execute("DELETE FROM hot_spans WHERE ts < TIMESTAMP '2026-11-30 12:00:03'")
            cursor.execute("INSERT INTO hot_spans SELECT * FROM hot_spans LIMIT 2")
        assert [flaw.what for flaw in verify(database)] == ["2 rows of spans are stored twice"]


def test_a_database_behind_its_journal_is_named(tmp_path: Path):
    database, _ = stored(tmp_path)
    with database:
        database.journal.append([Batch("t", {"events": event("b")})])
        (flaw,) = verify(database)
        assert "lacks the last 1 entries" in flaw.what
        with database.transaction() as cursor:
            cursor.execute("UPDATE store_state SET value = 1 WHERE name = 'journal_sequence'")
        assert any("beyond its own mark 1" in flaw.what for flaw in verify(database))
