"""One request of pushed samples to a `Batch`: rows of new series, samples, zeros at the start, end marks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import numpy as np
import polars as pl

from collector.prometheus.series import EARLIEST, MOST_AHEAD, Floats, Ids, available, series_frame
from collector.push.columns import STALE_BITS, Ints, Points
from collector.push.series import PushedSeries, Row
from store.batch import Batch
from store.tables import METRIC_SAMPLES, METRIC_SERIES

OLDEST_START = timedelta(hours=1)
"""A start further back gets no zero sample: the first increase would be spread over time in which nobody listened."""
KEPT = frozenset({"blank_value", "out_of_range", "not_a_number"})
"""Reasons for which a sample is stored as null; every other one means that it is not stored."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_LEEWAY_US, _EARLIEST_US = MOST_AHEAD // _US, (EARLIEST - _EPOCH) // _US


@dataclass(frozen=True, slots=True)
class Pushed:
    """A batch, and what is true once it is committed. `samples` are those of the request that it stores."""

    batch: Batch
    samples: int = 0
    described: tuple[tuple[int, Row], ...] = ()
    starts: tuple[tuple[int, Row, int], ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict)

    @property
    def tells(self) -> bool:
        """Whether there is anything for `committed` to take note of; for known series there is not."""
        return bool(self.described or self.starts or self.ends)

    @property
    def refused(self) -> dict[str, int]:
        """Samples and series that are not stored, by reason."""
        return {reason: n for reason, n in self.batch.drops.items() if reason not in KEPT}


def push(series: PushedSeries, source: str, points: Points, at: datetime, drops: Mapping[str, int]) -> Pushed:
    """Return the samples of a request received at `at` (aware); `series.lock` is held.

    `drops` are what the decoder refused. Further drops: `time_out_of_range`, and those in KEPT.
    """
    series.settle()
    counts = Counter(drops)
    now_us = (at - _EPOCH) // _US
    points = _in_time(points, now_us, counts)
    columns, slots = series.columns, points.slots
    columns.seen_us[slots] = now_us
    np.maximum.at(columns.last_us, slots, points.times_us)
    values, starts, zeros = _values(series, points, counts), *_zeros(series, points)
    ends = dict(series.ends)
    ended = np.array(list(ends), np.uint64), np.array(list(ends.values()), np.int64)
    samples = pl.concat(
        [
            _frame(*zeros, np.zeros(zeros[0].size)),
            _frame(columns.ids[slots], points.times_us, values),
            _frame(*ended, np.full(ended[0].size, np.nan)),
        ]
    )
    new = [(slot, series.at(slot).row) for slot in np.unique(slots[~columns.described[slots]]).tolist()]
    frames = {METRIC_SAMPLES.name: samples} if samples.height else {}
    if new:
        frames[METRIC_SERIES.name] = _described(new, samples)
    series.sweep(now_us)
    return Pushed(Batch(source, frames, dict(counts)), slots.size, tuple(new), starts, ends)


def committed(series: PushedSeries, pushed: Pushed) -> None:
    """Take note that a batch is stored; until then its rows go along with every sample."""
    with series.lock:
        for slot, row in pushed.described:
            if series.row_is(slot, row):
                series.columns.described[slot] = True
        for slot, row, start_us in pushed.starts:
            if series.row_is(slot, row):
                series.columns.starts_us[slot] = start_us
        for series_id, ended_us in pushed.ends.items():
            if series.ends.get(series_id) == ended_us:
                del series.ends[series_id]


def _in_time(points: Points, now_us: int, counts: Counter[str]) -> Points:
    good = (points.times_us >= _EARLIEST_US) & (points.times_us <= now_us + _LEEWAY_US)
    if good.all():
        return points
    counts["time_out_of_range"] += int((~good).sum())
    return points.where(good)


def _values(series: PushedSeries, points: Points, counts: Counter[str]) -> Floats:
    """Return the values with NaN for null, and count why."""
    missing = np.isnan(points.values) & (points.values.view(np.uint64) != STALE_BITS)
    if missing.any():
        counts["not_a_number"] += int(missing.sum())
    values, kept = available(cast("Sequence[float]", points.values), series.columns.resolved(points.slots))
    counts.update(kept)
    return values


def _zeros(series: PushedSeries, points: Points) -> tuple[tuple[tuple[int, Row, int], ...], tuple[Ids, Ints]]:
    """Return the series that started anew, and a zero sample for each at its start."""
    none = (), (np.empty(0, np.uint64), np.empty(0, np.int64))
    if points.starts_us is None:
        return none
    slots, starts_us = points.slots, points.starts_us
    new = (starts_us > 0) & (starts_us != series.columns.starts_us[slots]) & (starts_us < points.times_us)
    new &= points.times_us - starts_us <= OLDEST_START // _US
    if not new.any():
        return none
    pairs = np.unique(np.stack([slots[new], starts_us[new]], axis=1), axis=0)
    starts = tuple((slot, series.at(slot).row, start_us) for slot, start_us in pairs.tolist())
    return starts, (series.columns.ids[pairs[:, 0]], pairs[:, 1])


def _frame(ids: Ids, times_us: Ints, values: Floats) -> pl.DataFrame:
    columns = [
        pl.Series("series_id", ids, pl.UInt64),
        pl.Series("ts", times_us, pl.Int64).cast(pl.Datetime("us")),
        pl.Series("value", values, pl.Float64, nan_to_null=True),
    ]
    return pl.DataFrame(columns)


def _described(new: list[tuple[int, Row]], samples: pl.DataFrame) -> pl.DataFrame:
    first: dict[int, Any] = dict(samples.group_by("series_id").agg(pl.col("ts").min()).iter_rows())
    rows = {row["series_id"]: row for _, row in new}
    return series_frame(list(rows.values()), first)
