"""Rows on their way to the store: handed over together, kept for a while when it is busy, counted when it fails."""

import logging
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field

from collector.kv_events.rows import Rows
from collector.prometheus.gather import Submit
from store.batch import Batch, Receipt
from store.errors import BusyError, InfractlError
from store.tables import KV_EVENTS

FLUSH_S = 1.0
"""Rows of this long are stored together: a commit costs about 8 ms whatever its size."""
BATCH_ROWS = 10_000
STORE_FAILED = "store_failed"
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Outbox:
    """Hands what `rows` collects to `submit`.

    `full` tells to read no more: then the socket fills, the engine drops, and the replay brings it later.
    """

    source: str
    rows: Rows
    submit: Submit
    stored: int = 0
    dropped: int = 0
    _held: Batch | None = None
    _sent: deque[tuple[Batch, "Future[Receipt]"]] = field(default_factory=deque)
    _next_s: float = float("-inf")

    @property
    def waiting(self) -> int:
        """Rows not handed over yet."""
        return len(self.rows.rows) + (self._held.rows if self._held else 0)

    @property
    def full(self) -> bool:
        """Whether the store is busy and enough waits."""
        return self._held is not None and len(self.rows.rows) >= BATCH_ROWS

    def flush(self, now_s: float) -> None:
        """Hand over what waits if it is due: after a second, or as soon as it is a large batch."""
        self._settle()
        due = now_s >= self._next_s or (self._held is None and len(self.rows.rows) >= BATCH_ROWS)
        if due:
            self._next_s = now_s + FLUSH_S
            self._hand_over()

    def finish(self) -> bool:
        """Hand over all that waits; tell whether nothing waits and everything sent is stored or known to be lost."""
        self._hand_over()
        self._settle()
        return not (self._held or self._sent or self.rows.rows or self.rows.drops)

    def abandon(self) -> None:
        """Count what was not handed over as dropped."""
        self.dropped += self.waiting

    def _hand_over(self) -> None:
        batch = self._held or self._batch()
        if batch is None:
            return
        self._held = None
        try:
            self._sent.append((batch, self.submit(batch)))
        except BusyError:
            self._held = batch
        except InfractlError as error:
            self._failed(batch, error)

    def _batch(self) -> Batch | None:
        """Take the rows collected so far, as a batch; None where there is nothing."""
        if not self.rows.rows and not self.rows.drops:
            return None
        frames = {KV_EVENTS.name: self.rows.frame()} if self.rows.rows else {}
        batch = Batch(self.source, frames, dict(self.rows.drops))
        self.rows.clear()
        return batch

    def _settle(self) -> None:
        """Learn of what was sent whether it is stored."""
        while self._sent and self._sent[0][1].done():
            batch, future = self._sent.popleft()
            error = future.exception()
            if error is None:
                self.stored += future.result().stored.get(KV_EVENTS.name, 0)
            else:
                self._failed(batch, error)

    def _failed(self, batch: Batch, error: BaseException) -> None:
        """Count the rows of a batch as lost; its own counts go with the next one."""
        self.rows.drops.update(batch.drops)
        if batch.rows:
            log.warning("%s: %d rows lost: %s", self.source, batch.rows, error)
            self.dropped += batch.rows
            self.rows.drops[STORE_FAILED] += batch.rows
