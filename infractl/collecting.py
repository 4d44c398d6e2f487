"""Reads chosen sources into the store: once, with what came of each, or again and again until interrupted."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import click

from collector.presets.catalog import catalog
from collector.presets.names import key
from collector.prometheus.discovery.job import JobDiscovery, sources_of
from collector.prometheus.gather import Submit
from collector.prometheus.scrape import Scraper
from collector.prometheus.targets import Target
from collector.prometheus.tracker import Health
from infractl.sources import Chosen
from store.batch import Batch, Receipt
from store.tables import METRIC_SERIES

TELL_S = 1.0
"""How often changes of a target's state are looked for."""


class Appends(Protocol):
    """Where batches go: a store, a server, a spool."""

    def append(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Keep the batches; they are safe on return."""
        ...


@dataclass(slots=True)
class Outcome:
    """What one read of a target gave: its health, series that have a meaning, and the titles of their presets."""

    health: Health
    series: int = 0
    understood: int = 0
    titles: tuple[str, ...] = ()


def collect_once(chosen: Chosen, access: Appends) -> list[Outcome]:
    """Discover, then read every target once; all are stored when this returns."""
    return asyncio.run(_once(chosen, access))


def collect_forever(chosen: Chosen, access: Appends) -> None:
    """Read every target at its interval until SIGINT or SIGTERM; say on stderr when one goes down or comes up."""
    asyncio.run(_forever(chosen, access))


async def _once(chosen: Chosen, access: Appends) -> list[Outcome]:
    targets = [*chosen.targets, *await _discovered(chosen)]
    with _submitting(access) as submit:
        watch = _Watch(submit)
        scraper = Scraper(targets, watch.submit)
        try:
            healths = await asyncio.gather(*(scraper.scrape_once(target) for target in targets))
        finally:
            await scraper.close()
    return [watch.outcome(health) for health in healths]


async def _discovered(chosen: Chosen) -> list[Target]:
    """Targets of the jobs, each source asked once; what a source could not tell is said on stderr."""
    found: list[Target] = []
    for job in chosen.jobs:
        discovery = JobDiscovery(job, lambda: datetime.now(UTC))
        for index in range(len(sources_of(job))):
            await discovery.refresh(index)
        state = discovery.state()
        for error in (*state.refused, *(error for source in state.sources for error in source.errors)):
            click.echo(f"job {job.name}: {error}", err=True)
        found += discovery.targets.kept
    return found


async def _forever(chosen: Chosen, access: Appends) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    with _submitting(access) as submit:
        scraper = Scraper(chosen.targets, submit, jobs=chosen.jobs)
        running = asyncio.create_task(scraper.run())
        told: dict[str, bool | None] = {}
        while not stop.is_set():
            _tell(scraper.health(), told)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), TELL_S)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def _tell(healths: Sequence[Health], told: dict[str, bool | None]) -> None:
    for health in healths:
        subject = f"{health.job} {health.instance}"
        if health.up is not None and told.get(subject) != health.up:
            said = f"up, {health.samples} samples" if health.up else f"down: {health.last_error}"
            click.echo(f"{subject}: {said}", err=True)
            told[subject] = health.up


@contextmanager
def _submitting(access: Appends) -> Iterator[Submit]:
    """Append in a thread of its own, so that a slow store holds up no scrape."""
    with ThreadPoolExecutor(1, thread_name_prefix="collect-append") as pool:
        yield lambda batch: pool.submit(lambda: access.append([batch])[0])


class _Watch:
    """Notes which series pass on their way to the store."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._seen: dict[tuple[str | None, str | None], dict[int, tuple[str, str | None]]] = {}

    def submit(self, batch: Batch) -> "Future[Receipt]":
        """Note the series of a batch and pass it on."""
        frame = batch.frames.get(METRIC_SERIES.name)
        if frame is not None:
            columns = frame.select("job", "instance", "series_id", "name", "canonical")
            for job, instance, series_id, name, canonical in columns.iter_rows():
                self._seen.setdefault((job, instance), {})[series_id] = name, canonical
        return self._submit(batch)

    def outcome(self, health: Health) -> Outcome:
        """Say what came of a target; the series about the scrape itself are left out."""
        seen = [pair for pair in self._seen.get((health.job, health.instance), {}).values() if not _own(pair[0])]
        sources = catalog().sources({key(name) for name, _ in seen})
        return Outcome(
            health,
            series=len(seen),
            understood=sum(canonical is not None for _, canonical in seen),
            titles=tuple(catalog().files[source].title for source in sources),
        )


def _own(name: str) -> bool:
    return name == "up" or name.startswith("scrape_")
