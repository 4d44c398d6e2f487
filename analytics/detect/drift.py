"""Slow drift: a level that went one way for days, told from noise, from the day's rhythm and from a single step.

Medians of blocks of three hours; the slope is the median of all differences between blocks of the same hour on
different days (Sen 1968, by season: Hirsch, Slack & Smith 1982), so the rhythm of the day has no part in it. What the
way gone is held against is what is left without slope and rhythm: of a random walk, or a step, much is left.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.detect.baseline import middle

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK_S = 10800
A_DAY = 8
"""Blocks a day."""
SPANS = (3, 7)
"""Days looked back over: a leak within days, creeping latency within a week."""
LEAST = 7.0
"""Way gone, in usual spreads of the blocks around the slope, from which it is a drift (benchmarks/accuracy/noise)."""
GOES_ON = 3.5
"""Way from which on one that was told goes on."""
LEAST_SHARE = 0.1
"""Way gone as a share of the level before; less is of no interest."""
KNOWN = 0.8
"""Share of the blocks that must be there."""


@dataclass(frozen=True)
class Drift:
    """Rows `first` to `told` of a series in which it went from `start` to `end`; `score` is the way in spreads."""

    column: int
    first: int
    told: int
    start: float
    end: float
    spread: float
    score: float


def drifts(values: Floats, seconds: Ints) -> list[Drift]:
    """Every block at whose end a series has drifted over one of SPANS, judged by that block and those before.

    What was a drift at the block before remains one down to GOES_ON, so that chance does not end it.
    """
    if not len(seconds):
        return []
    number = seconds // BLOCK_S
    ends = np.flatnonzero(np.append(np.diff(number) > 0, (seconds[-1] + _step(seconds)) % BLOCK_S == 0))
    first = int(number[0])
    if (ends.size and number[ends[-1]] - first < SPANS[0] * A_DAY - 1) or not ends.size:
        return []
    table = np.full((int(number[-1]) - first + 1, values.shape[1]), np.nan)
    starts = np.searchsorted(number, number[ends])
    for low, high in zip(starts, ends, strict=True):
        table[number[high] - first] = middle(values[low : high + 1])
    rows = {int(number[high]) - first: (int(low), int(high)) for low, high in zip(starts, ends, strict=True)}
    found: list[Drift] = []
    going: set[tuple[int, bool]] = set()
    for at, (_, told) in sorted(rows.items()):
        now: list[Drift] = []
        for days in SPANS:
            begin = at - days * A_DAY + 1
            if begin >= 0:
                row = next(rows[i][0] for i in range(begin, at + 1) if i in rows)
                now += _judged(table[begin : at + 1], row, told)
        now = [one for one in now if one.score >= LEAST or (one.column, one.end > one.start) in going]
        going = {(one.column, one.end > one.start) for one in now}
        found += now
    return found


def _step(seconds: Ints) -> int:
    return max(1, int(np.median(np.diff(seconds)))) if len(seconds) > 1 else 1


def _judged(blocks: Floats, first: int, told: int) -> list[Drift]:
    """Series of which these blocks (whole days) are a drift, on a linear or, where all is above 0, a logarithmic scale.

    A rhythm that grows with the level is straight on the latter.
    """
    there = np.flatnonzero((~np.isnan(blocks)).mean(axis=0) >= KNOWN)
    if not there.size:
        return []
    known = blocks[:, there]
    start, way, spread = _fitted(known)
    positive = np.nanmin(known, axis=0) > 0
    score = _in_spreads(way, spread, 1e-4 * np.abs(start))
    _, logarithmic, around = _fitted(np.log(np.where(positive, known, 1.0)))
    score = np.maximum(score, np.where(positive, _in_spreads(logarithmic, around, np.full_like(way, 1e-4)), 0.0))
    far = np.flatnonzero((score >= GOES_ON) & (np.abs(way) >= LEAST_SHARE * np.abs(start)) & (way != 0))
    return [
        Drift(int(there[i]), first, told, *(float(of[i]) for of in (start, start + way, spread, score))) for i in far
    ]


def _fitted(blocks: Floats) -> tuple[Floats, Floats, Floats]:
    """Level at the start, way gone, and the spread of what slope and rhythm leave, larger where that wanders.

    By the autocorrelation r of neighbours, (1 + r) / (1 - r): what a random walk leaves is as smooth as a drift.
    """
    days = np.arange(len(blocks)) / A_DAY
    slope = _slope(blocks.reshape(-1, A_DAY, blocks.shape[1]))
    straight = blocks - slope * days[:, None]
    left = straight - np.tile(_by_hour(straight.reshape(-1, A_DAY, blocks.shape[1])), (len(blocks) // A_DAY, 1))
    left = np.nan_to_num(left - middle(left))
    squares = (left**2).sum(axis=0)
    close = (left[1:] * left[:-1]).sum(axis=0)
    alike = np.clip(np.divide(close, squares, out=np.zeros_like(squares), where=squares > 0), 0.0, 0.9)
    free = len(blocks) - A_DAY - 1
    return middle(straight), slope * days[-1], np.sqrt(squares / free * (1 + alike) / (1 - alike))


def _in_spreads(way: Floats, spread: Floats, least: Floats) -> Floats:
    spread = np.maximum(spread, least)
    return np.divide(np.abs(way), spread, out=np.zeros_like(way), where=spread > 0)


def _slope(cube: Floats) -> Floats:
    """Change a day: median over all pairs of days of the differences at the same hour."""
    count = len(cube)
    pairs = [(cube[b] - cube[a]) / (b - a) for a in range(count) for b in range(a + 1, count)]
    return np.nan_to_num(middle(np.concatenate(pairs)))


def _by_hour(cube: Floats) -> Floats:
    return np.stack([middle(cube[:, hour]) for hour in range(A_DAY)])
