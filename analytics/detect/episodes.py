"""Episodes: what the detectors say about points, as stretches of one series with a reason each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analytics.detect.baseline import DAY_S, LEAST_DAYS, Baseline, baseline, conformal_p
from analytics.detect.drift import BLOCK_S, drifts
from analytics.detect.novelty import NOTICE, ranges, scores
from analytics.detect.runs import flat, missing
from analytics.detect.shift import Shift, shifts
from analytics.detect.tails import LEAST, tail_probability

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["value", "hour", "season", "level", "drift", "flat", "missing"]

PAGE_P = 2e-5
"""Probability of a value by the series' own tail at or below which it pages: once in 25 weeks of five minutes."""
Z = 5.0
Z_POINTS = 3
Z_P = 0.005
LONGEST = 288
"""Points (a day; at most so many) after which what was new is the new normal."""
BLOCK = 12
"""Points (an hour; at most so many) that are one block of the sum that finds shifts."""
AT_ONCE = 500
"""Series side by side: 150 MB of memory with a week of five minutes."""
COARSE_S = 60
"""Step from which on a series is taken to last for days; finer ones are short recordings, judged without a season."""
LASTING = 6
"""Points in a row that differ from the one value a series ever had and are more than one event; then p is 1/n², as of
two first times."""


@dataclass(frozen=True)
class Episode:
    """Rows `first` to `last` (included) of a series; `low` and `high` are what was expected at `first`.

    `score` is in the unit of its kind: share of the range (value, hour), spreads (season, level, drift), points (flat,
    missing). `told` is the row at which the episode is known, from that row and those before. `p`: of the value
    (value), or of the least of three residuals in a row (season), by the series' own tail; 1 where the kind has none.
    """

    column: int
    first: int
    last: int
    kind: Kind
    score: float
    value: float | None
    low: float | None
    high: float | None
    told: int
    p: float = 1.0
    page: bool = False


def find(values: Floats, seconds: Ints) -> list[Episode]:
    """All episodes of all series (points x series, NaN where missing; Unix seconds of the rows), by start."""
    found: list[Episode] = []
    for start in range(0, values.shape[1], AT_ONCE):
        part = unmerged(values[:, start : start + AT_ONCE], seconds)
        found += merged([replace(e, column=e.column + start) for e in part])
    return sorted(found, key=lambda e: (e.first, e.column))


