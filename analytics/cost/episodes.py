"""From judged hours to drifts: what belongs together, what kind it is, how large, and whether it lasts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analytics.cost.grid import Grid
from analytics.cost.seasonal import BASES, LEAST_DAY, OF_DAYS, OF_WEEK, Judged
from analytics.stats.smoothed import Array

SPIKE, LEVEL, TREND, NEW, STOPPED = "spike", "level", "trend", "new", "stopped"
SHORT = {"hour": 24, "day": 1}
"""Buckets: what is back within them is a spike, and what is apart by no more is one drift."""
APART = {"hour": 5 * 24, "day": 5}
"""What goes on after a level was taken as usual is one trend with it."""
LATEST = {"hour": 3, "day": 1}
"""A drift lasts while one of the newest buckets is still beyond the band."""
P0 = 3.0
"""Cost over what is expected from which a person is called: 300 %."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One change of one series: rows [first, last] of the grid.

    `impact` is cost less expected over them, `ratio` that over expected (None: nothing was expected), `peak` the
    largest cost over expected of a bucket (None likewise). `size` is the usual change with its 95 % limits, as a ratio;
    None for a spike. `settled` is the row from which the new level is the usual one.
    """

    series: int
    first: int
    last: int
    kind: str
    impact: float
    ratio: float | None
    expected: float
    peak: float | None
    basis: str
    lasting: bool
    size: tuple[float, float, float] | None = None
    settled: int | None = None
    found_by: str = "hours"


def drifts(grid: Grid, judged: Judged, floor: float, least_money: float, least_ratio: float) -> list[Drift]:
    """Return the drifts of all series, those that are large enough in money and in percent."""
    found = []
    for up in (True, False):
        flags = (judged.spike | (judged.drift > 0)) if up else judged.drift < 0
        flags = flags[: grid.until]
        for series in np.flatnonzero(flags.any(axis=0)):
            for first, last in _together(_runs(flags[:, series], SHORT[grid.grain]), judged, grid, int(series)):
                one = measured(grid, judged, int(series), first, last, floor)
                if one is not None and abs(one.impact) >= least_money and abs(one.ratio or 1.0) >= least_ratio:
                    found.append(one)
    return found


def _runs(flags: NDArray[np.bool_], apart: int) -> list[tuple[int, int]]:
    """First and last row of what is no more than `apart` buckets from the next."""
    at = np.flatnonzero(flags)
    cut = np.flatnonzero(np.diff(at) > apart) + 1
    return [(int(part[0]), int(part[-1])) for part in np.split(at, cut)]


def _together(runs: Sequence[tuple[int, int]], judged: Judged, grid: Grid, series: int) -> Iterator[tuple[int, int]]:
    """Join drifts that go on where an earlier one became the usual level in between."""
    settled = [day for day, of, _ in judged.moved if of == series]
    first, last = runs[0]
    for start, end in runs[1:]:
        between = any(grid.calendar.day[first] < day <= grid.calendar.day[start] for day in settled)
        if between and start - last <= APART[grid.grain] and judged.drift[first, series] == judged.drift[end, series]:
            last = end
        else:
            yield first, last
            first, last = start, end
    yield first, last


def measured(grid: Grid, judged: Judged, series: int, first: int, last: int, floor: float) -> Drift | None:
    """Measure one drift against what was usual before it; None where nothing tells what was."""
    rows = slice(first, last + 1)
    before = usual_before(grid, judged, series, first, last)
    cost = grid.values[rows, series]
    known = np.isfinite(before) & np.isfinite(cost)
    if not known.any():
        return None
    expected = np.maximum(np.exp(before[known]) - floor, 0.0)
    impact, total = float((cost[known] - expected).sum()), float(expected.sum())
    nothing = total <= floor * known.sum()
    told = bool(judged.told[rows, series].any())
    lasting = last >= grid.until - LATEST[grid.grain]
    settled = _settled(grid, judged, series, first, last)
    codes = judged.basis[rows, series][known]
    names = BASES if grid.grain == "hour" else OF_DAYS
    made = Drift(
        series, first, last, SPIKE, impact, None if nothing else impact / total,
        0.0 if nothing else total / int(known.sum()),
        None if nothing else float((cost[known] / np.maximum(expected, floor)).max()),
        names[int(codes.max(initial=0))], lasting and settled is None, settled=settled,
        found_by="hours" if grid.grain == "hour" else "days",
    )  # fmt: skip
    if nothing and impact > 0:
        return replace(made, kind=NEW)
    if impact < 0 and float(cost[known].max()) <= floor and last - first >= SHORT[grid.grain]:
        return replace(made, kind=STOPPED)
    if last - first < SHORT[grid.grain] and not (lasting and told):
        return replace(made, kind=SPIKE)
    rest = np.log(np.maximum(cost[known], 0.0) + floor) - before[known]
    kind, size = shape(rest, grid, judged, series, first)
    return replace(made, kind=kind, size=size)


def usual_before(grid: Grid, judged: Judged, series: int, first: int, last: int) -> Array:
    """Return the expected log cost as it was before the drift: without levels that became usual during it."""
    rows = slice(first, last + 1)
    before = judged.expected[rows, series].copy()
    for day, of, size in judged.moved:
        if of == series and day >= grid.calendar.day[first]:
            before[grid.calendar.day[rows] > day] -= size
    return before


def _settled(grid: Grid, judged: Judged, series: int, first: int, last: int) -> int | None:
    """Return the row after which the level counts as usual, where nothing goes on since."""
    days = [day for day, of, _ in judged.moved if of == series and grid.calendar.day[first] <= day]
    days = [day for day in days if day >= grid.calendar.day[last] - 1]
    return last if days else None


def shape(rest: Array, grid: Grid, judged: Judged, series: int, first: int) -> tuple[str, tuple[float, float, float]]:
    """Tell level from trend, with the size of the change as a ratio (of a trend: at its end) and its 95 % limits.

    A trend goes on rising after its first day: its Theil-Sen slope (Sen 1968) makes up half of where it ends, and more
    than chance. One change is a level.
    """
    per = 24 if grid.grain == "hour" else 1
    daily = np.array([np.median(rest[at : at + per]) for at in range(0, max(rest.size - per // 2, 1), per)])
    noise = _daily_noise(judged, series, first)
    slope = theil_sen(daily)
    climb = slope * (daily.size - 1)
    trend = daily.size >= 4 and abs(climb) > max(0.5 * abs(daily[-2:].mean()), 3.0 * noise)
    of = daily[-2:] if trend else daily
    middle, error = float(np.median(of)), 1.96 * noise / np.sqrt(max(min(rest.size / per, of.size), 1 / per))
    low, high = middle - error, middle + error
    return (TREND if trend else LEVEL), (float(np.expm1(middle)), float(np.expm1(low)), float(np.expm1(high)))


def _daily_noise(judged: Judged, series: int, row: int) -> float:
    """Return the standard deviation of a day's mean, in log cost: that of the days before."""
    sigma = judged.sigma[row, series]
    return float(sigma) * LEAST_DAY if np.isfinite(sigma) else 0.0


