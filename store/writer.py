"""The one writer: a bounded queue of batches, committed in groups, each acknowledged after COMMIT."""

import threading
from collections import deque
from concurrent.futures import Future
from typing import Protocol

from store.batch import Batch, Receipt
from store.errors import BusyError, InfractlError, StoreError

QUEUE_ROWS = 200_000
GROUP_ROWS = 50_000
RETRY_AFTER_S = 1.0


class Appender(Protocol):
    """What the writer needs of a database."""

    def append(self, batches: list[Batch]) -> list[Receipt]:
        """Store the batches in one transaction."""
        ...


class Writer:
    """A thread that appends what is submitted, whatever is waiting in one transaction."""

    def __init__(self, database: Appender, queue_rows: int = QUEUE_ROWS) -> None:
        """Start the thread. `queue_rows` bounds the rows that wait; a batch more is refused."""
        self._database = database
        self._limit = queue_rows
        self._waiting: deque[tuple[Batch, Future[Receipt]]] = deque()
        self._rows = 0
        self._closing = False
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def queued_rows(self) -> int:
        """Rows submitted and not committed yet."""
        return self._rows

    def submit(self, batch: Batch) -> "Future[Receipt]":
        """Queue a batch; the future resolves after COMMIT or fails with a StoreError.

        Raises BusyError when the queue is full (a batch larger than the whole queue is taken when it is empty).
        """
        future: Future[Receipt] = Future()
        future.set_running_or_notify_cancel()  # who stops waiting must not cancel it: the batch is stored all the same
        with self._wake:
            if self._closing:
                raise BusyError("the store is closing")
            if self._rows and self._rows + batch.rows > self._limit:
                raise BusyError(f"the write queue is full ({self._rows} rows)", RETRY_AFTER_S)
            self._waiting.append((batch, future))
            self._rows += batch.rows
            self._wake.notify()
        return future

    def close(self) -> None:
        """Commit what is queued and stop."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next_group():
            self._commit(group)
            with self._wake:
                self._rows -= sum(batch.rows for batch, _ in group)

    def _next_group(self) -> list[tuple[Batch, "Future[Receipt]"]]:
        """Wait for work and take up to GROUP_ROWS of it; empty when closing and done."""
        with self._wake:
            self._wake.wait_for(lambda: self._waiting or self._closing)
            group: list[tuple[Batch, Future[Receipt]]] = []
            rows = 0
            while self._waiting and (not group or rows + self._waiting[0][0].rows <= GROUP_ROWS):
                group.append(self._waiting.popleft())
                rows += group[-1][0].rows
            return group

    def _commit(self, group: list[tuple[Batch, "Future[Receipt]"]]) -> None:
        """Append a group; when it fails, each batch alone, so that one bad batch fails only itself."""
        try:
            receipts = self._database.append([batch for batch, _ in group])
        except Exception as error:  # noqa: BLE001 - whatever it is, the senders must hear of it and the thread live on
            if len(group) == 1:
                wrapped = error if isinstance(error, InfractlError) else StoreError(f"append failed: {error}")
                group[0][1].set_exception(wrapped)
                return
            for item in group:
                self._commit([item])
            return
        for (_, future), receipt in zip(group, receipts, strict=True):
            future.set_result(receipt)