def unmerged(values: Floats, seconds: Ints) -> list[Episode]:
    """Every episode that a detector tells, each from its point and those before."""
    hours = (seconds // 3600 % 24)[:, None]
    step = max(1, int(np.median(np.diff(seconds)))) if len(seconds) > 1 else 1
    longest, block = min(LONGEST, max(24, 86400 // step)), min(BLOCK, max(1, 3600 // step))
    usual = baseline(values, seconds)
    if step < COARSE_S:  # no two days to compare the hour with
        hours = np.zeros_like(hours)
    if step >= COARSE_S:  # what a morning does is no shift: wait until there is a season
        usual.z[seconds < seconds[0] + LEAST_DAYS * DAY_S] = np.nan
    return [
        *_novel(values, hours, longest),
        *_seasonal(values, usual),
        *_shifted(values, usual, longest, block),
        *(_drifted(values, seconds, BLOCK_S // step) if step >= COARSE_S else ()),
        *_runs(values, flat(values), "flat"),
        *_runs(values, missing(values), "missing"),
    ]


def merged(episodes: Sequence[Episode], apart: int = 6) -> list[Episode]:
    """Join those of one series and kind that overlap or are few points apart; the first keeps its expectation."""
    out: list[Episode] = []
    for one in sorted(episodes, key=lambda e: (e.column, e.kind, e.first)):
        last = out[-1] if out else None
        if last and (last.column, last.kind) == (one.column, one.kind) and one.first <= last.last + apart:
            worst = one if (one.page, one.score) > (last.page, last.score) else last
            out[-1] = replace(
                last, last=max(last.last, one.last), score=worst.score, value=worst.value, p=min(one.p, last.p),
                page=last.page or one.page, told=min(last.told, one.told) if last.page or not one.page else one.told,
            )  # fmt: skip
        else:
            out.append(one)
    return out


def _novel(values: Floats, hours: Ints, longest: int) -> list[Episode]:
    found = np.where(_first_change(values), 1.0, scores(values, hours))
    out: list[Episode] = []
    for column in np.flatnonzero((found >= NOTICE).any(axis=0)):
        series = values[:, column]
        points = np.flatnonzero(found[:, column] >= NOTICE)
        out += [_novelty(series, hours[:, 0], int(at), int(column), longest) for at in points]
    return out


def _first_change(values: Floats) -> NDArray[np.bool_]:
    """Whether a point is the first that differs from the one value its series ever had."""
    seen = np.cumsum(~np.isnan(values), axis=0)
    before = np.fmax.accumulate(_shifted_down(values), axis=0)
    left = (values != before) & ~np.isnan(values)
    return np.asarray((ranges(values) == 0) & left & (seen > LEAST))


def _shifted_down(values: Floats) -> Floats:
    return np.vstack([np.full((1, values.shape[1]), np.nan), values[:-1]])


def _novelty(series: Floats, hours: Ints, at: int, column: int, longest: int) -> Episode:
    before = series[:at]
    known = before[~np.isnan(before)]
    span = float(known.max() - known.min())
    gap = float(np.abs(known - series[at]).min())
    of_hour = known[hours[:at][~np.isnan(before)] == hours[at]]
    kind: Kind = "value"
    if gap < NOTICE * span and of_hour.size:
        kind, known, gap = "hour", of_hour, float(np.abs(of_hour - series[at]).min())
    low, high = _neighbours(known, series[at])
    last, told = _last_new(series, known, at, gap, longest), at
    p = tail_probability(before, float(series[at])) if kind == "value" else 1.0
    if span == 0 and last - at + 1 >= LASTING:
        p, told = float(known.size) ** -2.0, at + LASTING - 1
    return Episode(
        column=column, first=at, last=last, kind=kind,
        score=gap / span if span > 0 else 1.0, value=float(series[at]), low=low, high=high, told=told, p=p,
        page=p <= PAGE_P,
    )  # fmt: skip


def _neighbours(known: Floats, value: float) -> tuple[float | None, float | None]:
    """Return the nearest known values below and above."""
    below, above = known[known <= value], known[known >= value]
    return (float(below.max()) if below.size else None, float(above.min()) if above.size else None)


def _last_new(series: Floats, known: Floats, at: int, gap: float, longest: int) -> int:
    """Last row of those in a row that are half as far from all that was known; missing points end nothing."""
    rest = series[at : at + longest]
    ordered = np.sort(known)
    place = np.searchsorted(ordered, rest)
    above = np.abs(ordered[np.minimum(place, ordered.size - 1)] - rest)
    below = np.abs(ordered[np.maximum(place - 1, 0)] - rest)
    back = np.minimum(above, below) < gap / 2
    until = int(np.argmax(back)) if back.any() else rest.size
    there = np.flatnonzero(~np.isnan(rest[:until]))
    return at + int(there[-1])


def _seasonal(values: Floats, usual: Baseline) -> list[Episode]:
    far = np.abs(usual.z) >= Z
    return [
        _season(values[:, column], usual, int(column), first, last)
        for column in np.flatnonzero(far.any(axis=0))
        for first, last in _stretches(far[:, column])
        if last - first + 1 >= Z_POINTS and conformal_p(usual.z, first + Z_POINTS - 1, int(column), LONGEST * 28) <= Z_P
    ]


def _season(series: Floats, usual: Baseline, column: int, first: int, last: int) -> Episode:
    z = usual.z[:, column]
    told = first + Z_POINTS - 1
    least = first + int(np.argmin(np.abs(z[first : told + 1])))
    worst = first + int(np.argmax(np.abs(z[first : last + 1])))
    p = tail_probability(z[:first], float(z[least]))
    expected, spread = float(usual.expected[first, column]), float(usual.spread[first, column])
    return Episode(
        column=column, first=first, last=last, kind="season", score=float(abs(z[worst])), value=float(series[worst]),
        low=expected - Z * spread, high=expected + Z * spread, told=told, p=p, page=p <= PAGE_P,
    )  # fmt: skip


def _shifted(values: Floats, usual: Baseline, longest: int, block: int) -> list[Episode]:
    return [
        _level(values[:, shift.column], usual, shift, min(len(values) - 1, shift.found + longest), block)
        for shift in shifts(usual.z, block)
    ]


def _level(series: Floats, usual: Baseline, shift: Shift, last: int, block: int) -> Episode:
    rows = slice(shift.began, shift.found + 1)
    spread = float(np.nanmedian(usual.spread[rows, shift.column]))
    level = float(np.nanmedian(series[rows]))
    before = float(np.nanmedian(usual.expected[rows, shift.column]))
    calm = np.flatnonzero(np.abs(_steady(usual.z[shift.found : last + 1, shift.column], block)) < 1.0)
    return Episode(
        column=shift.column, first=shift.began, last=shift.found + int(calm[0]) if calm.size else last, kind="level",
        score=abs(level - before) / spread if spread > 0 else 0.0, value=level, low=before - spread,
        high=before + spread, told=shift.found,
    )  # fmt: skip


def _drifted(values: Floats, seconds: Ints, block: int) -> list[Episode]:
    """Drifts, each until the end of the next block, which says whether it goes on."""
    return [
        Episode(
            column=one.column, first=one.first, last=min(len(values) - 1, one.told + block), kind="drift",
            score=one.score, value=one.end, low=one.start - one.spread, high=one.start + one.spread, told=one.told,
        )
        for one in drifts(values, seconds)
    ]  # fmt: skip


def _steady(z: Floats, block: int) -> Floats:
    """Mean of the last block of points, far away until there is one."""
    known = np.nan_to_num(np.clip(z, -8.0, 8.0))
    sums = np.concatenate([[0.0], np.cumsum(known)])
    out = np.full(z.shape, np.inf)
    if len(z) >= block:
        out[block - 1 :] = (sums[block:] - sums[:-block]) / block
    return out


def _runs(values: Floats, inside: NDArray[np.bool_], kind: Kind) -> list[Episode]:
    out = []
    for column in np.flatnonzero(inside.any(axis=0)):
        for first, last in _stretches(inside[:, column]):
            value = float(values[last, column])
            known = None if np.isnan(value) else value
            out.append(Episode(int(column), first, last, kind, float(last - first + 1), known, None, None, first))
    return out


def _stretches(inside: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(np.int8), [0]])))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]
