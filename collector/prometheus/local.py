"""Readers on this machine, read like targets: in a thread, within the timeout, their samples as a page."""

import asyncio
import threading
from collections.abc import Mapping, Sequence

from collector.prometheus.exposition import Exposition, Sample, Series
from collector.prometheus.targets import Absence, Reader
from store.errors import SourceError

_Key = tuple[str, tuple[tuple[str, str], ...]]


class LocalReader:
    """Reads one reader. A read that hangs is not joined by a second one; its thread is left to end by itself."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._reading: asyncio.Future[Sequence[Sample]] | None = None
        self._memo = SampleMemo()

    async def read(self, timeout_s: float) -> Exposition:
        """Return a page of what is read. Raises SourceError, also for a read that takes longer than `timeout_s`."""
        if self._reading is not None and not self._reading.done():
            raise SourceError("the last read still hangs", "is a driver or file system stuck? restart clears it")
        self._reading = _in_thread(self._reader)
        done, _ = await asyncio.wait([self._reading], timeout=timeout_s)
        if not done:
            raise SourceError(f"nothing was read within {timeout_s:g} s", "is a driver or file system stuck?")
        return self._memo.page(self._reading.result())

    def absences(self) -> Sequence[Absence]:
        """Return what the last read could not see."""
        return self._reader.absences()

    def close(self) -> None:
        """Close the reader, unless a read of it hangs."""
        if self._reading is None or self._reading.done():
            self._reader.close()


class SampleMemo:
    """Makes pages of samples; a series that was there last time is the same object, an unchanged list the same list."""

    def __init__(self) -> None:
        self._known: dict[_Key, Series] = {}
        self._last: list[Series] = []

    def page(self, samples: Sequence[Sample]) -> Exposition:
        """Return the samples as a page. What ends in `_total` is a counter, all else a gauge."""
        known = self._known
        self._known = {}
        series = []
        for sample in samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            self._known[key] = known.get(key) or _series(sample.name, sample.labels)
            series.append(self._known[key])
        if series != self._last:
            self._last = series
        timed = any(sample.ts_ms is not None for sample in samples)
        return Exposition(
            series=self._last,
            values=[sample.value for sample in samples],
            times_ms=[sample.ts_ms for sample in samples] if timed else None,
        )


def _series(name: str, labels: Mapping[str, str]) -> Series:
    return Series(name, dict(labels), "counter" if name.endswith("_total") else "gauge")


def _in_thread(reader: Reader) -> "asyncio.Future[Sequence[Sample]]":
    """Read in a daemon thread: one that hangs must neither fill a pool nor hold up the end of the process."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[Sample]] = loop.create_future()

    def settle(samples: Sequence[Sample], error: BaseException | None) -> None:
        if not found.done():
            found.set_result(samples) if error is None else found.set_exception(error)

    def read() -> None:
        samples: Sequence[Sample] = ()
        failed: BaseException | None = None
        try:
            samples = reader.read()
        except Exception as error:  # noqa: BLE001 - whatever it is, the scrape tells it
            failed = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, samples, failed)

    found.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait any more
    threading.Thread(target=read, name="local-reader", daemon=True).start()
    return found
