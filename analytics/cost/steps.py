"""Changes of level in daily cost, once all days are known: kernel change points after the pattern of the week is out.

The look back that the hour-by-hour baseline does not have: it also finds what crept in, and tells one change (a level)
from several in the same direction (a trend).
"""

from dataclasses import dataclass

import numpy as np

from analytics.cost.grid import Grid
from analytics.cost.seasonal import median
from analytics.stats.change_points import kernel_change_points
from analytics.stats.smoothed import Array

LOOK = 70
"""Days looked back: more, and the search grows with their square."""
LEAST = 14
"""Whole days below which nothing is said: each weekday has been seen twice."""
PENALTY = 3.0
"""Price of a change in the units of the kernel, where a day is at most 1; see benchmarks/accuracy/cost.md."""
BEYOND = 3.0
"""Robust standard deviations of a day that a change has to be."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change of daily level: first day of it (index of the grid's days), and its size in log cost."""

    series: int
    day: int
    size: float
    low: float
    high: float


def steps(grid: Grid, floor: float) -> list[Step]:
    """Return the changes of level of all series, in order of time."""
    amounts, first = daily(grid)
    if amounts.shape[0] < LEAST:
        return []
    return changes(np.log(np.maximum(amounts, 0.0) + floor * grid.calendar.slots), first)


def changes(logs: Array, first: int = 0) -> list[Step]:
    """Return the changes in logs of daily costs (days, series), of which the first day has the index `first`."""
    level = weekless(logs)
    spread = 1.4826 * median(np.abs(np.diff(level, axis=0)))[0] / np.sqrt(2.0)
    found = []
    for series, points in enumerate(kernel_change_points(level.T, PENALTY)):
        edges = [0, *points.tolist(), level.shape[0]]
        for start, at, end in zip(edges, edges[1:], edges[2:], strict=False):
            before, after = level[start:at, series], level[at:end, series]
            size = float(np.median(after) - np.median(before))
            if abs(size) > BEYOND * spread[series]:
                error = 1.96 * float(spread[series]) * np.sqrt(1 / before.size + 1 / after.size)
                found.append(Step(series, first + at, size, size - error, size + error))
    return found


def daily(grid: Grid) -> tuple[Array, int]:
    """Return costs (days, series) of the whole days that are complete, the last LOOK of them, and the first's index.

    A day without a line is as the day before it.
    """
    rows = [(day, part) for day, part in grid.calendar.rows() if part.stop <= grid.until]
    whole = [(day, part) for day, part in rows if part.stop - part.start >= min(grid.calendar.slots, 23)][-LOOK:]
    if not whole:
        return np.zeros((0, len(grid.keys))), 0
    made = np.array([_sum(grid.values[part]) for _, part in whole])
    for row in range(1, len(made)):
        made[row] = np.where(np.isnan(made[row]), made[row - 1], made[row])
    return np.nan_to_num(made), whole[0][0]


def _sum(values: Array) -> Array:
    some = np.isfinite(values).any(axis=0)
    return np.asarray(np.where(some, np.nansum(values, axis=0), np.nan))


def weekless(level: Array) -> Array:
    """Take the pattern of the week out of logs of daily costs: medians by weekday of what differs from the week about.

    Against medians of the whole time, a change of level halfway would look like a pattern.
    """
    days = level.shape[0]
    near = np.array([np.median(level[max(0, min(d - 3, days - 7)) : max(0, min(d - 3, days - 7)) + 7], axis=0)
                     for d in range(days)])  # fmt: skip
    rest = level - near
    usual = np.array([np.median(rest[day::7], axis=0) for day in range(7)])
    return np.asarray(level - usual[np.arange(days) % 7])
