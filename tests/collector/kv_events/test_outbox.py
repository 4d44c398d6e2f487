"""Tests of rows on their way to a store that is fine, busy or broken."""

from concurrent.futures import Future

from collector.kv_events.message import read_payload
from collector.kv_events.outbox import BATCH_ROWS, FLUSH_S, STORE_FAILED, Outbox
from collector.kv_events.rows import Origin, Rows
from store.batch import Batch, Receipt
from store.errors import BusyError, StoreError
from tests.collector.kv_events.engine import payload, stored


class Store:
    """Takes batches, or says that it is busy, or fails."""

    def __init__(self) -> None:
        self.busy = self.broken = False
        self.taken: list[Batch] = []

    def submit(self, batch: Batch) -> "Future[Receipt]":
        if self.busy:
            raise BusyError("full")
        future: Future[Receipt] = Future()
        if self.broken:
            future.set_exception(StoreError("disk full"))
        else:
            self.taken.append(batch)
            future.set_result(Receipt(batch.batch_id, {"kv_events": batch.rows}, {}))
        return future


def outbox(store: Store) -> Outbox:
    return Outbox("kv_events:test", Rows(), store.submit)


def fill(box: Outbox, count: int) -> None:
    message = read_payload(payload(1.0, *[stored(1)] * count))
    box.rows.add(Origin("s"), 0, message)


def test_rows_of_a_second_go_together() -> None:
    store = Store()
    box = outbox(store)
    for now_s in (0.0, 0.3, 0.6):
        fill(box, 2)
        box.flush(now_s)
    fill(box, 1)
    box.flush(FLUSH_S)
    box.flush(FLUSH_S + 0.1)
    assert [batch.rows for batch in store.taken] == [2, 5]
    assert (box.stored, box.waiting) == (7, 0)


def test_a_large_batch_does_not_wait() -> None:
    store = Store()
    box = outbox(store)
    box.flush(0.0)
    fill(box, BATCH_ROWS)
    box.flush(0.1)
    assert len(store.taken) == 1


def test_a_busy_store_gets_the_same_batch_later_and_reading_stops_at_the_bound() -> None:
    store = Store()
    box = outbox(store)
    store.busy = True
    fill(box, 3)
    box.flush(0.0)
    assert not box.full
    fill(box, BATCH_ROWS)
    box.flush(FLUSH_S)
    assert box.full
    assert box.waiting == BATCH_ROWS + 3
    store.busy = False
    assert not box.finish()
    assert box.finish()
    assert [batch.rows for batch in store.taken] == [3, BATCH_ROWS]
    assert (box.stored, box.dropped) == (BATCH_ROWS + 3, 0)


def test_what_a_broken_store_lost_is_counted_in_the_next_batch() -> None:
    store = Store()
    box = outbox(store)
    store.broken = True
    fill(box, 3)
    box.rows.drops["gap"] = 2
    box.flush(0.0)
    store.broken = False
    box.flush(FLUSH_S)
    assert box.dropped == 3
    assert store.taken[0].frames == {}
    assert store.taken[0].drops == {"gap": 2, STORE_FAILED: 3}


def test_what_is_abandoned_is_counted() -> None:
    store = Store()
    box = outbox(store)
    store.busy = True
    fill(box, 3)
    assert not box.finish()
    box.abandon()
    assert box.dropped == 3
