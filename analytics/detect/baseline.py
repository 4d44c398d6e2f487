"""What is usual at this hour, and how far each point is from it in units of the usual spread.

Median of the same hour of the week where three such weeks are there, else of the same hour of the day where two days
are, else of all that was before. Each day is judged by the days before it only.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAY_S = 86400
KEPT_DAYS = 28
LEAST_DAYS = 3
LEAST_WEEKS = 3
WARM = 60
"""Points before, from which a plain median and spread are made."""
LEAST_SPREAD = 0.01
"""Least spread as a share of the expected value: smaller steps of a nearly constant series are of no interest."""


@dataclass(frozen=True)
class Baseline:
    """Points x series: what was expected, the usual spread (1.4826 MAD), and z = (value - expected) / spread."""

    expected: Floats
    spread: Floats
    z: Floats


def middle(values: Floats) -> Floats:
    """Median of each column without its missing values (lower middle); NaN where there are none."""
    if not len(values):
        return np.full(values.shape[1], np.nan)
    count = (~np.isnan(values)).sum(axis=0)
    ordered = np.sort(values, axis=0)
    at = np.maximum(count - 1, 0) // 2
    return np.asarray(np.where(count > 0, ordered[at, np.arange(values.shape[1])], np.nan))


def baseline(values: Floats, seconds: Ints) -> Baseline:
    """Compare each point with what was usual before it. `seconds` are the Unix times of the rows, evenly spaced."""
    expected, spread = _plain(values)
    days = (seconds - seconds[0]) // DAY_S if len(seconds) else seconds
    hours, weekdays = seconds // 3600 % 24, seconds // DAY_S % 7
    residual = np.full_like(values, np.nan)
    for day in range(LEAST_DAYS - 1, int(days.max(initial=0)) + 1):
        recent = (days < day) & (days >= day - KEPT_DAYS)
        today = days == day
        for hour in range(24):
            at = today & (hours == hour)
            if not at.any():
                continue
            same = recent & (hours == hour)
            of_week = same & (weekdays == weekdays[at][0])
            usual = middle(values[of_week if len(np.unique(days[of_week])) >= LEAST_WEEKS else same])
            residual[at] = values[at] - usual
            if day >= LEAST_DAYS:
                expected[at] = np.where(np.isnan(usual), expected[at], usual)
        if day >= LEAST_DAYS:
            wide = 1.4826 * middle(np.abs(residual[recent]))
            spread[today] = np.where(np.isnan(wide), spread[today], wide)
    spread = np.maximum(spread, LEAST_SPREAD * np.abs(expected))
    z = np.divide(values - expected, spread, out=np.full_like(values, np.nan), where=spread > 0)
    return Baseline(expected, spread, z)


def _plain(values: Floats) -> tuple[Floats, Floats]:
    """Median and spread of all before, made anew each time the history has grown by a tenth."""
    expected, spread = np.full_like(values, np.nan), np.full_like(values, np.nan)
    at = WARM
    while at < len(values):
        until = min(len(values), at + max(6, at // 10))
        before = values[:at]
        usual = middle(before)
        enough = (~np.isnan(before)).sum(axis=0) >= WARM
        expected[at:until] = np.where(enough, usual, np.nan)
        spread[at:until] = np.where(enough, 1.4826 * middle(np.abs(before - usual)), np.nan)
        at = until
    return expected, spread


def conformal_p(z: Floats, at: int, column: int, points: int) -> float:
    """(1 + how many of the `points` before were as far out) / (n + 1): needs no distribution."""
    before = np.abs(z[max(0, at - points) : at, column])
    before = before[~np.isnan(before)]
    return float((1 + (before >= abs(z[at, column])).sum()) / (before.size + 1))
