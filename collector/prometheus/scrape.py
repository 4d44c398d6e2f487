"""Scrapes targets until cancelled: a task each, spread over its interval; every page becomes a batch for the store."""

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import UTC, datetime
from hashlib import blake2b
from math import ceil

from collector.prometheus.fetch import Fetcher
from collector.prometheus.targets import Target
from collector.prometheus.text import PageMemo
from collector.prometheus.tracker import Health, Tracker
from store.batch import Batch, Receipt
from store.errors import BusyError, InfractlError

Submit = Callable[[Batch], "Future[Receipt]"]


class Scraper:
    """Scrapes `targets` and hands every page to `submit`; `clock` gives the time of a scrape (aware)."""

    def __init__(
        self, targets: Iterable[Target], submit: Submit, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._tracks = {id(target): (Tracker(target), PageMemo()) for target in targets}
        self._submit = submit
        self._clock = clock
        self._fetcher = Fetcher()

    async def run(self) -> None:
        """Scrape every target at its interval until cancelled. No fault of one target reaches another."""
        try:
            async with asyncio.TaskGroup() as group:
                for tracker, _ in self._tracks.values():
                    group.create_task(self._repeat(tracker.target))
                await asyncio.get_running_loop().create_future()  # without targets there is nothing to wait for
        finally:
            await self.close()

    async def scrape_once(self, target: Target) -> Health:
        """Scrape one of the targets now and wait until the page is stored, or known to be lost."""
        tracker, memo = self._tracks[id(target)]
        at, start = self._clock(), time.perf_counter()
        try:
            answer = await self._fetcher.fetch(target)
            page = await asyncio.to_thread(memo.parse, answer.body, answer.content_type)
            batch = await asyncio.to_thread(tracker.succeeded, page, at, time.perf_counter() - start)
        except InfractlError as error:
            batch = tracker.failed(error, at, time.perf_counter() - start)
        except Exception as error:  # noqa: BLE001 - a fault in reading one page must not stop the other targets
            batch = tracker.failed(RuntimeError(f"internal error: {error!r}"), at, time.perf_counter() - start)
        await self._store(tracker, batch)
        return tracker.health

    def health(self) -> list[Health]:
        """State of every target, in the order given."""
        return [tracker.health for tracker, _ in self._tracks.values()]

    async def close(self) -> None:
        """Close all connections; the scraper may be used again."""
        await self._fetcher.close()

    async def _store(self, tracker: Tracker, batch: Batch) -> None:
        try:
            await asyncio.wrap_future(self._submit(batch))
        except BusyError as error:
            tracker.lost(batch, "store_busy", f"samples dropped: {error}")
        except InfractlError as error:
            tracker.lost(batch, "store_failed", f"samples dropped: {error}")
        else:
            tracker.committed()

    async def _repeat(self, target: Target) -> None:
        """Scrape at offset, offset + interval, …; turns missed because a scrape took long are skipped."""
        loop = asyncio.get_running_loop()
        due = loop.time() + offset_s(target)
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            await self.scrape_once(target)
            due += target.interval_s * max(1, ceil((loop.time() - due) / target.interval_s))


def offset_s(target: Target) -> float:
    """Return when in its interval a target is scraped: fixed for a target, spread evenly over targets."""
    text = repr((target.url, sorted(target.labels.items()))).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") / 2**64 * target.interval_s