def theil_sen(values: Array) -> float:
    """Median slope over all pairs of equally spaced values; 0 for one."""
    if values.size < 2:
        return 0.0
    i, j = np.triu_indices(values.size, 1)
    return float(np.median((values[j] - values[i]) / (j - i)))


def weekly(grid: Grid, judged: Judged, found: Sequence[Drift]) -> tuple[list[Drift], int]:
    """Leave out spikes that came again a week later at the same hour: how a weekly job looks before it is known.

    Returns the rest and how many were left out.
    """
    kept = [one for one in found if not (one.kind == SPIKE and not one.lasting and _again(grid, judged, one))]
    return kept, len(found) - len(kept)


def without_weekends(grid: Grid, found: Sequence[Drift]) -> list[Drift]:
    """Leave out levels of up to three days that are over, from before days of the week could be told apart."""
    short = 3 * (24 if grid.grain == "hour" else 1)
    weekly = (BASES[OF_WEEK], OF_DAYS[OF_WEEK])
    return [
        one for one in found if one.kind == SPIKE or one.lasting or one.last - one.first >= short or one.basis in weekly
    ]


def _again(grid: Grid, judged: Judged, one: Drift) -> bool:
    """Say whether the same hour of both following weeks was nearer to the spike than to what was expected then."""
    week = 7 * (24 if grid.grain == "hour" else 1)
    costs = grid.values[: grid.until, one.series]
    top = one.first + int(np.nanargmax(costs[one.first : one.last + 1]))
    later = [costs[row] for row in (top + week, top + 2 * week) if row < grid.until]
    between = np.sqrt(max(costs[top], 0.0) * np.exp(judged.expected[top, one.series]))
    return bool(later) and all(cost > between for cost in later)
