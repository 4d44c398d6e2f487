"""Where the newest level of a daily series begins: a forecast that goes on from the level before is far off for weeks.

Kernel change points of log amounts with the week taken out, as `analytics.cost.steps` finds them; none where a straight
line describes the days better.
"""

from itertools import pairwise

import numpy as np

from analytics.cost.steps import BEYOND, LEAST, PENALTY, weekless
from analytics.stats.change_points import kernel_change_points
from analytics.stats.smoothed import Array

LEAST_CHANGE = 0.15
"""Change (of the logarithm) below which going on as before errs less than a level of few days."""


def newest(amounts: Array) -> int:
    """Return the index of the first day of the newest level; 0 where all days are of one, or of a trend.

    A level of three days is found. Series with days without cost are not looked at.
    """
    if amounts.size < LEAST or not amounts.min() > 0:
        return 0
    level = weekless(np.log(amounts)[:, None])[:, 0]
    spread = 1.4826 * float(np.median(np.abs(np.diff(level)))) / np.sqrt(2.0)
    edges = [0, *kernel_change_points(level[None, :], PENALTY)[0].tolist(), level.size]
    moves = [
        (at, float(np.median(level[at:end]) - np.median(level[start:at])))
        for start, at, end in zip(edges, edges[1:], edges[2:], strict=False)
    ]
    clear = [(at, size) for at, size in moves if abs(size) > max(BEYOND * spread, LEAST_CHANGE)]
    if not clear or _is_slope(level, edges):
        return 0
    return int(clear[-1][0])


def _is_slope(level: Array, edges: list[int]) -> bool:
    """Say whether a straight line describes the days better than the levels do, for their number (Schwarz 1978)."""
    t = np.arange(level.size) - (level.size - 1) / 2.0
    centred = level - level.mean()
    line = centred - t * float(t @ centred / (t @ t))
    levels = np.concatenate([level[start:end] - level[start:end].mean() for start, end in pairwise(edges)])
    return _criterion(line, 2) <= _criterion(levels, 2 * len(edges) - 3)


def _criterion(rest: Array, parameters: int) -> float:
    return float(rest.size * np.log(max(float(rest @ rest), 1e-12)) + parameters * np.log(rest.size))
