"""Value novelty: how far a point is from the nearest value ever seen, as a share of the range seen so far.

Looked for on two scales (as it is, and logarithmic), among all earlier values and among those of the same hour of the
day, the latter in proportion to how much of the series the hour explains. Each score depends on the values up to its
point and on nothing later. Arrays are points x series, so that thousands of series cost one pass.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOTICE = 0.016
"""Score from which a point is listed. Chosen by cross-validation on labelled series (benchmarks/accuracy/nab.md)."""
HOURS = 24


@dataclass(frozen=True)
class Settings:
    """What the score depends on; one set of values for every series."""

    range_points: int = 6000  # the range is that of so many points: three weeks of five minutes
    half_life: float = 60.0  # points in which the remembered gap falls to a half
    gate: float = 1.5  # a gap counts if so much larger than the one remembered
    warm: int = 20  # points before the first score
    confidence: float = 750.0  # points after which a score counts half: a young range is too narrow
    hourly: float = 0.25  # weight of novelty within the hour of the day
    hold: int = 144  # points for which a score silences those that are not `raised` times as high
    raised: float = 1.5


DEFAULT = Settings()


def scores(values: Floats, hours: Ints, settings: Settings = DEFAULT) -> Floats:
    """Score of every point, 0 where nothing is new or it is missing.

    `values` has NaN where missing; `hours` (points x series, or points x 1) says the hour of the day.
    """
    hours = np.broadcast_to(hours, values.shape)
    seen = np.cumsum(~np.isnan(values), axis=0)
    found = np.zeros(values.shape)
    for scale in (values, logarithmic(values, settings.warm)):
        spans = ranges(scale, settings)
        anywhere = gated(_known(nearest_before(scale)), spans, settings)
        in_hour = gated(_known(nearest_before(scale, hours), hours, scale, settings.warm), spans, settings)
        in_hour *= settings.hourly * explained_by_hour(scale, hours, settings)
        found = np.maximum(found, np.maximum(anywhere * (seen / (seen + settings.confidence)), in_hour))
    return held(np.where(seen > settings.warm, found, 0.0), settings.hold, settings.raised)


def _known(gaps: Floats, hours: Ints | None = None, values: Floats | None = None, warm: int = 0) -> Floats:
    """Gaps with 0 where there is none, and where the hour has too few values to say."""
    gaps = np.where(np.isfinite(gaps), gaps, 0.0)
    if hours is None or values is None:
        return gaps
    there = ~np.isnan(values)
    for hour in range(HOURS):
        inside = (hours == hour) & there
        gaps[inside & (np.cumsum(inside, axis=0) <= warm)] = 0.0
    return gaps


def logarithmic(values: Floats, warm: int) -> Floats:
    """Take asinh of the values over their usual size among the first `warm` points: a logarithm beyond it."""
    seen = np.cumsum(~np.isnan(values), axis=0)
    rows = int(np.max(np.argmax(seen >= warm, axis=0), initial=0)) + 1
    first = np.abs(np.where(seen[:rows] <= warm, values[:rows], np.nan))
    first[0, np.isnan(first).all(axis=0)] = 0.0
    size = np.nanmedian(first, axis=0)
    size = np.where(size > 0, size, np.nanmean(first, axis=0))
    return np.asarray(np.arcsinh(values / np.where(size > 0, size, 1.0)))


def nearest_before(values: Floats, groups: Ints | None = None) -> Floats:
    """Distance of each value to the nearest earlier one (of its group); infinite for the first, NaN where missing.

    Of all points in the order of their values, the neighbours of the last one are its nearest. Taking it out leaves
    the same question for the one before: O(n log n), with one step a point whatever the number of series.
    """
    length, count = values.shape
    columns = np.arange(count)
    group = np.zeros(values.shape, np.int64) if groups is None else np.where(np.isnan(values), HOURS, groups)
    order = np.lexsort((values, group), axis=0) if groups is not None else np.argsort(values, axis=0, kind="stable")
    left = np.full((length + 1, count), length)
    right = np.full((length + 1, count), length)
    same = np.take_along_axis(group, order[1:], 0) == np.take_along_axis(group, order[:-1], 0)
    left[order[1:], columns] = np.where(same, order[:-1], length)
    right[order[:-1], columns] = np.where(same, order[1:], length)
    padded = np.vstack([values, np.full((1, count), np.nan)])
    gaps = np.empty_like(values)
    for at in range(length - 1, -1, -1):
        lower, upper = left[at], right[at]
        gaps[at] = np.fmin(values[at] - padded[lower, columns], padded[upper, columns] - values[at])
        right[lower, columns] = upper
        left[upper, columns] = lower
    return np.where(np.isnan(values), np.nan, np.where(np.isnan(gaps), np.inf, gaps))


def ranges(values: Floats, settings: Settings = DEFAULT) -> Floats:
    """Largest minus smallest of the values before each point; NaN before the first."""
    highest, lowest = np.fmax.accumulate(values, axis=0), np.fmin.accumulate(values, axis=0)
    if len(values) > settings.range_points:
        from scipy.ndimage import maximum_filter1d

        def trailing(of: Floats) -> Floats:
            size = settings.range_points
            filled = np.where(np.isnan(of), -np.inf, of)
            found = maximum_filter1d(filled, size, axis=0, origin=(size - 1) // 2, mode="constant", cval=-np.inf)
            return np.where(np.isfinite(found), found, np.nan)

        highest, lowest = trailing(values), -trailing(-values)
    return np.vstack([np.full((1, values.shape[1]), np.nan), (highest - lowest)[:-1]])


def gated(gaps: Floats, spans: Floats, settings: Settings = DEFAULT) -> Floats:
    """Gap over range where the gap is larger than the decayed record of gaps; 0 elsewhere.

    The record is the cool-down: after a large gap only a larger one counts, and it is forgotten by and by.
    """
    remembered = np.zeros(gaps.shape[1])
    passed = np.zeros(gaps.shape, bool)
    fall = 2.0 ** (-1.0 / settings.half_life)
    for at, gap in enumerate(gaps):
        passed[at] = gap > settings.gate * remembered
        remembered = np.maximum(remembered * fall, gap)
    some = passed & (spans > 0)
    return np.divide(gaps, spans, out=np.zeros_like(gaps), where=some)


def held(found: Floats, points: int, raised: float, least: float = 0.005) -> Floats:
    """Silence, for so many points after a score, those less than `raised` times as high: one alert an incident."""
    out = np.zeros_like(found)
    last, since = np.zeros(found.shape[1]), np.full(found.shape[1], points + 1)
    for at, now in enumerate(found):
        since = since + 1
        silent = (since <= points) & (now <= raised * last)
        out[at] = np.where(silent, 0.0, now)
        starts = (now > least) & ~silent
        last, since = np.where(starts, now, last), np.where(starts, 0, since)
    return out


def explained_by_hour(values: Floats, hours: Ints, settings: Settings = DEFAULT, every: int = 100) -> Floats:
    """Share of the variance that the means of the hours of the day explain, from the points before; in steps.

    0 until twice as many points are there. Missing points count for nothing.
    """
    length, count = values.shape
    keys = hours + HOURS * np.arange(count)
    centre = np.where(np.isnan(values), 0.0, values - _first(values))
    there = (~np.isnan(values)).astype(float)
    n, total, squares = np.zeros(count * HOURS), np.zeros(count * HOURS), np.zeros(count)
    kept, out = settings.range_points * 2 // 3, np.zeros(values.shape)

    def add(rows: slice, sign: float) -> None:
        nonlocal n, total, squares
        n = n + sign * np.bincount(keys[rows].ravel(), there[rows].ravel(), count * HOURS)
        total = total + sign * np.bincount(keys[rows].ravel(), centre[rows].ravel(), count * HOURS)
        squares = squares + sign * (centre[rows] ** 2).sum(axis=0)

    for at in range(every, length, every):
        add(slice(at - every, at), 1.0)
        if at > kept:
            add(slice(at - kept - every, at - kept), -1.0)
        if at >= 2 * every:
            between = (total**2 / np.maximum(n, 1.0)).reshape(count, HOURS).sum(axis=1)
            whole = total.reshape(count, HOURS).sum(axis=1) ** 2 / np.maximum(n.reshape(count, HOURS).sum(axis=1), 1.0)
            spread = squares - whole
            share = np.divide(between - whole, spread, out=np.zeros(count), where=spread > 1e-9 * squares)
            out[at : at + every] = np.clip(share, 0.0, 1.0)
    return out


def _first(values: Floats) -> Floats:
    """First value of each series, 0 where there is none."""
    at = np.argmax(~np.isnan(values), axis=0)
    return np.asarray(np.nan_to_num(values[at, np.arange(values.shape[1])]))
