"""Rows of the frames of `analyze tiers`."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from analytics.tiers.bills import Item
from analytics.tiers.fitted import SURE, Found, narrow
from analytics.tiers.infer import Inferred
from analytics.tiers.regimes import Followed
from analytics.tiers.schedule import Schedule
from analytics.tiers.segments import Segments
from store.money import rounded

MOST_POINTS = 5_000
"""Points shown of all items together."""
Labels = Mapping[str, str]


def model_row(followed: Followed, rests_on: str, labels: Labels) -> dict[str, Any]:
    """Return the row of `model`."""
    found, schedule = followed.inferred, followed.inferred.schedule
    low, high = found.fee or (None, None)
    return {
        **labels, "model": found.model, "reason": found.reason, "rests_on": rests_on,
        "fee": schedule.fee if schedule is not None and schedule.fee else None, "fee_low": low, "fee_high": high,
        "minimum": schedule.minimum if schedule is not None and schedule.minimum else None,
        "q_max": float(schedule.known_to) if schedule is not None and schedule.known_to is not None else None,
        "points": int(found.q.size), "months": len(followed.months),
        "since": None if rests_on == "given" else followed.months[0].start,
        "residual": found.residual, "alternatives": len(found.alternatives),
        "cost": sum((month.costs[-1] for month in followed.months), Decimal(0)),
    }  # fmt: skip


def tier_rows(found: Inferred, labels: Labels) -> list[dict[str, Any]]:
    """Return the rows of `tiers`, one per tier."""
    made = []
    for k, one in enumerate(found.tiers):
        start, slope = one.start or (None, None), one.slope or (None, None)
        after = found.tiers[k + 1] if k + 1 < len(found.tiers) else None
        made.append(
            {
                **labels, "tier": k + 1, "from_q": float(one.from_q), "from_low": start[0], "from_high": start[1],
                "from_identified": one.start_identified, "to_q": None if after is None else float(after.from_q),
                "unit_price": None if one.price is None else rounded(one.price), "low": slope[0], "high": slope[1],
                "points": one.points, "identified": one.identified, "verdict": _verdict(found, one),
            }
        )  # fmt: skip
    return made


def _verdict(found: Inferred, one: Found) -> str:
    if one.what:
        return one.what
    if one.identified:
        return "identified"
    if one.points == 1:
        return "one point: no price"
    if one.points < SURE:
        return "consistent, unverified: two points lie on any line"
    if not narrow(one.slope) and one.price:
        return "the bill allows prices more than 1 % apart"
    if found.model == "unknown":
        return "unverified: no schedule is known"
    return "consistent, unverified: too few points apart from each other in every cut"


def alternative_rows(found: Inferred, labels: Labels) -> list[dict[str, Any]]:
    """Return the rows of `alternatives`; none where there is only one cut."""
    if len(found.alternatives) < 2:
        return []
    points, made = Segments(found.q, found.low, found.high), []
    for number, cut in enumerate(found.alternatives, start=1):
        for k, (first, last) in enumerate(cut, start=1):
            line = points.line(first, last) if last > first else None
            low, high = line.slope if line is not None else (None, None)
            ends = {"first_q": float(found.q[first]), "last_q": float(found.q[last])}
            size = last - first + 1
            made.append({**labels, "alternative": number, "tier": k, **ends, "low": low, "high": high, "points": size})
    return made


def change_rows(followed: Followed, labels: Labels) -> list[dict[str, Any]]:
    """Return the rows of `changes`."""
    return [
        {
            **labels, "since": one.since, "until": one.until, "quantity": one.quantity,
            "expected": rounded(one.expected), "paid": one.paid, "months": one.months,
            "ratio": float(one.paid / one.expected) - 1 if one.expected else None,
        }
        for one in followed.changes
    ]  # fmt: skip


def point_rows(followed: Followed, labels: Labels, shown: int) -> list[dict[str, Any]]:
    """Return the rows of `points`, as long as not too many are shown already."""
    made = []
    for month in followed.months:
        for q, c in zip(month.quantities, month.costs, strict=True):
            made.append({**labels, "month": month.start, "quantity": q, "cost": c,
                         "scheduled": _scheduled(followed.inferred.schedule, q)})  # fmt: skip
    return made[: max(MOST_POINTS - shown, 0)]


def _scheduled(schedule: Schedule | None, q: float) -> Decimal | None:
    exact = Decimal(repr(q))
    return rounded(schedule.cost(exact)) if schedule is not None and schedule.knows(exact) else None


def check_rows(item: Item, given: Schedule, labels: Labels) -> list[dict[str, Any]]:
    """Return the rows of `check`: each month's total by a stated schedule, read both ways."""
    made = []
    volume = Schedule("volume", given.tiers)
    for month in item.months:
        q, cost = Decimal(repr(month.quantities[-1])), month.costs[-1]
        both = {"graduated": given.cost(q), "volume": volume.cost(q)}
        allowed = Decimal(repr(item.half * month.lines[-1] * 1.000001))
        fits = [name for name, amount in both.items() if abs(amount - cost) <= allowed]
        verdict = "both" if len(fits) == 2 else fits[0] if fits else "neither"
        amounts = {name: rounded(amount) for name, amount in both.items()}
        made.append({**labels, "quantity": float(q), "cost": cost, **amounts, "verdict": verdict})
    return made
