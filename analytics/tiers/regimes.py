"""When a price changed: each month against the schedule that the months before it followed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from analytics.tiers.bills import Item, Month
from analytics.tiers.infer import Inferred, infer
from analytics.tiers.schedule import Schedule

LEAST = 0.005
"""Share of the expected cost below which a difference is no change of price."""
HOPELESS = 6
"""Months after which points that follow no schedule are given up; half as many where there is a point a day."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a month added from a day on, against the schedule of the time before; `sure_ratio` leaves rounding out.

    `first_time`: at quantities that no other month reached, so that a dearer tier would look the same.
    """

    since: datetime
    until: datetime | None
    quantity: float
    expected: Decimal
    paid: Decimal
    sure_ratio: float
    months: int
    first_time: bool = False


@dataclass(frozen=True, slots=True)
class Followed:
    """What the latest months follow, which those are, and what changed before; `judged`: the latest was checked."""

    inferred: Inferred
    months: tuple[Month, ...]
    changes: tuple[Change, ...]
    judged: bool


def points(months: Sequence[Month], half: float, slack: float) -> tuple[list[float], list[Decimal], list[float]]:
    """Return quantities, costs and tolerances of months; each line so far may be off by half a unit."""
    q = [x for month in months for x in month.quantities]
    c = [x for month in months for x in month.costs]
    lines = [n for month in months for n in month.lines]
    return q, c, [half * n + slack * abs(float(x)) for n, x in zip(lines, c, strict=True)]


def follow(item: Item, months: Sequence[Month], slack: float) -> Followed:
    """Infer one schedule for all months; where none fits, one for each run of months between changes."""
    whole = infer(*points(months, item.half, slack))
    since = unconfirmed(whole, months)
    if since:
        dearer = _dearer(whole, since)
        if dearer is not None:
            return _risen(item, months, slack, since[dearer]) or Followed(
                _unclear(whole, since), tuple(months), (), False
            )
        whole = _unclear(whole, since)
    if whole.schedule is not None or len(months) < 2:
        return Followed(whole, tuple(months), (), whole.schedule is not None and len(months) > 1)
    return _runs(item, months, slack) or Followed(whole, tuple(months), (), judged=False)


def unconfirmed(found: Inferred, months: Sequence[Month]) -> dict[int, datetime]:
    """Return the limits of tiers (by the number of the tier above) that a price change of that day would explain too.

    All points above such a limit are later than all below it. A month that begins anew at the lower price confirms it.
    """
    times = [(q, day) for month in months for q, day in zip(month.quantities, month.days, strict=True)]
    made = {}
    for k, one in enumerate(found.tiers[1:], start=1):
        above = [day for q, day in times if q > one.from_q]
        below = [day for q, day in times if q <= one.from_q]
        if above and below and max(below) < min(above):
            made[k] = min(above)
    return made


def _dearer(found: Inferred, since: Mapping[int, datetime]) -> int | None:
    """Return the first such limit from which units cost more than before, not counting what was free."""
    for k in since:
        before, after = found.tiers[k - 1].price, found.tiers[k].price
        if before and after is not None and after > before:
            return k
    return None


def _unclear(found: Inferred, since: Mapping[int, datetime]) -> Inferred:
    """Take back limits that a price change explains too; where that is all of them, the model with them."""
    tiers = tuple(
        replace(one, start_identified=False, what=f"a price that changed on {since[k]:%Y-%m-%d} would look the same")
        if k in since
        else one
        for k, one in enumerate(found.tiers)
    )
    if found.model not in ("graduated", "volume") or len(since) < len(found.tiers) - 1:
        return replace(found, tiers=tiers)
    days = ", ".join(f"{day:%Y-%m-%d}" for day in since.values())
    reason = f"{found.model} prices, or prices that changed on {days}: no later month shows which"
    return replace(found, model="unknown", reason=reason, tiers=tiers, schedule=None, residual=None)


def _risen(item: Item, months: Sequence[Month], slack: float, since: datetime) -> Followed | None:
    """Hold the month in which units began to cost more against the prices before; None where those are not known."""
    at = next(i for i, month in enumerate(months) if since in month.days)
    before = [*months[:at], months[at].until(since)] if since > months[at].days[0] else list(months[:at])
    known = infer(*points(before, item.half, slack)) if before else None
    if known is None or not _sure(known) or known.schedule is None:
        return None
    month = months[at]
    change = _between(
        known.schedule, month, month.days.index(since), len(month.days) - 1, item.half, slack, len(before)
    )
    if change is None:
        return None
    end = months[at + 1].start if at + 1 < len(months) else None
    change = replace(change, until=end, first_time=True)
    reason = f"{known.reason}; until {since:%Y-%m-%d}, when units began to cost more: see changes"
    return Followed(replace(known, reason=reason), tuple(months), (change,), judged=True)


def _runs(item: Item, months: Sequence[Month], slack: float) -> Followed | None:
    """Go through the months; None where no run of them follows a schedule that can be checked."""
    run: list[Month] = []
    known: Inferred | None = None
    changes: list[Change] = []
    judged = False
    for i, month in enumerate(months):
        change = _changed(known, run, month, item.half, slack) if known is not None else None
        judged = known is not None
        if change is not None:
            after = months[i + 1].start if i + 1 < len(months) else None
            changes.append(replace(change, until=after))
            run = [month] if change.since == month.days[0] else []
        else:
            run.append(month)
        if change is not None or known is None or not known.covers(month.quantities[-1]):
            found = infer(*points(run, item.half, slack)) if run else None
            known = found if found is not None and _sure(found) else None
            lost = found is not None and found.schedule is None
            if lost and len(run) >= (HOPELESS if len(month.days) == 1 else HOPELESS / 2):
                judged = False
                break
    if not changes:
        return None
    latest = months[months.index(run[0]) :] if run else months[-1:]
    return Followed(infer(*points(latest, item.half, slack)), tuple(latest), tuple(changes), judged)


def _sure(found: Inferred) -> bool:
    """Say whether a schedule is one to hold others against: all its tiers are identified."""
    seen = [one for one in found.tiers if one.price is not None]
    return found.schedule is not None and all(one.identified and one.start_identified for one in seen)


def _changed(known: Inferred, run: Sequence[Month], month: Month, half: float, slack: float) -> Change | None:
    """Compare a month with a schedule at its largest quantity that the schedule knows; None where they agree."""
    schedule = known.schedule
    if schedule is None:
        return None
    first, last = 0, None  # until a point agrees, the change may be as old as the month
    for i, (q, paid, lines) in enumerate(zip(month.quantities, month.costs, month.lines, strict=True)):
        exact = Decimal(repr(q))
        if q < float(known.q[0]) or not schedule.knows(exact):
            continue
        if _off(schedule.cost(exact), paid, half * lines, slack) <= 0:
            first, last = i + 1, None
        else:
            last = i
    return None if last is None else _between(schedule, month, first, last, half, slack, len(run))


def _between(
    schedule: Schedule, month: Month, first: int, last: int, half: float, slack: float, months: int
) -> Change | None:
    """Compare what the days from first to last of a month added with a schedule; None where they agree."""
    q, paid, lines = month.quantities[last], month.costs[last], month.lines[last]
    expected = schedule.cost(Decimal(repr(q)))
    if first:
        q0 = month.quantities[first - 1]
        expected, paid, lines = (
            schedule.added(Decimal(repr(q0)), Decimal(repr(q))), paid - month.costs[first - 1],
            lines - month.lines[first - 1],
        )  # fmt: skip
        q -= q0
    off = _off(expected, paid, half * lines, slack)
    sure = off / float(expected) if expected > 0 else off
    return Change(month.days[first], None, q, expected, paid, sure, months) if sure > LEAST else None


def _off(expected: Decimal, paid: Decimal, rounding: float, slack: float) -> float:
    """Return by how much two costs differ beyond rounding; at most 0 where they agree."""
    return abs(float(paid - expected)) - rounding - slack * abs(float(paid)) - 1e-9 * abs(float(expected))
