"""The targets of one job while they come and go, and what is known of where they come from."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from collector.prometheus.discovery.dns import DnsSource
from collector.prometheus.discovery.files import FileSource
from collector.prometheus.discovery.group import Group
from collector.prometheus.discovery.http import HttpSource
from collector.prometheus.discovery.source import Found, Source
from collector.prometheus.job import Job, Targets
from store.window import parse_duration

_SHOWN = 100  # dropped targets shown; all are counted


@dataclass(frozen=True, slots=True)
class SourceState:
    """State of one source of targets. `last_refresh` is None before the first; `errors` are those of the last."""

    kind: str
    name: str
    targets: int = 0
    last_refresh: datetime | None = None
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobState:
    """State of one job: targets scraped, dropped by relabelling (the labels of some), unusable, and its sources."""

    job: str
    targets: int
    dropped: int
    dropped_labels: tuple[Mapping[str, str], ...]
    refused: tuple[str, ...]
    sources: tuple[SourceState, ...]


def sources_of(job: Job) -> tuple[Source, ...]:
    """Return the sources that a job's configuration names."""
    config = job.config
    files = (FileSource(tuple(sd.files), _seconds(sd.refresh_interval)) for sd in config.file_sd_configs)
    urls = (HttpSource(sd.url, _seconds(sd.refresh_interval), sd) for sd in config.http_sd_configs)
    names = (
        DnsSource(tuple(sd.names), sd.type.upper(), sd.port, _seconds(sd.refresh_interval))
        for sd in config.dns_sd_configs
    )
    return (*files, *urls, *names)


class JobDiscovery:
    """Refreshes the sources of a job side by side and keeps its targets."""

    def __init__(self, job: Job, clock: Callable[[], datetime], sources: Sequence[Source] | None = None) -> None:
        self.job = job
        self._clock = clock
        self._sources = sources_of(job) if sources is None else tuple(sources)
        self._states = [SourceState(source.kind, source.name) for source in self._sources]
        self._groups: list[tuple[Group, ...]] = [() for _ in self._sources]
        self.targets: Targets = job.targets()

    def state(self) -> JobState:
        """Return what is known now."""
        static = sum(len(group.targets) for group in self.job.static)
        own = (SourceState("static", "static_configs", static),) if self.job.static else ()
        return JobState(
            job=self.job.name,
            targets=len(self.targets.kept),
            dropped=len(self.targets.dropped),
            dropped_labels=self.targets.dropped[:_SHOWN],
            refused=self.targets.refused,
            sources=(*own, *self._states),
        )

    async def run(self, changed: Callable[["JobDiscovery"], None]) -> None:
        """Refresh every source at its interval until cancelled; call `changed` when the targets may be others."""
        try:
            async with asyncio.TaskGroup() as group:
                for index in range(len(self._sources)):
                    group.create_task(self._repeat(index, changed))
        finally:
            for source in self._sources:
                await source.close()

    async def refresh(self, index: int) -> bool:
        """Refresh one source; return whether its targets are others than before."""
        source = self._sources[index]
        try:
            found = await source.refresh()
        except Exception as error:  # noqa: BLE001 - a fault in one source must not stop the others, nor scraping
            found = Found(self._groups[index], (f"internal error: {error!r}",))
        self._states[index] = replace(
            self._states[index],
            targets=sum(len(group.targets) for group in found.groups),
            last_refresh=self._clock(),
            errors=found.errors,
        )
        if found.groups == self._groups[index]:
            return False
        self._groups[index] = found.groups
        self.targets = self.job.targets(group for groups in self._groups for group in groups)
        return True

    async def _repeat(self, index: int, changed: Callable[["JobDiscovery"], None]) -> None:
        while True:
            if await self.refresh(index):
                changed(self)
            await asyncio.sleep(self._sources[index].every_s)


def _seconds(text: str) -> float:
    return parse_duration(text).total_seconds()
