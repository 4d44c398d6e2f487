"""What the scrapes of one target leave: a batch each, end marks for series that are gone, and the target's health."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from collector.prometheus.exposition import Exposition
from collector.prometheus.identity import series_row
from collector.prometheus.masking import shown
from collector.prometheus.series import Floats, Ids, Resolver, available, sample_frame, samples_at, series_frame
from collector.prometheus.shape import Shape
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
    """State of a target. `up` is None before the first scrape; `url` shows no secrets.

    `duration_s`, `lag_s` (how much later than planned it began), `samples` (as read), `excluded` (of them by
    metric_relabel_configs), `rejected` (lines that could not be read, times refused), `created` (`_created` series left
    out) and `warning` are of the last scrape; `scrapes`, `failures` and `dropped` (samples lost because the store was
    busy or failed) count since the start; `failing` counts the failures since it last worked. `next_try` is when it is
    scraped next, which is later the longer it fails; `remedy` is what to do about `last_error`, where that is known.
    `clock_skew_s` is how far the target's clock was ahead of ours at the last scrape (by its Date header: good for
    0.5 s and half of `duration_s`), None where it does not say.
    """

    job: str
    instance: str
    url: str
    up: bool | None = None
    last_scrape: datetime | None = None
    last_error: str = ""
    remedy: str = ""
    warning: str = ""
    duration_s: float | None = None
    lag_s: float | None = None
    next_try: datetime | None = None
    samples: int = 0
    excluded: int = 0
    rejected: int = 0
    created: int = 0
    scrapes: int = 0
    failures: int = 0
    failing: int = 0
    dropped: int = 0
    clock_skew_s: float | None = None


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
        self.health = Health(target.job, target.instance, shown(target.url))
        self._shape = Shape(target)
        named = self._shape.names_target
        self._resolver = Resolver({}, honor_labels=True) if named else Resolver(target.labels, target.honor_labels)
        self._own = {
            row["series_id"]: row
            for row in (series_row(name, target.labels, "gauge", unit or None) for name, unit in OWN_SERIES.items())
        }
        self._own_ids = np.array(list(self._own), np.uint64)
        self._stored = self._pending = _Stored()
        self._lost: dict[str, int] = {}

    def succeeded(self, page: Exposition, at: datetime, duration_s: float, clock_skew_s: float | None = None) -> Batch:
        """Return the samples of a page and `up` = 1; series of the last page that it lacks end.

        Raises SourceError for a page over a limit; then nothing has changed.
        """
        read = len(page.values)
        page = self._shape.apply(page)
        resolved = self._resolver.resolve(page.series)
        timed = None
        if page.times_ms is None:
            values, drops = available(page.values, resolved)
        else:
            timed, drops = sample_frame(page, resolved, at)
        if page.rejected:
            drops["unreadable_line"] = len(page.rejected)
        rejected = len(page.rejected) + drops.get("time_out_of_range", 0)
        self.health = replace(
            self._scraped(at, duration_s),
            up=True,
            last_error="",
            remedy="",
            warning="; ".join(page.warnings),
            samples=read,
            excluded=read - len(page.values),
            rejected=rejected,
            created=page.created,
            failing=0,
            clock_skew_s=clock_skew_s,
        )
        same = resolved.rows is self._stored.described and self._stored.alive.size > 0
        gone = self._stored.alive[:0] if same else np.setdiff1d(self._stored.alive, resolved.ids)
        alive = self._stored.alive if same else np.unique(resolved.ids)
        self._pending = _Stored(alive, resolved.rows, own=True)
        about = 1.0, duration_s, read, rejected
        if timed is None:  # all at one time: one frame, where building and joining three costs half the scrape
            return self._batch(self._rows(at, resolved.ids, values, gone, about), drops, at)
        return self._batch(pl.concat([timed, self._rows(at, gone[:0], np.empty(0), gone, about)]), drops, at)

    def failed(self, error: Exception, at: datetime, duration_s: float) -> Batch:
        """Return `up` = 0; every series that was alive ends."""
        self.health = replace(
            self._scraped(at, duration_s),
            up=False,
            last_error=str(error),
            remedy=getattr(error, "hint", ""),
            warning="",
            samples=0,
            excluded=0,
            rejected=0,
            created=0,
            failures=self.health.failures + 1,
            failing=self.health.failing + 1,
            clock_skew_s=None,
        )
        self._pending = _Stored(described=self._stored.described, own=True)
        gone = self._stored.alive
        return self._batch(self._rows(at, gone[:0], np.empty(0), gone, (0.0, duration_s, 0, 0)), {}, at)

    def ended(self, at: datetime) -> Batch | None:
        """Return the end of every series, `up` among them, of a target that is scraped no more; None without any."""
        if not self._stored.own:
            return None
        ids = np.concatenate([self._stored.alive, self._own_ids])
        return Batch(SOURCE, {METRIC_SAMPLES.name: samples_at(ids, None, at)})

    def planned(self, next_try: datetime, lag_s: float | None = None) -> None:
        """Take note of the schedule: when it is scraped next, and how late a scrape begins that begins now."""
        self.health = replace(self.health, next_try=next_try, lag_s=self.health.lag_s if lag_s is None else lag_s)

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

    def _rows(self, at: datetime, ids: Ids, values: Floats, gone: Ids, about: Sequence[float]) -> pl.DataFrame:
        """Return samples at one time: values, the end of series that are gone, and what is recorded of the scrape."""
        ends = np.full(gone.size, np.nan)
        return samples_at(np.concatenate([ids, gone, self._own_ids]), np.concatenate([values, ends, about]), at)

    def _batch(self, samples: pl.DataFrame, drops: dict[str, int], at: datetime) -> Batch:
        new = [] if self._stored.own else list(self._own.values())
        if self._pending.described is not self._stored.described:
            new += [row for i, row in self._pending.described.items() if i not in self._stored.described]
        frames = {METRIC_SAMPLES.name: samples}
        if new:
            frames[METRIC_SERIES.name] = series_frame(new, at.astimezone(UTC).replace(tzinfo=None))
        for reason, n in self._lost.items():
            drops[reason] = drops.get(reason, 0) + n
        return Batch(SOURCE, frames, drops)
