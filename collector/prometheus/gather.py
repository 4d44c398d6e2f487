"""Joins the batches of many targets into one append: a commit costs about as much for one page as for fifty."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

import polars as pl

from store.batch import Batch, Receipt
from store.errors import InfractlError, StoreError

Submit = Callable[[Batch], "Future[Receipt]"]
MOST_ROWS = 50_000
"""Rows in one joined batch; a larger page goes alone. The writer commits groups of this size."""

_Waiting = list[tuple[Batch, "asyncio.Future[None]"]]


class Gather:
    """Hands batches to `submit`, those of `wait_s` at once. One source, so one row of the ledger each time."""

    def __init__(self, submit: Submit, wait_s: float = 0.0) -> None:
        self.wait_s = wait_s
        self._submit = submit
        self._waiting: _Waiting = []
        self._sent: set[asyncio.Future[Receipt]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def store(self, batch: Batch) -> None:
        """Return once the batch is stored. Raises BusyError or StoreError when it is not, as all joined to it."""
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[None] = loop.create_future()
        self._waiting.append((batch, stored))
        if self._timer is None:
            self._timer = loop.call_later(self.wait_s, self._flush)
        await stored

    async def close(self) -> None:
        """Send what waits, and wait until it is stored or lost."""
        self._flush()
        await asyncio.gather(*self._sent, return_exceptions=True)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        group: _Waiting = []
        rows = 0
        for batch, stored in waiting:
            if group and rows + batch.rows > MOST_ROWS:
                self._send(group)
                group, rows = [], 0
            group.append((batch, stored))
            rows += batch.rows
        if group:
            self._send(group)

    def _send(self, group: _Waiting) -> None:
        try:
            sent = asyncio.wrap_future(self._submit(joined([batch for batch, _ in group])))
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must hear of it
            told = error if isinstance(error, InfractlError) else StoreError(f"internal error: {error!r}")
            for _, stored in group:
                _settle(stored, told)
            return
        self._sent.add(sent)
        sent.add_done_callback(partial(self._done, group))

    def _done(self, group: _Waiting, sent: "asyncio.Future[Receipt]") -> None:
        self._sent.discard(sent)
        error = StoreError("the append was cancelled") if sent.cancelled() else sent.exception()
        for _, stored in group:
            _settle(stored, error)


def _settle(stored: "asyncio.Future[None]", error: BaseException | None) -> None:
    if stored.done():  # the scrape was cancelled meanwhile
        return
    if error is None:
        stored.set_result(None)
    else:
        stored.set_exception(error)


def joined(batches: Sequence[Batch]) -> Batch:
    """Return one batch with the rows and drops of all (of one source)."""
    if len(batches) == 1:
        return batches[0]
    frames: dict[str, list[pl.DataFrame]] = {}
    drops: dict[str, int] = {}
    for batch in batches:
        for name, frame in batch.frames.items():
            frames.setdefault(name, []).append(frame)
        for reason, rows in batch.drops.items():
            drops[reason] = drops.get(reason, 0) + rows
    return Batch(batches[0].source, {name: pl.concat(parts) for name, parts in frames.items()}, drops)
