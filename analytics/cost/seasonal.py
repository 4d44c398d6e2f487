"""What a cost usually is, and where it leaves that: a robust baseline that what is unusual stays out of.

On log cost, since costs vary in proportion: the median of the same hour of the week over four weeks (Hyndman &
Athanasopoulos 2021, 13.1: multiple seasons; median against outliers). Day by day, so that nothing after an hour
takes part in its judgement. All series of a grid at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analytics.stats.smoothed import Array

Flags = NDArray[np.bool_]
Codes = NDArray[np.int8]

WEEKS, DAYS = 4, 28
BASES = ("none", "all hours", "same hour of day", "same hour of week")
OF_DAYS = ("none", "all days", "all days", "same day of week")
NONE, ALL, OF_DAY, OF_WEEK = range(4)
LEAST = (0, 24, 3, 2)
"""Values that a median of each basis needs; of days, all days need a week."""
LEAST_DAYS = 7
SPIKE = 5.0
"""Robust standard deviations of a single hour."""
REPEATED = 4
"""Days of the last 28 that went as far: then it is usual for this series."""
SIGMA_FLOOR = 0.02
"""Spread that no series is taken to be below: reserved capacity costs the same every hour, and 2.51 is no news."""
DRIFT, LIMIT, CLIP = 1.5, 15.0, 4.0
"""CUSUM (Page 1954): spreads given away per hour, sum that alerts, most that one hour adds."""
DAY_LIMIT = 5.0
"""Robust standard deviations of the mean of a day: finds what creeps, which the sum of hours forgets at night."""
LEAST_DAY = 0.5
"""Spread of a day's mean that no series is below, in spreads of an hour."""
SETTLED = 7
"""Days after which a level that lasts is the usual one: earlier hours then count shifted by its size."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Hours (or days) of a grid in the report zone: index of the local day and hour within it (0 for days)."""

    day: NDArray[np.int64]
    slot: NDArray[np.int64]
    slots: int

    @property
    def days(self) -> int:
        """Local days touched."""
        return int(self.day[-1]) + 1 if self.day.size else 0

    def rows(self) -> Iterator[tuple[int, slice]]:
        """Each day with the rows that are its hours: 23, 24 or 25."""
        bounds = np.searchsorted(self.day, np.arange(self.days + 1))
        for day in range(self.days):
            yield day, slice(int(bounds[day]), int(bounds[day + 1]))


@dataclass(slots=True)
class Judged:
    """Per hour and series: expected log cost, its spread, score, basis of comparison; where it is a spike or drifts.

    `drift` is 1 or -1 within a drift up or down, from where it is taken to have begun; `told` is from where that was
    known.
    """

    expected: Array
    sigma: Array
    score: Array
    basis: Codes
    spike: Flags
    drift: Codes
    told: Flags
    moved: list[tuple[int, int, float]] = field(default_factory=list)
    """(day, series, log size) where a level that lasted became the usual one."""


def median(values: Array) -> tuple[Array, NDArray[np.int64]]:
    """Median over the first axis without NaN, and how many values it rests on."""
    ordered = np.sort(values, axis=0)
    n = values.shape[0] - np.isnan(ordered).sum(axis=0)
    low, high = np.maximum(n - 1, 0) // 2, np.minimum(n // 2, max(values.shape[0] - 1, 0))
    pair = [np.take_along_axis(ordered, at[None], axis=0)[0] for at in (low, high)]
    return np.asarray(pair[0] + pair[1]) / 2.0, n


_BOTH = np.array([[1.0], [-1.0]])
"""Up and down."""


