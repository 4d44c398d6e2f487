"""Pages of metrics to a `Batch`: series that are new, samples with their times, values that are not available."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from collector.presets.catalog import Catalog, catalog
from collector.presets.preset import Preset
from collector.prometheus.beside import Beside, Target, Targets, target_of
from collector.prometheus.exposition import Exposition, Series
from collector.prometheus.identity import known_row, with_target
from collector.prometheus.siblings import repeated
from store.batch import Batch
from store.tables import METRIC_SAMPLES, METRIC_SERIES

Ids = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
MOST_AHEAD = timedelta(hours=1)
"""Stated times outside EARLIEST .. now + MOST_AHEAD are refused: seconds taken for milliseconds, or a broken clock."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The series of a page as the store knows them; `ids`, `low` and `high` are parallel to the page's samples.

    `low` and `high` bound the raw values; `blanks` are (interval, which samples it holds for); `rows` are the rows of
    `metric_series` by id.
    """

    series: Sequence[Series]
    ids: Ids
    low: Floats
    high: Floats
    blanks: tuple[tuple[tuple[float, float], Flags], ...]
    rows: Mapping[int, dict[str, Any]]


@dataclass(slots=True)
class Resolver:
    """Gives series their ids and meaning; remembers those of the last page.

    With `keep` a page is only a part of what comes, as in a push: series of earlier pages stay known until `forget`.
    What is on the same page is decided per target: the labels job and instance where the series carry them.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    honor_labels: bool = False
    keep: bool = False
    presets: Catalog = field(default_factory=catalog)
    _last: Resolved | None = None
    _known: dict[Series, "_Known"] = field(default_factory=dict)
    _targets: Targets = field(default_factory=Targets)

    def resolve(self, series: Sequence[Series]) -> Resolved:
        """Return ids and bounds. The same sequence as last time gives the same object, unless `keep`."""
        if self.keep or self._last is None or self._last.series is not series:
            found = self._targets.join(series, self.presets)
            known = {s: self._find(s, found[s.name], self._targets.beside[target_of(s)]) for s in series}
            self._targets.unsettle(s for s, k in known.items() if k.divided and s not in self._known)
            self._known = self._known if self.keep else {}
            self._known.update(known)
            copies = self._copies(series)
            self._last = _resolved(series, [self._second(s, known[s]) if s in copies else known[s] for s in series])
            self._targets = self._targets if self.keep else Targets(last=self._targets.beside)
        return self._last

    def forget(self, series: Collection[Series]) -> None:
        """Drop series that a sender no longer sends: they take no other one's place any more."""
        for one in series:
            self._known.pop(one, None)
        self._targets.leave(series)

    def unsettled(self) -> set[Target]:
        """Return, once, the targets where known series may mean something else than when they were resolved last.

        With `keep` only: there a newer name, or a lower rank, may come or go apart from what it takes the place of.
        """
        return self._targets.settle()

    def _copies(self, series: Sequence[Series]) -> set[Series]:
        """Return the series that count what another one of the page counts, among those of the same names."""
        names = {(target_of(s), s.name) for s in series}
        known = {s: self._known.get(s) for target, name in names for s in self._targets.members[target][name]}
        return repeated({s: k.preset for s, k in known.items() if k is not None and k.preset and k.divided})

    def _find(self, series: Series, found: tuple[Preset, ...], beside: Beside) -> "_Known":
        known = self._known.get(series)
        if known is not None and (known.beside is beside or not found):
            return known
        preset = self.presets.choose(found, series.labels, beside.names)
        counts = preset is not None and preset.counts(series.labels)
        superseded = preset is not None and counts and beside.supersede(preset, series.labels)
        canonical = counts and not superseded
        if known is not None and known.preset is preset and known.canonical == canonical:
            return _Known(known.row, preset, canonical, beside)
        return _Known(self._row(series, preset if canonical else None, superseded), preset, canonical, beside)

    def _second(self, series: Series, known: "_Known") -> "_Known":
        """Return a series that another one of the page counts already: not canonical, with an id of its own."""
        return replace(known, row=self._row(series, None, superseded=True), canonical=False)

    def _row(self, series: Series, preset: Preset | None, superseded: bool) -> dict[str, Any]:
        labels = with_target(series.labels, self.labels, self.honor_labels)
        return known_row(series.name, labels, series.kind, preset, superseded)


@dataclass(frozen=True, slots=True)
class _Known:
    row: dict[str, Any]
    preset: Preset | None
    canonical: bool
    beside: Beside

    @property
    def divided(self) -> bool:
        """Whether other series of the page may count the same."""
        return self.canonical and self.preset is not None and bool(self.preset.ranks or self.preset.parts)


