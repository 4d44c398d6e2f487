"""What the scrapes of one target leave: a batch each, end marks for series that are gone, and the target's health."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from collector.prometheus.exposition import Exposition
from collector.prometheus.identity import series_row
from collector.prometheus.series import Ids, Resolver, sample_frame, samples_at, series_frame
from collector.prometheus.targets import Target
from store.batch import Batch
from store.tables import METRIC_SAMPLES, METRIC_SERIES

SOURCE = "scrape"
OWN_SERIES = {
    "up": "",
    "scrape_duration_seconds": "s",
    "scrape_samples_scraped": "samples",
    "scrape_samples_rejected": "samples",
}
"""Series recorded about every scrape, as Prometheus does, with their units."""


@dataclass(frozen=True, slots=True)
class Health:
    """State of a target. `up` is None before the first scrape.

    `duration_s`, `samples`, `rejected` (lines that could not be read, times refused), `created` (`_created` series left
    out) and `warning` are of the last scrape; `scrapes`, `failures` and `dropped` (samples lost because the store was
    busy or failed) count since the start.
    """

    job: str
    instance: str
    url: str
    up: bool | None = None
    last_scrape: datetime | None = None
    last_error: str = ""
    warning: str = ""
    duration_s: float | None = None
    samples: int = 0
    rejected: int = 0
    created: int = 0
    scrapes: int = 0
    failures: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the store has of a target: series alive at the last scrape, and rows of `metric_series`."""

    alive: Ids = field(default_factory=lambda: np.empty(0, np.uint64))
    described: Mapping[int, Any] = field(default_factory=dict)
    own: bool = False


class Tracker:
    """Makes batches of a target's scrapes. A batch counts as stored after `committed`, as lost after `lost`."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.health = Health(target.job, target.instance, target.url)
        self._resolver = Resolver(target.labels, target.honor_labels)
        self._own = {
            row["series_id"]: row
            for row in (series_row(name, target.labels, "gauge", unit or None) for name, unit in OWN_SERIES.items())
        }
        self._stored = self._pending = _Stored()
        self._lost: dict[str, int] = {}

    def succeeded(self, page: Exposition, at: datetime, duration_s: float) -> Batch:
        """Return the samples of a page and `up` = 1; series of the last page that it lacks end."""
        resolved = self._resolver.resolve(page.series)
        samples, drops = sample_frame(page, resolved, at)
        if page.rejected:
            drops["unreadable_line"] = len(page.rejected)
        rejected = len(page.rejected) + drops.get("time_out_of_range", 0)
        self.health = replace(
            self._scraped(at, duration_s),
            up=True,
            last_error="",
            warning="; ".join(page.warnings),
            samples=len(page.values),
            rejected=rejected,
            created=page.created,
        )
        same = resolved.rows is self._stored.described and self._stored.alive.size > 0
        gone = self._stored.alive[:0] if same else np.setdiff1d(self._stored.alive, resolved.ids)
        alive = self._stored.alive if same else np.unique(resolved.ids)
        self._pending = _Stored(alive, resolved.rows, own=True)
        own = self._about(at, 1.0, duration_s, len(page.values), rejected)
        return self._batch([samples, samples_at(gone, None, at), own], drops, at)

    def failed(self, error: Exception, at: datetime, duration_s: float) -> Batch:
        """Return `up` = 0; every series that was alive ends."""
        self.health = replace(
            self._scraped(at, duration_s),
            up=False,
            last_error=str(error),
            warning="",
            samples=0,
            rejected=0,
            created=0,
            failures=self.health.failures + 1,
        )
        self._pending = _Stored(described=self._stored.described, own=True)
        return self._batch([samples_at(self._stored.alive, None, at), self._about(at, 0.0, duration_s, 0, 0)], {}, at)

    def committed(self) -> None:
        """Take note that the last batch is stored."""
        self._stored = self._pending
        self._lost = {}

    def lost(self, batch: Batch, reason: str, warning: str) -> None:
        """Take note that the last batch is not stored; the next one carries the count."""
        rows = batch.frames[METRIC_SAMPLES.name].height
        self._lost = {**batch.drops, reason: batch.drops.get(reason, 0) + rows}
        self.health = replace(self.health, dropped=self.health.dropped + rows, warning=warning)

    def _scraped(self, at: datetime, duration_s: float) -> Health:
        return replace(self.health, last_scrape=at, duration_s=duration_s, scrapes=self.health.scrapes + 1)

    def _about(self, at: datetime, *values: float) -> pl.DataFrame:
        return samples_at(np.array(list(self._own), np.uint64), np.array(values, np.float64), at)

    def _batch(self, samples: list[pl.DataFrame], drops: dict[str, int], at: datetime) -> Batch:
        new = [] if self._stored.own else list(self._own.values())
        if self._pending.described is not self._stored.described:
            new += [row for i, row in self._pending.described.items() if i not in self._stored.described]
        frames = {METRIC_SAMPLES.name: pl.concat(samples)}
        if new:
            frames[METRIC_SERIES.name] = series_frame(new, at.astimezone(UTC).replace(tzinfo=None))
        for reason, n in self._lost.items():
            drops[reason] = drops.get(reason, 0) + n
        return Batch(SOURCE, frames, drops)
