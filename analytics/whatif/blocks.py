"""Stretches of time that are equally long: what a rate or a ratio over them is, and how sure that is."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.stats.autocorrelation import effective_size, lag1
from store.window import Window

Array = NDArray[np.float64]
HOUR = timedelta(hours=1)
LENGTHS = ((timedelta(weeks=1), 4, "weeks"), (timedelta(days=1), 4, "days"), (HOUR, 8, "hours"))
"""Length of a stretch, how many there must be, what they are called; the longest that fits is taken."""


LEAST = 4
"""Stretches, as many as independent ones, that an interval is made of."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Stretches [start, start + length), …; one of its own length where there are too few for an interval."""

    start: datetime
    length: timedelta
    count: int
    what: str

    @property
    def seconds(self) -> float:
        """Time they cover."""
        return self.count * self.length.total_seconds()

    def sums(self, hours: pl.DataFrame, *columns: str) -> list[Array]:
        """Sum columns of hourly rows per stretch; null counts as none."""
        at = ((hours["bucket"] - self.start).dt.total_seconds() // round(self.length.total_seconds())).to_numpy()
        inside = (at >= 0) & (at < self.count)
        place = at[inside].astype(np.int64)
        return [
            np.asarray(np.bincount(place, hours[c].fill_null(0).cast(pl.Float64).to_numpy()[inside], self.count))
            for c in columns
        ]


def blocks_of(hours: pl.DataFrame, window: Window) -> Blocks:
    """Choose the stretches that hourly rows cover: whole hours, the first and the last where they may be cut left out.

    Weeks where there are four, so that an interval knows how they differ; else days, else hours.
    """
    end, first = window.end.replace(tzinfo=None), hours["bucket"].min()
    assert isinstance(first, datetime)
    begin = max(window.start.replace(tzinfo=None), first)
    low, high = _ceil(begin + timedelta(microseconds=1)), _ceil(end + timedelta(microseconds=1)) - HOUR
    for length, least, what in LENGTHS:
        count = (high - low) // length
        if count >= least:
            return Blocks(high - length * count, length, count, what)
    if high - low >= HOUR:
        return Blocks(low, high - low, 1, "hours")
    return Blocks(begin, max(end - begin, timedelta(seconds=1)), 1, "minutes")


def _ceil(at: datetime) -> datetime:
    whole = at.replace(minute=0, second=0, microsecond=0)
    return whole if whole == at else whole + HOUR


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error (None: not known) and degrees of freedom, what it was made of, and how."""

    value: float
    error: float | None
    freedom: int
    n: int
    how: str
    source: str = "measured"
    most: float = float("inf")

    def limits(self) -> tuple[float | None, float | None]:
        """95 % limits; None where no error is known."""
        if self.error is None:
            return None, None
        from scipy.stats import t

        half = float(t.ppf(0.975, self.freedom)) * self.error
        return max(self.value - half, 0.0), min(self.value + half, self.most)

    def drawn(self, rng: np.random.Generator, size: int) -> Array:
        """Draw values: Student's t about the value, within what is possible."""
        noise = rng.standard_t(self.freedom, size)  # drawn always, so that other inputs do not change with this one
        return np.clip(self.value + (self.error or 0.0) * noise, 0.0, self.most)


def ratio(part: Array, whole: Array, how: str, most: float = float("inf")) -> Estimate | None:
    """Ratio of two sums over stretches; its error from how the stretches differ (linearised, as of a cluster sample).

    Neighbours that are alike count as fewer (lag-1 autocorrelation, Bartlett 1935). None without anything to divide by.
    """
    total = float(whole.sum())
    if not total > 0:
        return None
    value = float(part.sum()) / total
    rest = part - value * whole
    n = part.size
    if n < LEAST:
        return Estimate(value, None, 1, n, how, most=most)
    wanted = effective_size(n, lag1(rest), 1.0) if np.ptp(rest) > 0 else float(n)
    if wanted < LEAST:
        return Estimate(value, None, 1, n, f"{how}; too alike in a row for an interval", most=most)
    error = float(np.sqrt(np.sum(rest**2) / (n - 1) / wanted)) / (total / n)
    return Estimate(value, error, max(int(wanted) - 1, 1), n, how, most=most)