def _resolved(series: Sequence[Series], known: Sequence[_Known]) -> Resolved:
    bounds = [k.preset.valid if k.preset and k.preset.valid else (-np.inf, np.inf) for k in known]
    blanks = {
        interval
        for preset in {k.preset.source: k.preset for k in known if k.preset}.values()
        for interval in preset.blank
    }
    return Resolved(
        series=series,
        ids=np.fromiter((k.row["series_id"] for k in known), np.uint64, len(known)),
        low=np.array([low for low, _ in bounds], np.float64),
        high=np.array([high for _, high in bounds], np.float64),
        blanks=tuple(
            (interval, np.array([k.preset is not None and interval in k.preset.blank for k in known], np.bool_))
            for interval in sorted(blanks)
        ),
        rows={k.row["series_id"]: k.row for k in known},
    )


def available(values: Sequence[float], resolved: Resolved) -> tuple[Floats, dict[str, int]]:
    """Return the values with NaN for those that mean nothing, and how many there were by reason.

    `blank_value`: a constant by which the source says "not available". `out_of_range`: impossible for this metric.
    """
    found = np.array(values, np.float64)
    blank = np.zeros(found.size, np.bool_)
    for (low, high), holds in resolved.blanks:
        blank |= holds & (found >= low) & (found <= high)
    outside = ~blank & ((found < resolved.low) | (found > resolved.high))
    found[blank | outside] = np.nan
    counts = {"blank_value": int(blank.sum()), "out_of_range": int(outside.sum())}
    return found, {reason: n for reason, n in counts.items() if n}


def to_batch(
    source: str,
    page: Exposition,
    at: datetime,
    labels: Mapping[str, str] | None = None,
    honor_labels: bool = True,
) -> Batch:
    """Return a page that was read from a file (or anywhere) as a batch.

    `at` (aware) is the time of samples that state none, and what stated times are held against. `labels` are added to
    every series. Drops: `time_out_of_range`; values kept as null: `blank_value`, `out_of_range`.
    """
    resolved = Resolver(labels or {}, honor_labels).resolve(page.series)
    samples, drops = sample_frame(page, resolved, at)
    drops |= {"unreadable_line": len(page.rejected)} if page.rejected else {}
    ids = set(samples["series_id"].to_list())
    rows = [row for series_id, row in resolved.rows.items() if series_id in ids]
    first = dict(samples.group_by("series_id").agg(pl.col("ts").min()).iter_rows())
    frames = {METRIC_SERIES.name: series_frame(rows, first), METRIC_SAMPLES.name: samples}
    return Batch(source, {name: frame for name, frame in frames.items() if frame.height}, drops)


def sample_frame(page: Exposition, resolved: Resolved, at: datetime) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the samples of a page as rows of `metric_samples`, and what was refused by reason."""
    values, drops = available(page.values, resolved)
    if page.times_ms is None:
        return samples_at(resolved.ids, values, at), drops
    latest_ms = (at + MOST_AHEAD).timestamp() * 1000
    good = [t is None or EARLIEST.timestamp() * 1000 <= t <= latest_ms for t in page.times_ms]
    now_us = _microseconds(at)
    times = np.array(
        [now_us if t is None else t * 1000 for t, g in zip(page.times_ms, good, strict=True) if g], np.int64
    )
    if len(times) < len(good):
        drops["time_out_of_range"] = len(good) - len(times)
    return _samples(resolved.ids[good], times, values[good]), drops


def samples_at(ids: Ids, values: Floats | None, at: datetime) -> pl.DataFrame:
    """Return samples at one time; without values they are null: the series end."""
    found = np.full(ids.size, np.nan) if values is None else values
    return _samples(ids, np.full(ids.size, _microseconds(at), np.int64), found)


def _samples(ids: Ids, times_us: npt.NDArray[np.int64], values: Floats) -> pl.DataFrame:
    columns = [
        pl.Series("series_id", ids, pl.UInt64),
        pl.Series("ts", times_us, pl.Int64).cast(pl.Datetime("us")),
        pl.Series("value", values, pl.Float64, nan_to_null=True),
    ]
    return pl.DataFrame(columns)


def series_frame(rows: Sequence[Mapping[str, Any]], first_ts: Mapping[int, datetime] | datetime) -> pl.DataFrame:
    """Return rows of `metric_series`; `first_ts` is naive UTC, one for all or by id."""
    dated = [
        {**row, "first_ts": first_ts.get(row["series_id"]) if isinstance(first_ts, Mapping) else first_ts}
        for row in rows
    ]
    return pl.DataFrame(dated, schema=METRIC_SERIES.schema())


def _microseconds(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