class Walk:
    """What is remembered from day to day over a grid of log costs (hours, series)."""

    def __init__(
        self,
        logs: Array,
        calendar: Calendar,
        left_out: Flags | None = None,
        forget: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Start before the first day. Hours in `left_out` (planned changes) are judged, yet never a baseline.

        `forget` names, by day, the series whose baseline begins anew there: a planned change of level has ended.
        """
        series, days, slots = logs.shape[1], calendar.days, calendar.slots
        self.logs, self.calendar, self.left_out, self.forget = logs, calendar, left_out, forget or {}
        self.hourly = slots > 1
        self.cells = np.full((days, slots, series), np.nan)
        self.unusual = np.zeros((days, slots, series), bool)
        self.spreads, self.tops, self.means = (np.full((days, series), np.nan) for _ in range(3))
        self.rests = np.full((days, slots, series), np.nan, np.float32)
        self.wide = np.zeros((slots, series))
        self.sums, self.on = np.zeros((2, series)), np.zeros((2, series), bool)
        self.began, self.since = np.zeros((2, series), np.int64), np.zeros((2, series), np.int64)
        self.grown = np.zeros((logs.shape[0] + 1, series))
        self.judged = Judged(
            np.full(logs.shape, np.nan), np.full(logs.shape, np.nan), np.full(logs.shape, np.nan),
            np.zeros(logs.shape, np.int8), np.zeros(logs.shape, bool), np.zeros(logs.shape, np.int8),
            np.zeros(logs.shape, bool),
        )  # fmt: skip

    def through(self) -> Judged:
        """Judge day after day."""
        for day, rows in self.calendar.rows():
            if day in self.forget:
                self.cells[:day, :, list(self.forget[day])] = np.nan
            self._judge(day, rows)
            self._remember(day, rows)
            self._settle(day, rows)
        return self.judged

    def _judge(self, day: int, rows: slice) -> None:
        expected, basis = self._baseline(day)
        slot = self.calendar.slot[rows]
        sigma = np.maximum(self._sigma(day), self._wide(day))[slot]
        score = (self.logs[rows] - expected[slot]) / sigma
        out = self.judged
        out.expected[rows], out.basis[rows], out.sigma[rows], out.score[rows] = (
            expected[slot],
            basis[slot],
            sigma,
            score,
        )
        with np.errstate(invalid="ignore"):
            out.spike[rows] = score > self._usual_top(day)
        self._sustained(day, rows, np.nan_to_num(np.clip(score, -CLIP, CLIP)))

    def _baseline(self, day: int) -> tuple[Array, Codes]:
        """Return expected log cost and basis per hour of the day: the best of three medians that has enough values."""
        shape = self.cells.shape[1:]
        expected, basis = np.full(shape, np.nan), np.zeros(shape, np.int8)
        weeks = [day - 7 * week for week in range(1, WEEKS + 1) if day >= 7 * week]
        if weeks:
            found, n = median(np.where(self.unusual[weeks], np.nan, self.cells[weeks]))
            few = np.flatnonzero((n < LEAST[OF_WEEK]).any(axis=0))
            if few.size:  # what is unusual week after week is usual
                again, times = median(self.cells[weeks][:, :, few])
                found[:, few] = np.where(n[:, few] >= LEAST[OF_WEEK], found[:, few], again)
                n[:, few] = np.maximum(n[:, few], times)
            enough = n >= LEAST[OF_WEEK]
            expected, basis = np.where(enough, found, expected), np.where(enough, OF_WEEK, basis).astype(np.int8)
        poor = np.flatnonzero((basis == NONE).any(axis=0))
        if poor.size and day:
            recent = slice(max(0, day - DAYS), day)
            past = np.where(self.unusual[recent, :, poor], np.nan, self.cells[recent, :, poor])
            found, code = self._of_days(past)
            lacking = basis[:, poor] == NONE
            expected[:, poor] = np.where(lacking, found, expected[:, poor])
            basis[:, poor] = np.where(lacking, code, basis[:, poor])
        return expected, basis

    def _of_days(self, past: Array) -> tuple[Array, Codes]:
        """Return median and basis by hour of day, else over all hours, of (days, hours, series)."""
        every, count = median(past.reshape(-1, past.shape[2]))
        least = LEAST[ALL] if self.hourly else LEAST_DAYS
        found = np.broadcast_to(np.where(count >= least, every, np.nan), past.shape[1:])
        code = np.broadcast_to(np.where(count >= least, ALL, NONE), past.shape[1:])
        if self.hourly:
            daily, n = median(past)
            enough = n >= LEAST[OF_DAY]
            found, code = np.where(enough, daily, found), np.where(enough, OF_DAY, code)
        return np.asarray(found), code.astype(np.int8)

    def _sigma(self, day: int) -> Array:
        """Spread of an hour: of daily median deviations the median of four weeks."""
        middle, n = median(self.spreads[max(0, day - DAYS) : day]) if day else (np.full(self.on.shape[1], np.nan), 0)
        return np.asarray(np.where(np.asarray(n) > 0, np.maximum(1.4826 * middle, SIGMA_FLOOR), np.nan))

    def _wide(self, day: int) -> Array:
        """Spread by hour of day, with the hours next to it, made anew each week: nights of few requests are noisy."""
        if self.hourly and day and day % 7 == 0:
            past = self.rests[max(0, day - DAYS) : day].astype(np.float64)
            middle, n = median(past)
            near = sum(np.roll(middle, shift, axis=0) for shift in (-1, 0, 1)) / 3.0
            self.wide = np.where((n >= LEAST[OF_DAY]) & np.isfinite(near), 1.4826 * near, 0.0)
        return self.wide

    def _usual_top(self, day: int) -> Array:
        """Score that a spike has to pass."""
        tops = np.nan_to_num(self.tops[max(0, day - DAYS) : day], nan=-np.inf)
        if len(tops) < REPEATED:
            return np.full(tops.shape[1], SPIKE)
        return np.asarray(np.maximum(SPIKE, -np.partition(-tops, REPEATED - 1, axis=0)[REPEATED - 1]))

    def _sustained(self, day: int, rows: slice, score: Array) -> None:
        """Follow the sums up and down and the mean of a day, hour after hour; what is on drifts."""
        middle, n = median(np.abs(self.means[max(0, day - DAYS) : day])) if day else (self.sums[0], np.zeros(1))
        limit = np.where(n >= LEAST_DAYS, DAY_LIMIT * np.maximum(1.4826 * middle, LEAST_DAY), np.inf)
        for row, hour in zip(range(rows.start, rows.stop), score, strict=True):
            self.grown[row + 1] = self.grown[row] + hour
            mean = (self.grown[row + 1] - self.grown[max(0, row - 23)]) / 24.0
            self._follow(row, _BOTH * hour, _BOTH * mean if self.hourly else np.full((2, 1), -np.inf), limit)

    def _follow(self, row: int, score: Array, mean: Array, limit: Array) -> None:
        grown = np.maximum(self.sums + score - DRIFT, 0.0)
        np.copyto(self.began, row, where=(self.sums <= 0) & (grown > 0))
        self.sums = np.minimum(grown, 2 * LIMIT)
        over = (grown > LIMIT) | (mean > limit)
        new = over & ~self.on
        if new.any():
            for side, series in zip(*np.nonzero(new), strict=True):
                self._start(int(side), row, int(series))
        self.on = (self.on | over) & ((grown > 0) | (mean > limit / 2))
        if self.on.any():
            self.judged.told[row] = self.on.any(axis=0)
            for side in (0, 1):
                self.judged.drift[row, self.on[side]] = 1 - 2 * side

    def _start(self, side: int, row: int, series: int) -> None:
        """Begin a drift where its sum last was zero; these hours leave the baseline."""
        first = int(self.began[side, series]) if self.sums[side, series] > 0 else row
        self.since[side, series] = first
        self.judged.drift[first : row + 1, series] = 1 - 2 * side
        day, slot = self.calendar.day[first : row + 1], self.calendar.slot[first : row + 1]
        self.unusual[day, slot, series] = True

    def _remember(self, day: int, rows: slice) -> None:
        out, slot, logs = self.judged, self.calendar.slot[rows], self.logs[rows]
        odd = out.spike[rows] | (out.score[rows] < -SPIKE) | (out.drift[rows] != 0)
        if self.left_out is not None:
            odd |= self.left_out[rows]
        self.cells[day, slot] = logs
        self.unusual[day, slot] |= odd
        usual = out.expected[rows].copy()
        unknown = np.flatnonzero(np.isnan(usual).any(axis=0))
        if unknown.size:  # before there is a baseline, the middle of the days so far gives a first spread
            past = self.cells[max(0, day - LEAST_DAYS) : day + 1, :, unknown]
            own = median(past.reshape(-1, unknown.size))[0]
            usual[:, unknown] = np.where(np.isnan(usual[:, unknown]), own, usual[:, unknown])
        rest = np.where(odd, np.nan, logs - usual)
        self.spreads[day] = median(np.abs(rest))[0]
        self.rests[day, slot] = np.abs(rest)
        score = np.where(np.isnan(out.score[rows]), -np.inf, out.score[rows])
        self.tops[day] = np.where(np.isfinite(score.max(axis=0)), score.max(axis=0), np.nan)
        calm = np.where(odd, np.nan, np.clip(out.score[rows], -CLIP, CLIP))
        n = (~np.isnan(calm)).sum(axis=0)
        self.means[day] = np.where(n > 0, np.nansum(calm, axis=0) / np.maximum(n, 1), np.nan)

    def _settle(self, day: int, rows: slice) -> None:
        """Take a level that has lasted for a week as the usual one."""
        last = rows.stop - 1
        for side in (0, 1):
            first_day = self.calendar.day[self.since[side]]
            for series in np.flatnonzero(self.on[side] & (day - first_day >= SETTLED)).tolist():
                first = max(int(self.since[side, series]), last - SETTLED * self.calendar.slots + 1)
                rest = self.logs[first : last + 1, series] - self.judged.expected[first : last + 1, series]
                size = float(np.nanmedian(rest)) if np.isfinite(rest).any() else 0.0
                begins = int(first_day[series])
                self._shift(begins, series, size)
                self.unusual[begins : day + 1, :, series] = False
                self.tops[begins : day + 1, series] = self.means[begins : day + 1, series] = np.nan
                self.sums[side, series], self.on[side, series] = 0.0, False
                self.judged.moved.append((day, series, size))

    def _shift(self, begins: int, series: int, size: float) -> None:
        """Move earlier days by the size of a level, but for those just before that were at the new one already."""
        week = self.cells[max(0, begins - SETTLED) : begins, :, series].copy()
        self.cells[:begins, :, series] += size
        for day, row in zip(range(max(0, begins - SETTLED), begins), week, strict=True):
            at = np.flatnonzero(self.calendar.day == day + SETTLED)
            usual = np.full(row.size, np.nan)
            usual[self.calendar.slot[at]] = self.judged.expected[at, series]
            there = np.abs(row - usual - size) < np.abs(row - usual)
            self.cells[day, there, series] = row[there]
