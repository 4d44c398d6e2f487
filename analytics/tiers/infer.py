"""Which schedule of prices a bill follows: the fewest tiers that give each cost within its rounding, or why none."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

import numpy as np

from analytics.tiers.fitted import SURE, Found, Interval, checks, continuous, rank, residual, size, volume
from analytics.tiers.graduated import graduated, suggested
from analytics.tiers.lines import Array
from analytics.tiers.schedule import Schedule
from analytics.tiers.segments import Cut, Segments

Model = Literal["graduated", "volume", "one price", "unknown"]
CUTS = 60
"""Cuts into equally few tiers that are looked at."""
DISTINCT = 10
"""Of these, how many that differ in prices are kept."""
TRIES = 5
"""Of these, from the best on, how many are tried for one schedule that passes all points."""
_SLACK = 1e-9
"""Share of the largest cost that a binary sum of decimals may be off."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """What the points of one item say. `schedule` is None where no model is known; `tiers` are then a suggestion.

    `residual` is the largest difference of schedule and bill over half a unit of rounding, at most 1 where it fits.
    """

    model: Model
    reason: str
    q: Array
    low: Array
    high: Array
    tiers: tuple[Found, ...] = ()
    schedule: Schedule | None = None
    fee: Interval | None = None
    residual: float | None = None
    alternatives: tuple[Cut, ...] = field(default=())

    def covers(self, quantity: float) -> bool:
        """Say whether the schedule is known at a quantity."""
        return self.schedule is not None and self.schedule.knows(Decimal(repr(quantity)))


def rise(q: Array, low: Array, high: Array) -> tuple[int, int] | None:
    """Return two points of which the larger quantity has the higher average price, whatever the rounding."""
    least = high / q
    above = np.flatnonzero(low[1:] / q[1:] > np.minimum.accumulate(least)[:-1])
    if not above.size:
        return None
    return int(np.argmin(least[: above[0] + 1])), int(above[0]) + 1


def infer(quantities: Sequence[float], costs: Sequence[Decimal], tolerance: Sequence[float]) -> Inferred:
    """Infer the schedule behind points of quantity and cost, each known to within its tolerance.

    Points with a quantity of 0 or less say nothing of a unit price and are left out.
    """
    order = sorted(i for i, q in enumerate(quantities) if q > 0)
    q = np.array([quantities[i] for i in order], dtype=np.float64)
    c = np.array([float(costs[i]) for i in order], dtype=np.float64)
    slack = _SLACK * max(float(np.abs(c).max()), 1e-12) if c.size else 0.0
    half = np.array([tolerance[i] for i in order], dtype=np.float64) + slack
    unique, where = np.unique(q, return_inverse=True)
    low, high = np.full(unique.size, -np.inf), np.full(unique.size, np.inf)
    np.maximum.at(low, where, c - half)
    np.minimum.at(high, where, c + half)
    clash = np.flatnonzero(low > high)
    if clash.size:
        at = f"{unique[clash[0]]:.10g}"
        return Inferred("unknown", f"inconsistent: the quantity {at} has two costs", unique, low, np.maximum(low, high))
    return _decided(unique, low, high)


def _decided(q: Array, low: Array, high: Array) -> Inferred:
    free, origin = Segments(q, low, high), Segments(q, low, high, origin=True)
    if not q.size:
        return Inferred("unknown", "no point with a quantity", q, low, high)
    if len(origin.late) == 1:
        return _one_price(origin)
    if not free.late:
        return Inferred("unknown", "inconsistent: no dozen of lines passes these points", q, low, high)
    if len(free.late) == 1:
        return _one_line(free)
    if len(origin.late) == len(free.late) and _supported(origin) >= 2:
        return _volume(origin)
    return _graduated(free)


def _supported(points: Segments) -> int:
    sizes = [points.core(k) for k in range(len(points.late))]
    return sum(last - first + 1 >= 2 for first, last in sizes)


def _one_price(points: Segments) -> Inferred:
    cut = ((0, points.q.size - 1),)
    found, made = volume(points, cut)
    schedule = Schedule("graduated", made.tiers, known_to=made.known_to)
    n = points.q.size
    if n == 1:
        return _of(points, "unknown", "one point only", found, None, cut)
    reason = "one price for all" if n >= SURE else "consistent with one price, unverified: two points"
    return _of(points, "one price", f"{reason}; what costs more or less beyond is not seen", found, schedule, cut)


def _one_line(points: Segments) -> Inferred:
    """Answer for one line with an intercept: a fee, an allowance, or an earlier tier that no point lies in."""
    cut = ((0, points.q.size - 1),)
    line = points.line(*cut[0])
    fee = line.intercept if line is not None else None
    below = f"below {points.q[0]:.6g}, where no point is"
    if points.q.size < SURE:
        return _of(points, "unknown", "two points lie on any line", suggested(points, cut), None, cut, fee=fee)
    found, schedule = graduated(points, cut) or (suggested(points, cut), None)
    if fee is not None and fee[0] > 0:
        reason = f"one price and a fixed fee, or a dearer tier {below}"
    else:
        reason = f"one price beyond a free allowance, or a cheaper tier {below}"
    return _of(points, "one price", reason, found, schedule, cut, fee=fee)


def _volume(points: Segments) -> Inferred:
    cuts = list(points.cuts(CUTS))
    found, schedule = volume(points, max(cuts, key=lambda cut: rank(cut, points)))
    reason = "each price holds for the whole quantity: all lines go through zero"
    return _of(points, "volume", reason, found, schedule, *cuts)


def _graduated(points: Segments) -> Inferred:
    cuts = list(points.cuts(CUTS))
    good = sorted((cut for cut in cuts if continuous(points, cut)), key=lambda cut: rank(cut, points), reverse=True)
    best = (good or cuts)[0]
    found = suggested(points, best)
    fee = _fee(points, best)
    if reason := _doubt(points, best, good):
        return _of(points, "unknown", reason, found, None, *distinct(points, good or cuts), fee=fee)
    for cut in good[:TRIES]:
        made = graduated(points, cut)
        if made is not None:
            return _of(
                points, "graduated", _words(made[1]), *made, *distinct(points, [cut, *good]), fee=_fee(points, cut)
            )
    reason = "inconsistent: no graduated prices pass all points at once"
    return _of(points, "unknown", reason, found, None, *distinct(points, good), fee=fee)


def distinct(points: Segments, cuts: Sequence[Cut]) -> list[Cut]:
    """Keep cuts that differ in more than a point on a limit: by prices that cannot be equal, or that only one has."""
    kept: list[tuple[Cut, list[Interval | None]]] = []
    for cut in cuts:
        lines = [points.line(*ends) if size(ends) > 1 else None for ends in cut]
        prices = [None if line is None else line.slope for line in lines]
        if not any(_same(prices, other) for _, other in kept):
            kept.append((cut, prices))
        if len(kept) == DISTINCT:
            break
    return [cut for cut, _ in kept]


def _same(one: Sequence[Interval | None], other: Sequence[Interval | None]) -> bool:
    pairs = list(zip(one, other, strict=True))
    if any((a is None) != (b is None) for a, b in pairs):
        return False
    return all(a is None or b is None or max(a[0], b[0]) <= min(a[1], b[1]) for a, b in pairs)


def _doubt(points: Segments, best: Cut, good: Sequence[Cut]) -> str:
    """Say why no graduated schedule is claimed; empty where one is."""
    seen = [
        (k, line)
        for k, ends in enumerate(best)
        if checks(points, ends) >= SURE and (line := points.line(*ends)) is not None
    ]
    if not any(line.through_origin() is None for _, line in seen) or not any(k for k, _ in seen):
        if len(Segments(points.q, points.low, points.high, origin=True).late) == len(best):
            return f"consistent with prices for the whole quantity, unverified: {_too_few(points, best)}"
        return f"not identifiable: {_too_few(points, best)}"
    if sum(size(best[k]) for k, _ in seen) * 2 <= points.q.size:
        return "inconsistent: most points share no line with two others"
    return "" if good else "inconsistent: the lines of the tiers do not meet, and do not go through zero"


def _fee(points: Segments, cut: Cut) -> Interval | None:
    first = points.line(*cut[0])
    return first.intercept if first is not None and first.intercept[0] > 0 and size(cut[0]) > 1 else None


def _too_few(points: Segments, cut: Cut) -> str:
    n, tiers = points.q.size, len(cut)
    limits = "a limit" if tiers == 2 else f"{tiers - 1} limits"
    return f"{n} points for at least {tiers} prices and {limits} between them"


def _words(schedule: Schedule) -> str:
    if schedule.minimum:
        return f"a minimum fee of {float(schedule.minimum):.6g}, then each unit at the price of its tier"
    if schedule.fee:
        amount = f"{float(schedule.fee):.6g}"
        if schedule.tiers[0].unit_price == 0:
            return f"a flat fee of {amount} that includes a quantity, then each unit at the price of its tier"
        return f"each unit at the price of its tier, and a fixed fee of {amount} or a dearer tier below the first point"
    if schedule.tiers[0].unit_price == 0:
        return "a free allowance, then each unit at the price of its tier"
    return "each unit at the price of its tier"


def _of(
    points: Segments, model: Model, reason: str, found: Sequence[Found], schedule: Schedule | None, *cuts: Cut,
    fee: Interval | None = None,
) -> Inferred:  # fmt: skip
    if model == "unknown":
        reason += (
            " (and the average price rises, which prices that only fall cannot give)"
            if rise(points.q, points.low, points.high)
            else ""
        )
        found = [replace(one, identified=False, start_identified=False) for one in found]
    return Inferred(
        model, reason, points.q, points.low, points.high, tuple(found), schedule, fee,
        residual(schedule, points) if schedule is not None else None, cuts,
    )  # fmt: skip
