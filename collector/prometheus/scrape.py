"""Scrapes targets until cancelled: a task each, spread over its interval; the pages become batches for the store.

`up` is written at every try: 1, or 0 with the reason in Health. A target that keeps failing is tried less often
(`collector.prometheus.schedule`); between tries nothing is written and the last `up` holds.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from collector.prometheus.discovery.job import JobDiscovery, JobState
from collector.prometheus.exposition import Exposition
from collector.prometheus.fetch import SMALL_BYTES, Fetcher
from collector.prometheus.gather import Gather, Submit
from collector.prometheus.job import Job
from collector.prometheus.local import LocalReader
from collector.prometheus.schedule import next_due_s, offset_s
from collector.prometheus.targets import Target
from collector.prometheus.text import PageMemo
from collector.prometheus.tracker import Health, Tracker
from store.batch import Batch
from store.errors import BusyError, InfractlError, SourceError

T = TypeVar("T")
log = logging.getLogger(__name__)
GATHER_S = 1.0
"""Pages of this long are stored together, a quarter of the shortest interval at most."""
_READERS = 2  # threads that read large pages


@dataclass(slots=True)
class _Track:
    """What belongs to one target while it is scraped."""

    target: Target
    job: str
    tracker: Tracker
    memo: PageMemo = field(default_factory=PageMemo)
    local: LocalReader | None = None
    task: "asyncio.Task[None] | None" = None
    idle: bool = False
    gone: bool = False


class Scraper:
    """Scrapes `targets` and those of `jobs`; `submit` stores a batch; `clock` gives the time of a scrape (aware)."""

    def __init__(
        self,
        targets: Iterable[Target],
        submit: Submit,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        jobs: Iterable[Job] = (),
    ) -> None:
        self._clock = clock
        self._gather = Gather(submit)
        self._fetcher = Fetcher()
        self._readers: ThreadPoolExecutor | None = None
        self._group: asyncio.TaskGroup | None = None
        self._discoveries = [JobDiscovery(job, clock) for job in jobs]
        self._tracks: dict[tuple[object, ...], _Track] = {}
        for target in targets:
            self._add(target, "")
        for discovery in self._discoveries:
            self._follow(discovery)

    async def run(self) -> None:
        """Discover and scrape until cancelled. No fault of one target or source reaches another."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for discovery in self._discoveries:
                    group.create_task(discovery.run(self._follow))
                for track in self._tracks.values():
                    self._start(track)
                self._pace()
                await asyncio.get_running_loop().create_future()  # without targets there is nothing to wait for
        finally:
            self._group = None
            self._pace()
            await self.close()

    async def scrape_once(self, target: Target) -> Health:
        """Scrape one of the targets now and wait until the page is stored, or known to be lost."""
        return await self._scrape(self._tracks[target.key])

    def health(self) -> list[Health]:
        """State of every target, in the order given and found; one that is gone is not among them."""
        return [track.tracker.health for track in list(self._tracks.values())]

    def discovery(self) -> list[JobState]:
        """State of every job: its targets, and where they come from."""
        return [discovery.state() for discovery in self._discoveries]

    def absences(self) -> list[dict[str, str]]:
        """Return what the readers on this machine cannot see: job, instance, subject, what and reason of each."""
        return [
            {"job": track.target.job, "instance": track.target.instance, **asdict(absence)}
            for track in list(self._tracks.values())
            if track.local is not None
            for absence in track.local.absences()
        ]

    async def close(self) -> None:
        """Store what waits and close all connections and readers; targets may be scraped again."""
        await self._gather.close()
        await self._fetcher.close()
        for track in self._tracks.values():
            if track.local is not None:
                track.local.close()
        if self._readers is not None:
            self._readers.shutdown(wait=False, cancel_futures=True)
            self._readers = None

    def _add(self, target: Target, job: str) -> _Track:
        local = LocalReader(target.reader) if target.reader else None
        return self._tracks.setdefault(target.key, _Track(target, job, Tracker(target), local=local))

    def _follow(self, discovery: JobDiscovery) -> None:
        """Take over the targets of a job: what is new starts, what is gone ends, the rest goes on undisturbed."""
        name = discovery.job.name
        wanted = {target.key: target for target in discovery.targets.kept}
        for key in [key for key, track in self._tracks.items() if track.job == name and key not in wanted]:
            self._remove(key)
        for key, target in wanted.items():
            if key not in self._tracks:
                self._start(self._add(target, name))
        self._pace()

    def _pace(self) -> None:
        """Store at once what is scraped by hand, together what is scraped in turns."""
        shortest_s = min((track.target.interval_s for track in self._tracks.values()), default=GATHER_S)
        self._gather.wait_s = 0.0 if self._group is None else min(GATHER_S, shortest_s / 4)

    def _start(self, track: _Track) -> None:
        if self._group is not None and track.task is None:
            track.task = self._group.create_task(self._repeat(track))

    def _remove(self, key: tuple[object, ...]) -> None:
        track = self._tracks.pop(key)
        track.gone = True
        if self._group is None:
            return
        if track.idle and track.task is not None:
            track.task.cancel()
        if track.target.reader is None:
            self._fetcher.forget(track.target.url)

    async def _repeat(self, track: _Track) -> None:
        """Scrape at the turns of the target's own grid until it is gone, then end its series."""
        loop = asyncio.get_running_loop()
        due = loop.time() + offset_s(track.target)
        try:
            while not track.gone:
                track.idle = True
                await asyncio.sleep(max(0.0, due - loop.time()))
                track.idle = False
                self._plan(track, due + track.target.interval_s, loop.time() - due)
                try:
                    await self._scrape(track)
                except Exception:  # what escapes here would end the scraping of all targets
                    log.exception("a scrape of %s failed in an unexpected way", track.tracker.health.url)
                due = next_due_s(due, loop.time(), track.target.interval_s, track.tracker.health.failing)
                self._plan(track, due)
        except asyncio.CancelledError:
            if not track.gone:
                raise
        await self._end(track)

    def _plan(self, track: _Track, due: float, lag_s: float | None = None) -> None:
        wait = timedelta(seconds=due - asyncio.get_running_loop().time())
        track.tracker.planned(self._clock() + wait, lag_s)

    async def _scrape(self, track: _Track) -> Health:
        tracker = track.tracker
        at, start = self._clock(), time.perf_counter()
        try:
            page, large, skew_s = await self._page(track)
            taken = time.perf_counter() - start
            batch = (
                await self._in_thread(tracker.succeeded, page, at, taken, skew_s)
                if large
                else tracker.succeeded(page, at, taken, skew_s)
            )
        except InfractlError as error:
            batch = tracker.failed(error, at, time.perf_counter() - start)
        except Exception as error:  # noqa: BLE001 - a fault in reading one page must not stop the other targets
            batch = tracker.failed(RuntimeError(f"internal error: {error!r}"), at, time.perf_counter() - start)
        await self._store(tracker, batch)
        return tracker.health

    async def _page(self, track: _Track) -> tuple[Exposition, bool, float | None]:
        """Return the page of a target, whether it is so large that a thread is to work on it, and the clock's skew."""
        target = track.target
        if target.refused:
            raise SourceError(target.refused, "raise it, or drop targets with relabel_configs")
        if track.local is not None:
            return await track.local.read(target.timeout_s), False, None
        answer = await self._fetcher.fetch(target)
        if len(answer.body) <= SMALL_BYTES:
            return track.memo.parse(answer.body, answer.content_type), False, answer.clock_skew_s
        page = await self._in_thread(track.memo.parse, answer.body, answer.content_type)
        return page, True, answer.clock_skew_s

    async def _in_thread(self, call: Callable[..., T], *args: Any) -> T:
        """Run in threads of our own: those of the loop may all wait for names of hosts."""
        if self._readers is None:
            self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="scrape-read")
        return await asyncio.get_running_loop().run_in_executor(self._readers, lambda: call(*args))

    async def _store(self, tracker: Tracker, batch: Batch) -> None:
        try:
            await self._gather.store(batch)
        except BusyError as error:
            tracker.lost(batch, "store_busy", f"samples dropped: {error}")
        except InfractlError as error:
            tracker.lost(batch, "store_failed", f"samples dropped: {error}")
        else:
            tracker.committed()

    async def _end(self, track: _Track) -> None:
        """End the series of a target that is gone; a store that is busy gets the end with its next chance, once."""
        if track.local is not None:
            track.local.close()
        batch = track.tracker.ended(self._clock())
        for _ in range(2):
            if batch is None:
                return
            with suppress(InfractlError):
                await self._gather.store(batch)
                return
            await asyncio.sleep(GATHER_S)
