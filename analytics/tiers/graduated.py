"""A graduated schedule from a cut of the points: plain numbers where they pass all points, else a fit that does."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import pairwise

import numpy as np

from analytics.tiers.fitted import Found, Interval, chosen, core_line, limit, residual, tier
from analytics.tiers.lines import Array, Lines
from analytics.tiers.schedule import ZERO, Schedule, Tier
from analytics.tiers.segments import Cut, Segments

EDGE = 1.01
"""Residual up to which a schedule passes a bill: 1 and the last digits of binary fractions."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Price and start of each stretch; `fee` is the cost of nothing, negative where an allowance is free.

    With a `minimum` the first stretch is flat and the second one starts where its price reaches it.
    """

    starts: tuple[Decimal, ...]
    prices: tuple[Decimal, ...]
    fee: Decimal
    minimum: Decimal

    def short(self, digits: int) -> "Shape":
        """Return all numbers in so many significant digits."""

        def cut(number: Decimal) -> Decimal:
            return Decimal(f"{Context(prec=digits).plus(number):f}")

        return Shape(tuple(map(cut, self.starts)), tuple(map(cut, self.prices)), cut(self.fee), cut(self.minimum))

    def schedule(self, known_to: Decimal) -> Schedule | None:
        """Return the schedule; None where limits do not rise."""
        pairs = list(zip(self.starts, self.prices, strict=True))
        if self.minimum:
            pairs = [(ZERO, pairs[1][1]), *pairs[2:]]
        elif self.fee < 0:
            pairs = [(ZERO, ZERO), (-self.fee / pairs[0][1], pairs[0][1]), *pairs[1:]]
        if any(b <= a for (a, _), (b, _) in pairwise(pairs)):
            return None
        tiers = tuple(Tier(start, price) for start, price in pairs)
        return Schedule("graduated", tiers, max(self.fee, ZERO), self.minimum, known_to)


def graduated(points: Segments, cut: Cut) -> tuple[list[Found], Schedule] | None:
    """Return the tiers of a cut and one schedule that passes every point up to its `known_to`; None where none does."""
    shown = _shown(cut)
    known_to = Decimal(repr(float(points.q[shown[-1][1]])))
    for shape in _shapes(points, cut):
        schedule = shape.schedule(known_to) if shape is not None else None
        if shape is not None and schedule is not None and residual(schedule, points) <= EDGE:
            return _tiers(points, cut, shape), schedule
    return None


def _shapes(points: Segments, cut: Cut) -> Iterator[Shape]:
    """Yield what may pass all points: plain numbers of each set, then a joint fit, in as few digits as will do."""
    plain = _plain(points, cut)
    yield plain
    joint = _joint(points, _shown(cut), plain)
    if joint is not None:
        yield from (joint.short(digits) for digits in (3, 4, 5, 6, 8, 10))
        yield joint


def suggested(points: Segments, cut: Cut) -> list[Found]:
    """Return the tiers of a cut, whether or not one schedule passes them all."""
    return _tiers(points, cut, _plain(points, cut))


def _shown(cut: Cut) -> Cut:
    """Leave out a last stretch of one point: it says that the price changes, not to what."""
    return cut[:-1] if len(cut) > 1 and cut[-1][0] == cut[-1][1] else cut


def _tiers(points: Segments, cut: Cut, shape: Shape) -> list[Found]:
    shown = _shown(cut)
    end = float(points.q[shown[-1][1]])
    top = max(*map(abs, shape.prices), (max(shape.fee, ZERO) + shape.minimum) / Decimal(repr(end)))
    found = [tier(points, cut, k, shape.starts[k], shape.prices[k], float(top)) for k in range(len(shown))]
    if shown != cut:
        found.append(Found(Decimal(repr(end)), (end, float(points.q[-1])), False, None, None, 1, False))
    return found


def _plain(points: Segments, cut: Cut) -> Shape:
    """Choose the plainest number of each set."""
    shown = _shown(cut)
    shapes = [line for k in range(len(shown)) if (line := core_line(points, cut, k)) is not None]
    slope, fee = _start(shapes[0])
    origin = shapes[1].through_origin() if len(shapes) > 1 else None
    starts, prices, minimum = [ZERO], [slope], ZERO
    if slope == 0 and fee > 0 and origin is not None and origin[0] > 0:
        minimum, fee = fee, ZERO
        prices.append(chosen(origin))
        starts.append(minimum / prices[1])
    for k in range(len(starts), len(shown)):
        prices.append(chosen(shapes[k].slope) if shown[k][1] > shown[k][0] else _chord(points, shown, k))
        at, _ = limit(points, cut, k)
        between = at or (float(points.q[shown[k - 1][1]]), float(points.q[shown[k][0]]))
        below = (float(fee), float(fee)) if k == 1 else _intercept(shapes[k - 1], prices[k - 1])
        starts.append(chosen(_crossing(prices[-2:], below, _intercept(shapes[k], prices[k]), between)))
    return Shape(tuple(starts), tuple(prices), fee, minimum)


def _intercept(line: Lines, slope: Decimal) -> Interval:
    """Return the least and greatest intercept of the lines of this slope."""
    low, high = (float(np.interp(float(slope), line.slopes, y)) for y in (line.lowest, line.highest))
    return low, high


def _crossing(prices: Sequence[Decimal], below: Interval, above: Interval, within: Interval) -> Interval:
    """Return where lines of two known slopes cross, as far as that lies within what is allowed."""
    apart = float(prices[1] - prices[0])
    if not apart:
        return within
    at = [(a - b) / apart for a in below for b in above]
    low, high = max(min(at), within[0]), min(max(at), within[1])
    return (low, high) if low <= high else within


def _start(first: Lines) -> tuple[Decimal, Decimal]:
    """Return slope and intercept of the first line: no fee where none is needed, no price where none is."""
    origin = first.through_origin()
    if origin is not None:
        return chosen(origin), ZERO
    flat = first.slope[0] <= 0 <= first.slope[1]
    slope = ZERO if flat else chosen(first.slope)
    return slope, chosen(_intercept(first, slope))


def _chord(points: Segments, cut: Cut, k: int) -> Decimal:
    """Return the slope from a lone point to the next: of the prices it may have, one in the middle."""
    a, b = cut[k][0], cut[k][0] + 1
    middle = (points.low + points.high) / 2
    return Decimal(repr(float((middle[b] - middle[a]) / (points.q[b] - points.q[a]))))


def _joint(points: Segments, cut: Cut, plain: Shape) -> Shape | None:
    """Fit all lines at once by a linear program: the largest residual least, neighbours crossing between their points.

    Whether prices rise or fall at a limit is taken from the plain numbers; so is a fee of 0.
    """
    from scipy.optimize import linprog

    k, top = len(cut), (float(points.q[-1]), float(np.abs(points.high).max()) or 1.0)
    q, low, high = points.q / top[0], points.low / top[1], points.high / top[1]
    rows, bounds = [], []
    for j, (first, last) in enumerate(cut):
        for i in range(first, last + 1):
            at, half, middle = _row(k, {j: (q[i], 1.0)}), (high[i] - low[i]) / 2, (high[i] + low[i]) / 2
            rows += [np.append(at / half, -1.0), np.append(-at / half, -1.0)]
            bounds += [middle / half, -middle / half]
    for j in range(k - 1):
        falls = 1.0 if plain.prices[j + 1] <= plain.prices[j] else -1.0
        for i, sign in ((cut[j][1], falls), (cut[j + 1][0], -falls)):
            rows.append(np.append(sign * _row(k, {j: (q[i], 1.0), j + 1: (-q[i], -1.0)}), 0.0))
            bounds.append(0.0)
    fixed: list[tuple[float | None, float | None]] = [(None, None)] * (2 * k) + [(0.0, None)]
    for column in (0, 3) if plain.minimum else (1,) if plain.fee == 0 else ():
        fixed[column] = (0.0, 0.0)
    cost = np.zeros(2 * k + 1)
    cost[-1] = 1.0
    solved = linprog(cost, A_ub=np.array(rows), b_ub=np.array(bounds), bounds=fixed, method="highs")
    return _shape(solved.x[:-1].reshape(k, 2), top, plain) if solved.x is not None else None


def _row(k: int, given: dict[int, tuple[float, float]]) -> Array:
    row = np.zeros((k, 2))
    for j, pair in given.items():
        row[j] = pair
    return row.ravel()


def _shape(found: Array, top: tuple[float, float], plain: Shape) -> Shape:
    slopes, intercepts = found[:, 0] * top[1] / top[0], found[:, 1] * top[1]
    starts = [ZERO]
    for j in range(len(slopes) - 1):
        apart = slopes[j + 1] - slopes[j]
        starts.append(Decimal(repr(float((intercepts[j] - intercepts[j + 1]) / apart))) if apart else starts[-1])
    prices = tuple(Decimal(repr(float(s))) for s in slopes)
    first = Decimal(repr(float(intercepts[0])))
    return Shape(tuple(starts), prices, ZERO if plain.minimum else first, first if plain.minimum else ZERO)
