"""Costs of many possible quantities by a price schedule at once; quantities begin anew with each month."""

from collections.abc import Sequence
from datetime import date

import numpy as np

from analytics.stats.smoothed import Array
from analytics.tiers.schedule import Schedule


def month_cost(schedule: Schedule, quantity: Array) -> Array:
    """Return what a month with each of these quantities costs; a quantity below 0 counts as 0."""
    q = np.maximum(quantity, 0.0)
    starts = np.array([float(tier.from_q) for tier in schedule.tiers])
    prices = np.array([float(tier.unit_price) for tier in schedule.tiers])
    if schedule.model == "volume":
        charged = q * prices[np.maximum(np.searchsorted(starts, q, side="left") - 1, 0)]
    else:
        units = np.clip(q[..., None] - starts, 0.0, np.append(np.diff(starts), np.inf))
        charged = units @ prices
    return np.asarray(np.maximum(charged + float(schedule.fee), float(schedule.minimum)))


def daily_costs(schedule: Schedule, drawn: Array, days: Sequence[date], before: float) -> Array:
    """Return what each day adds to the cost: `drawn` (paths, days) are quantities of the days.

    `before` is the quantity of the first day's month so far; a month that begins within the days begins at nothing and
    owes fee and minimum from its first day on.
    """
    made = np.empty_like(drawn)
    first, begun = 0, before
    while first < len(days):
        last = first
        while last + 1 < len(days) and days[last + 1].month == days[first].month:
            last += 1
        sums = begun + np.cumsum(drawn[:, first : last + 1], axis=1)
        costs = month_cost(schedule, sums)
        start = month_cost(schedule, np.array([begun]))[0] if first == 0 else 0.0
        made[:, first : last + 1] = np.diff(costs, axis=1, prepend=np.full((costs.shape[0], 1), start))
        first, begun = last + 1, 0.0
    return made
