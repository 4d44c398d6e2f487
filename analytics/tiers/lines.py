"""All straight lines that pass every point of a bill within its rounding: an exact set, not an estimate.

The lines c = a + s q with low_i <= a + s q_i <= high_i form a convex polygon in (s, a). From above min(high - s q)
bounds it, whose minimum is on the lower hull of (q, high); from below max(low - s q), on the upper hull of (q, low).
So two hulls give the whole set, in O(n) for sorted points; a linear program gives one corner of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_BIG = 1e12
"""Slope, in costs of the largest bill per quantity of the largest, that stands for no limit: one point has any."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Slopes at the corners of the set, rising, and the least and greatest intercept at each."""

    slopes: Array
    lowest: Array
    highest: Array

    @property
    def slope(self) -> tuple[float, float]:
        """Least and greatest slope."""
        return float(self.slopes[0]), float(self.slopes[-1])

    @property
    def intercept(self) -> tuple[float, float]:
        """Least and greatest intercept."""
        return float(self.lowest.min()), float(self.highest.max())

    def corners(self) -> tuple[Array, Array]:
        """Return slope and intercept of each corner."""
        return np.concatenate([self.slopes, self.slopes]), np.concatenate([self.lowest, self.highest])

    def at(self, q: float) -> tuple[float, float]:
        """Return the least and greatest cost that lines of the set give a quantity."""
        slopes, intercepts = self.corners()
        costs = intercepts + slopes * q
        return float(costs.min()), float(costs.max())

    def middle(self) -> tuple[float, float]:
        """Return slope and intercept of a line in the middle of the set."""
        slope = (self.slopes[0] + self.slopes[-1]) / 2
        low, high = (np.interp(slope, self.slopes, y) for y in (self.lowest, self.highest))
        return float(slope), float((low + high) / 2)

    def through_origin(self) -> tuple[float, float] | None:
        """Return the least and greatest slope of lines without an intercept; None where all have one."""
        ends = sorted(_zeros(self.slopes, self.lowest, self.highest))
        return (ends[0], ends[-1]) if ends else None


def _zeros(slopes: Array, lowest: Array, highest: Array) -> Iterator[float]:
    """Slopes of corners and edges at which an intercept of 0 enters or leaves [lowest, highest]."""
    yield from slopes[(lowest <= 0) & (highest >= 0)].tolist()
    for y in (lowest, highest):
        for i in np.flatnonzero(y[:-1] * y[1:] < 0):
            yield float(slopes[i] + (slopes[i + 1] - slopes[i]) * y[i] / (y[i] - y[i + 1]))


def lines(q: Array, low: Array, high: Array) -> Lines | None:
    """Return all lines within [low, high] at each q (rising, each once); None where there is none."""
    if q.size == 1:
        slopes = np.array([-_BIG, _BIG])
        return Lines(slopes, low - slopes * q, high - slopes * q)
    upper, lower = _Envelope.of(q, high), _Envelope.of(q, -low)
    bends = np.unique(np.concatenate([upper.bends, -lower.bends]))
    room = upper.at(bends) + lower.at(-bends)
    if room.max() < 0:
        return None
    # Beyond the last bend on either side the room shrinks by the spread of q for each unit of slope.
    spread = q[-1] - q[0]
    bends = np.concatenate([[bends[0] - max(room[0], 0) / spread], bends, [bends[-1] + max(room[-1], 0) / spread]])
    slopes = _where_positive(bends, upper.at(bends) + lower.at(-bends))
    lowest, highest = -lower.at(-slopes), upper.at(slopes)
    return Lines(slopes, np.minimum(lowest, highest), np.maximum(lowest, highest))


def reach(q: Array, low: Array, high: Array, first: int) -> int:
    """Return the last point up to which one line passes all from `first` on.

    Each pair of points bounds the slope, by (high - low) over their distance from above and (low - high) from below; a
    line exists where these bounds leave one. Points are taken in blocks, so that short stretches cost little.
    """
    most, least, begin, step = np.inf, -np.inf, first + 1, 8
    while begin < q.size:
        end = min(begin + step, q.size)
        apart = q[begin:end, None] - q[None, first:end]
        earlier = apart > 0
        apart[~earlier] = 1.0
        above = np.where(earlier, (high[begin:end, None] - low[None, first:end]) / apart, np.inf).min(axis=1)
        below = np.where(earlier, (low[begin:end, None] - high[None, first:end]) / apart, -np.inf).max(axis=1)
        above = np.minimum.accumulate(np.minimum(above, most))
        below = np.maximum.accumulate(np.maximum(below, least))
        broken = np.flatnonzero(below > above)
        if broken.size:
            return begin + int(broken[0]) - 1
        most, least, begin, step = float(above[-1]), float(below[-1]), end, min(2 * step, 128)
    return int(q.size) - 1


def origin_reach(q: Array, low: Array, high: Array, first: int) -> int:
    """Return the last point up to which one line through zero passes all from `first` on."""
    least = np.maximum.accumulate(low[first:] / q[first:])
    broken = np.flatnonzero(least > np.minimum.accumulate(high[first:] / q[first:]))
    return first + int(broken[0]) - 1 if broken.size else int(q.size) - 1


def _where_positive(x: Array, room: Array) -> Array:
    """Corners of the stretch on which a concave, piecewise linear function is not negative, its ends included."""
    inside = np.flatnonzero(room >= 0)
    first, last = int(inside[0]), int(inside[-1])
    ends = []
    for i, outside in ((first, first - 1), (last, last + 1)):
        if 0 <= outside < x.size:
            ends.append(x[i] + (x[outside] - x[i]) * room[i] / (room[i] - room[outside]))
    return np.unique(np.concatenate([x[first : last + 1], ends]))


@dataclass(frozen=True, slots=True)
class _Envelope:
    """The function min over points of (y - s q), of s: the point that counts changes at `bends`."""

    q: Array
    y: Array
    bends: Array

    @classmethod
    def of(cls, q: Array, y: Array) -> "_Envelope":
        kept = _lower_hull(q.tolist(), y.tolist())
        return cls(q[kept], y[kept], np.diff(y[kept]) / np.diff(q[kept]))

    def at(self, s: Array) -> Array:
        where = np.searchsorted(self.bends, s)
        return np.asarray(self.y[where] - s * self.q[where])


def _lower_hull(q: list[float], y: list[float]) -> list[int]:
    """Return indices of the lower convex hull of points in order of q (Andrew 1979)."""
    kept: list[int] = []
    for i in range(len(q)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (q[i] - q[a]) < (y[i] - y[a]) * (q[b] - q[a]):
                break
            kept.pop()
        kept.append(i)
    return kept
