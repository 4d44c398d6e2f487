"""Closed hours move to the lake: every row is in exactly one place, whatever else happens meanwhile."""

import subprocess
import sys
import threading
from datetime import UTC, timedelta
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest

from store.batch import Batch
from store.errors import StoreError
from store.lake import seal as sealing
from store.lake.compact import compact
from store.lake.seal import seal, waiting
from store.lake.storage import Directory
from store.lake.sweep import sweep
from tests.store.lake.rows import HOUR, LATER, NOW, append, files, opened, parts, repeated, samples, seen
from tests.store.rows import NOON, spans

POINTS = {
    "the draft is written": "store.lake.storage.Directory.create = die",
    "the file has its name": "store.lake.storage.sync_directory = die",
    "the transaction is about to commit": "store.lake.part.create_views = die",
    "the transaction is committed": "store.lake.mirror.sync = die",
}
SEAL = """
import os, sys
from pathlib import Path
import store.lake.mirror, store.lake.part, store.lake.storage
from store.lake.seal import seal
from tests.store.lake.rows import NOW, opened
def die(*_):
    os.kill(os.getpid(), 9)
database = opened(Path(sys.argv[1]))
{point}
seal(database, NOW)
"""


def test_a_sealed_hour_reads_as_before_and_is_out_of_the_database(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, list(range(100)), step=timedelta(minutes=1))
        before = seen(database)
        done = seal(database, NOW)
        assert [(item.table, item.hour, item.rows) for item in done] == [
            ("spans", NOON, 60),
            ("spans", NOON + HOUR, 40),
        ]
        assert seen(database) == before
        assert database.sql("SELECT count(*) AS n FROM hot_spans").column("n").to_pylist() == [0]
        assert seal(database, NOW) == ()


def test_the_manifest_says_what_is_in_the_file(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, list(range(10)))
        (done,) = seal(database, NOW)
        row = database.table("manifest").row(0, named=True)
        data = (tmp_path / "lake" / done.path).read_bytes()
        assert done.path == "spans/date=2026-11-30/hour=12/node=n/part-1.parquet"
        assert (row["rows"], row["bytes"], row["sha256"]) == (10, len(data), sha256(data).hexdigest())
        assert (row["min_ts"], row["max_ts"]) == (NOON, NOON + timedelta(seconds=9))


def test_samples_lie_by_series_and_then_by_time(tmp_path: Path):
    with opened(tmp_path) as database:
        database.append([Batch("t", {"metric_samples": samples(list(range(30)))})])
        (done,) = seal(database, NOW)
        keys = pl.read_parquet(tmp_path / "lake" / done.path, hive_partitioning=False).select("series_id", "ts").rows()
        assert keys == sorted(keys)
        assert len(keys) == 30


def test_an_hour_stays_until_all_of_it_is_old_enough(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, [1])
        hot = timedelta(hours=6)
        assert seal(database, NOON.replace(hour=18, minute=59, tzinfo=UTC), hot=hot) == ()
        assert len(seal(database, NOON.replace(hour=19, tzinfo=UTC), hot=hot)) == 1


def test_rows_without_a_time_or_of_the_future_stay(tmp_path: Path):
    with opened(tmp_path) as database:
        odd = spans([1, 2], NOON + timedelta(days=2)).with_columns(
            ts=pl.when(pl.col("span_id") == f"{1:016x}").then(None).otherwise(pl.col("ts"))
        )
        database.append([Batch("t", {"spans": odd})])
        assert seal(database, NOW, hot=timedelta(0)) == ()
        assert database.counts()["spans"] == 2


def test_late_rows_become_further_parts_and_repeated_ones_are_not_stored(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, [1, 2])
        seal(database, NOW)
        assert append(database, [1, 2]) == 0
        assert append(database, [3], NOON + timedelta(minutes=30)) == 1
        seal(database, NOW)
        assert [Path(path).name for path in parts(database)] == ["part-1.parquet", "part-2.parquet"]
        assert database.table("spans").height == 3


def test_rows_that_come_while_an_hour_is_written_are_neither_lost_nor_doubled(tmp_path: Path, monkeypatch):
    with opened(tmp_path) as database:
        append(database, [1, 2])
        new = iter([[3], []])
        create = Directory.create

        def create_late(self, path, draft):
            create(self, path, draft)
            thread = threading.Thread(
                target=append, args=(database, next(new), NOON + timedelta(minutes=9)), daemon=True
            )
            thread.start()
            thread.join(timeout=2)

        monkeypatch.setattr(Directory, "create", create_late)
        (done,) = seal(database, NOW)
        assert done.rows == 3
        assert sorted(database.table("spans")["span_id"]) == [f"{i:016x}" for i in (1, 2, 3)]
        assert parts(database) == [done.path]


def test_an_import_of_many_hours_is_sealed_in_groups(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(sealing, "HOURS_AT_ONCE", 3)
    with opened(tmp_path) as database:
        append(database, list(range(8)), NOON - timedelta(days=90), HOUR)
        assert len(seal(database, NOW)) == 8
        assert database.table("spans").height == 8


def test_a_lake_that_cannot_be_written_leaves_the_rows_and_says_so(tmp_path: Path, monkeypatch):
    with opened(tmp_path) as database:
        append(database, [1, 2])

        def refused(self, path, draft):
            raise StoreError("no space")

        with monkeypatch.context() as broken:
            broken.setattr(Directory, "create", refused)
            with pytest.raises(StoreError, match="no space"):
                seal(database, NOW)
        (held,) = waiting(database, NOW)
        assert (held.table, held.rows, held.hours, held.oldest) == ("spans", 2, 1, NOON)
        assert not parts(database)
        assert not [path for path in files(database) if path.endswith(".tmp")]
        seal(database, NOW)
        assert waiting(database, NOW) == ()
        assert database.table("spans").height == 2


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_when(point: str, tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, list(range(20)))
        before = seen(database)
    code = subprocess.run([sys.executable, "-c", SEAL.format(point=POINTS[point]), tmp_path], check=False).returncode
    assert code == -9
    with opened(tmp_path) as database:
        assert seen(database) == before
        assert append(database, list(range(20))) == 0
        sweep(database, LATER)
        seal(database, NOW)
        assert seen(database) == before
        assert len(parts(database)) == 1
        assert not [path for path in files(database) if path.endswith(".tmp")]


def test_a_reader_sees_the_same_total_throughout_fifty_seals(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, list(range(500)), NOON - 50 * HOUR, timedelta(minutes=6))
        wrong: list[object] = []
        done = threading.Event()

        def read():
            while not done.is_set():
                seen_now = (database.table("spans").height, database.counts()["spans"])
                if seen_now != (500, 500):
                    wrong.append(seen_now)

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for n in range(50):
            seal(database, NOW - timedelta(hours=73 - n), hot=timedelta(0))
        compact(database, NOW, parts=1)
        done.set()
        for reader in readers:
            reader.join()
        assert not wrong
        assert len(parts(database)) == 50
        assert not repeated(database)


def test_a_file_of_before_a_column_reads_as_null(tmp_path: Path):
    with opened(tmp_path) as database:
        append(database, [1, 2])
        (done,) = seal(database, NOW)
        path = tmp_path / "lake" / done.path
        pl.read_parquet(path, hive_partitioning=False).drop("quality", "links").write_parquet(path)
    with opened(tmp_path) as database:
        assert append(database, [3], NOON + timedelta(minutes=5)) == 1
        seal(database, NOW)
        compact(database, NOW, parts=2)
        assert database.table("spans")["quality"].to_list() == [None] * 3
        assert database.table("spans")["service"].to_list() == ["chat"] * 3
