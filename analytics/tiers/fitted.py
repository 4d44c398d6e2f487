"""From a cut of the points to tiers: prices and limits with the set they are known to lie in, and the schedule."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from analytics.tiers.decimals import plainest
from analytics.tiers.lines import Lines
from analytics.tiers.schedule import ZERO, Schedule, Tier
from analytics.tiers.segments import Cut, Segments

SURE = 3
"""Points in a tier from which its price is checked: two always lie on a line."""
NARROW = 0.01
"""Width of a set, as a share of its middle, up to which its value is called identified."""
APART = 0.05
"""Share of a stretch by which points must be apart to count as different ones: two that are close check little."""
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Found:
    """A tier with the sets its limit and price lie in; None where nothing bounds them, as one point does no price.

    `what` says what else it may be.
    """

    from_q: Decimal
    start: Interval | None
    start_identified: bool
    price: Decimal | None
    slope: Interval | None
    points: int
    identified: bool
    what: str = ""


def narrow(interval: Interval | None, share: float = NARROW, beside: float = 0.0) -> bool:
    """Say whether a set is narrow beside its middle, or beside a larger size that is given: a price of 0 has none."""
    if interval is None:
        return False
    size = max(abs(interval[0] + interval[1]) / 2, beside)
    return interval[1] - interval[0] <= share * size


def chosen(interval: Interval) -> Decimal:
    """Return the plainest number of a narrow set, of a wide one the plainest in its middle."""
    low, high = interval
    if not narrow(interval) and not low <= 0 <= high:
        low, high = low + 0.45 * (high - low), high - 0.45 * (high - low)
    found = plainest(low, high)
    return Decimal(repr((low + high) / 2)) if found is None else found


def meeting(left: Lines, right: Lines, bracket: Interval) -> Interval | None:
    """Return where lines of one set cross lines of another, within a bracket; None where nowhere."""
    if max(left.slope[0], right.slope[0]) <= min(left.slope[1], right.slope[1]):
        return bracket
    (s, a), (t, b) = left.corners(), right.corners()
    at = (a[:, None] - b[None, :]) / (t[None, :] - s[:, None])
    low, high = max(float(at.min()), bracket[0]), min(float(at.max()), bracket[1])
    slack = 1e-9 * bracket[1]
    return (min(low, high), max(low, high)) if low <= high + slack else None


def continuous(points: Segments, cut: Cut) -> bool:
    """Say whether the lines of neighbouring stretches meet between them, as graduated prices make them."""
    found = [points.line(*ends) for ends in cut]
    pairs = zip(found, found[1:], cut, cut[1:], strict=False)
    return all(
        a is not None and b is not None and meeting(a, b, (float(points.q[x[1]]), float(points.q[y[0]]))) is not None
        for a, b, x, y in pairs
    )


def volume(points: Segments, cut: Cut) -> tuple[list[Found], Schedule]:
    """Return the tiers of prices that hold for the whole quantity, with the bracket each limit lies in."""
    found: list[Found] = []
    for k, (first, last) in enumerate(cut):
        slope = _slope(points, first, last)
        bracket = (float(points.q[cut[k - 1][1]]), float(points.q[first])) if k else None
        sides = [size(points.core(j)) for j in ((k - 1, k) if k else (k,))]
        start = plainest(*bracket) if bracket else ZERO
        sure = sides[-1] >= SURE and narrow(slope)
        known = bracket is None or min(sides) >= SURE - 1
        found.append(Found(start or ZERO, bracket, known, chosen(slope), slope, last - first + 1, sure))
    tiers = tuple(Tier(one.from_q, one.price) for one in found if one.price is not None)
    return found, Schedule("volume", tiers, known_to=Decimal(repr(float(points.q[-1]))))


def _slope(points: Segments, first: int, last: int) -> Interval:
    q, low, high = (x[first : last + 1] for x in (points.q, points.low, points.high))
    return float((low / q).max()), float((high / q).min())


def core_line(points: Segments, cut: Cut, k: int) -> Lines | None:
    """Return the lines through the core of a stretch, or through all of it where the core is less than three points."""
    core = points.core(k)
    return points.line(*(core if size(core) >= SURE else cut[k]))


def tier(points: Segments, cut: Cut, k: int, start: Decimal, price: Decimal, top: float) -> Found:
    """Return stretch k as a tier; `top` is the largest price, beside which one of 0 is held."""
    n = size(cut[k])
    line = core_line(points, cut, k)
    slope = line.slope if line is not None and n > 1 else None
    sure = checks(points, points.core(k)) >= SURE and narrow(slope, beside=top if price == 0 else 0.0)
    at, known = limit(points, cut, k) if k else (None, True)
    return Found(start, at, known, price, slope, n, sure)


def limit(points: Segments, cut: Cut, k: int) -> tuple[Interval | None, bool]:
    """Return where the limit below a stretch lies, and whether it is identified.

    A tier without a point may hide between the last point of one stretch and the first of the next, unless it would
    have to be narrower than what is seen of either.
    """
    (a, b), (c, d) = points.core(k - 1), points.core(k)
    left, right = core_line(points, cut, k - 1), core_line(points, cut, k)
    if min(size((a, b)), size((c, d))) < SURE:
        b, c = cut[k - 1][1], cut[k][0]
        left, right = points.line(*cut[k - 1]), points.line(*cut[k])
    ends = float(points.q[b]), float(points.q[c])
    at = meeting(left, right, ends) if left is not None and right is not None else None
    enough = min(checks(points, points.core(j)) for j in (k - 1, k)) >= SURE
    hidden = enough and ends[1] - ends[0] > min(points.q[b] - points.q[a], points.q[d] - points.q[c])
    return at, enough and not hidden and narrow(at, 2 * NARROW)


def checks(points: Segments, ends: tuple[int, int]) -> int:
    """Count points from first to last that are apart from each other."""
    if size(ends) < SURE:
        return size(ends)
    q = points.q[ends[0] : ends[1] + 1]
    gap, counted, at = APART * float(q[-1] - q[0]), 1, float(q[0])
    for value in q[1:].tolist():
        if value - at >= gap:
            counted, at = counted + 1, value
    return counted


def size(ends: tuple[int, int]) -> int:
    """Count points from first to last."""
    return max(ends[1] - ends[0] + 1, 0)


def residual(schedule: Schedule, points: Segments) -> float:
    """Return how far the schedule leaves the costs at most, in half widths of what rounding allows: 1 is its edge."""
    known = [i for i, q in enumerate(points.q) if schedule.knows(Decimal(repr(float(q))))]
    charged = np.array([float(schedule.cost(Decimal(repr(float(points.q[i]))))) for i in known])
    low, high = points.low[known], points.high[known]
    return float(np.max(np.abs(2 * charged - high - low) / (high - low)))


def rank(cut: Cut, points: Segments) -> tuple[bool, bool, int]:
    """Order cuts: no fee needed, no lone point between others, the most points in stretches of three."""
    first = points.line(*cut[0])
    lone = any(size(ends) == 1 for ends in cut[1:-1])
    sure = sum(size(ends) for ends in cut if size(ends) >= SURE)
    return first is not None and first.through_origin() is not None, not lone, sure
