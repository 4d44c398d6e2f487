"""A disk that fills up costs nobody a row: ingest is refused, reading goes on, and it comes back by itself."""

import errno
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from store.batch import Batch
from store.database import Database
from store.errors import BusyError, StoreError, StoreFullError
from store.journal import Journal
from store.settings import StoreSettings
from store.space import Space
from store.writer import Writer
from tests.store.rows import event, spans

MIB = 2**20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 48 MiB of its own."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", mounted], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("mounting a file system is not permitted here")
    yield mounted
    subprocess.run(["umount", "-l", mounted], check=True)


def test_ingest_is_refused_while_less_is_free_than_there_should_be(tmp_path: Path):
    with Database(tmp_path, StoreSettings(min_free_bytes=2**60)) as database:
        with pytest.raises(StoreFullError, match=r"are free on the disk of .*, ingest needs") as caught:
            database.append([Batch("t", {"spans": spans([1])})])
        assert isinstance(caught.value, BusyError)
        assert caught.value.retry_after_s > 0
        assert database.counts()["spans"] == 0
        assert database.journal.last_sequence == 0
        database.space = Space(tmp_path, 0)
        assert database.append([Batch("t", {"spans": spans([1])})])[0].stored == {"spans": 1}


def test_the_disk_is_asked_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[Path] = []
    real = os.statvfs
    monkeypatch.setattr(os, "statvfs", lambda path: asked.append(path) or real(path))
    clock = iter([0.0, 0.5, 0.9, 1.0])
    space = Space(tmp_path, 0, lambda: next(clock))
    free = [space.free_bytes for _ in range(4)]
    assert len(asked) == 2
    assert all(free)


def test_a_write_that_the_disk_refused_counts_as_full_for_a_second(tmp_path: Path):
    now = [0.0]
    space = Space(tmp_path, 0, lambda: now[0])
    space.check()
    cause = OSError(errno.ENOSPC, "No space left on device")
    error = StoreError("cannot write")
    error.__cause__ = cause
    assert isinstance(space.refused(error), StoreFullError)
    with pytest.raises(StoreFullError):
        space.check()
    now[0] = 1.0
    space.check()
    assert space.refused(StoreError("something else")) is None


def test_a_full_disk_loses_nothing_acknowledged_and_ingest_comes_back(small_disk: Path):
    database = Database(small_disk / "data", StoreSettings(min_free_bytes=0))
    feed = Feed(database)
    feed.start()
    try:
        until(lambda: feed.acknowledged > 3)
        ballast = small_disk / "ballast"
        fill(ballast)
        until(lambda: feed.refused > 3)
        before = feed.acknowledged
        assert database.counts()["spans"] >= before * Feed.ROWS  # reading goes on
        ballast.unlink()
        until(lambda: feed.acknowledged > before + 3)
    finally:
        feed.stop()
    assert feed.others == []
    stored = set(database.table("spans")["span_id"])
    assert feed.span_ids <= stored
    database.close()
    with Database(small_disk / "data") as again:
        assert feed.span_ids <= set(again.table("spans")["span_id"])


def test_a_log_that_the_disk_refuses_is_opened_again_with_every_acknowledged_row(small_disk: Path):
    """The journal lies on another disk here, so that it is DuckDB that runs full, in the middle of a commit."""
    data = small_disk / "data"
    data.mkdir()
    elsewhere = small_disk.parent / "journal"
    elsewhere.mkdir()
    (data / "journal").symlink_to(elsewhere)
    database = Database(data, StoreSettings(min_free_bytes=0))
    acknowledged: set[str] = set()
    refused = 0
    for n in range(400):
        frame = spans(range(n * 2_000, n * 2_000 + 2_000))
        try:
            database.append([Batch("t", {"spans": frame})])
        except (StoreError, BusyError):
            refused += 1
            time.sleep(0.3)
            if refused > 3:
                break
        else:
            acknowledged |= set(frame["span_id"])
        if n == 5:
            fill(small_disk / "ballast", leave=MIB)
    assert refused > 3
    with pytest.raises(StoreFullError):
        database.checkpoint()  # after this DuckDB answers nothing any more
    assert acknowledged <= set(database.table("spans")["span_id"])
    (small_disk / "ballast").unlink()
    time.sleep(1.1)
    database.append([Batch("t", {"events": event("after")})])
    assert acknowledged <= set(database.table("spans")["span_id"])
    database.close()


def test_a_start_on_a_full_disk_reads_and_takes_rows_once_there_is_space(small_disk: Path):
    settings = StoreSettings(min_free_bytes=0)
    with Database(small_disk / "data", settings) as database:
        database.append([Batch("t", {"spans": spans(range(1000))})])
    journal = Journal(small_disk / "data" / "journal")  # a batch that the database does not have yet
    journal.append([Batch("t", {"spans": spans([1000])})])
    journal.close()
    fill(small_disk / "ballast")
    with Database(small_disk / "data", settings) as database:
        assert database.counts()["spans"] in (1000, 1001)
        with pytest.raises(StoreFullError):
            database.append([Batch("t", {"spans": spans([1001])})])
        assert database.table("spans").height in (1000, 1001)
        (small_disk / "ballast").unlink()
        time.sleep(1.1)
        database.append([Batch("t", {"spans": spans([1001])})])
        assert database.counts()["spans"] == 1002


class Feed:
    """Threads that send batches until told to stop, as receivers do, and note what was acknowledged."""

    ROWS = 500

    def __init__(self, database: Database) -> None:
        self.writer = Writer(database)
        self.acknowledged = self.refused = 0
        self.span_ids: set[str] = set()
        self.others: list[BaseException] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(n,), daemon=True) for n in range(2)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self.writer.close()

    def _send(self, lane: int) -> None:
        n = 0
        while not self._stopping.is_set():
            first = (lane * 10**6 + n) * self.ROWS
            frame = spans(range(first, first + self.ROWS))
            try:
                self.writer.submit(Batch("t", {"spans": frame})).result()
            except BusyError:
                with self._lock:
                    self.refused += 1
                self._stopping.wait(0.05)
                continue  # the same batch again, as a sender does
            except Exception as error:  # noqa: BLE001 - the test shows it
                self.others.append(error)
                return
            with self._lock:
                self.acknowledged += 1
                self.span_ids |= set(frame["span_id"])
            n += 1
            self._stopping.wait(0.02)


def fill(path: Path, leave: int = 0) -> None:
    """Write a file until the disk is full, or `leave` bytes short of it."""
    free = os.statvfs(path.parent)
    rest = free.f_bavail * free.f_frsize - leave
    with path.open("ab", buffering=0) as file, suppress(OSError):
        while leave == 0 or rest > 0:
            rest -= file.write(bytes(min(MIB, rest) if leave else MIB // 16))


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "nothing happened for a minute"
        time.sleep(0.02)
