"""The writer acknowledges after COMMIT, groups what waits, and refuses when full."""

import threading
from pathlib import Path

import polars as pl
import pytest

from store.batch import Batch, Receipt
from store.database import Database
from store.errors import BusyError, StoreError
from store.writer import Writer
from tests.store.test_database import spans


class Gate:
    """A database that holds every append until it is opened, and counts transactions."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.groups: list[int] = []

    def append(self, batches: list[Batch]) -> list[Receipt]:
        self.open.wait(10)
        self.groups.append(len(batches))
        return [Receipt(b.batch_id, {}, {}) for b in batches]


def test_what_is_acknowledged_is_stored(tmp_path: Path):
    with Database(tmp_path) as database:
        writer = Writer(database)
        futures = [writer.submit(Batch("t", {"spans": spans(10, start=10 * i)})) for i in range(20)]
        assert sum(f.result(30).stored["spans"] for f in futures) == 200
        writer.close()
        assert database.counts()["spans"] == 200
        assert writer.queued_rows == 0


def test_batches_that_wait_share_a_transaction():
    gate = Gate()
    writer = Writer(gate)
    futures = [writer.submit(Batch("t", {"spans": spans(1, start=i)})) for i in range(10)]
    gate.open.set()
    for future in futures:
        future.result(10)
    writer.close()
    assert sum(gate.groups) == 10
    assert len(gate.groups) <= 2


def test_a_full_queue_refuses_and_takes_again_when_drained():
    gate = Gate()
    writer = Writer(gate, queue_rows=10)
    first = writer.submit(Batch("t", {"spans": spans(8)}))
    with pytest.raises(BusyError, match="queue is full"):
        writer.submit(Batch("t", {"spans": spans(8, start=8)}))
    gate.open.set()
    first.result(10)
    writer.submit(Batch("t", {"spans": spans(1)})).result(10)
    writer.close()


def test_a_bad_batch_fails_alone(tmp_path: Path):
    bad = pl.DataFrame({"trace_id": ["x"], "nope": [1]})
    with Database(tmp_path) as database:
        writer = Writer(database)
        futures = [writer.submit(Batch("t", {"spans": frame})) for frame in (spans(2), bad, spans(2, start=5))]
        assert futures[0].result(10).stored["spans"] == 2
        with pytest.raises(StoreError, match="nope"):
            futures[1].result(10)
        assert futures[2].result(10).stored["spans"] == 2
        writer.close()


def test_closing_commits_what_waits_and_refuses_more(tmp_path: Path):
    with Database(tmp_path) as database:
        writer = Writer(database)
        future = writer.submit(Batch("t", {"spans": spans(3)}))
        writer.close()
        assert future.result(0).stored["spans"] == 3
        with pytest.raises(BusyError):
            writer.submit(Batch("t", {"spans": spans(1)}))
