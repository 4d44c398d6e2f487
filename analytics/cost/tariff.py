"""Graduated prices that start again with the month: what looks like a drift on the first and is none.

A unit costs more until so much of the month is used up. So prices are held against those of earlier months at the same
quantity of the month so far, and only what is left of a drift counts.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from analytics.stats.smoothed import Array
from store.zone import zone as named_zone

ITEM = ("sku", "model", "tokens_kind", "unit")
SAME = 0.02
"""Share by which prices of one step of a tariff may differ: bills round to cents."""


def part_of(lines: pl.DataFrame, first: datetime, last: datetime, zone: str) -> float:
    """Return how much more the usual quantity costs in [first, last) because prices start again with the month.

    `lines` are usage lines of one group and grain; times are naive UTC. 0 where the drift begins within a month.
    """
    if not begins_a_month(first, zone) or not lines.height:
        return 0.0
    known = lines.filter(pl.col("quantity") > 0).select("bucket", "cost", "quantity", *ITEM)
    parts = known.group_by([*ITEM, "bucket"]).agg(pl.col("cost").cast(pl.Float64).sum(), pl.col("quantity").sum())
    found = 0.0
    for part in parts.sort("bucket").partition_by(*ITEM, maintain_order=True):
        found += _item(part, first, last, zone)
    return found


def begins_a_month(first: datetime, zone: str) -> bool:
    """Say whether a time is within the first two days of a month."""
    return first - _month(first, zone) <= timedelta(days=2)


def _month(at: datetime, zone: str) -> datetime:
    local = (at.replace(tzinfo=UTC) + timedelta(hours=12)).astimezone(named_zone(zone))
    begins = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return begins.astimezone(UTC).replace(tzinfo=None)


def _item(part: pl.DataFrame, first: datetime, last: datetime, zone: str) -> float:
    times: Sequence[Any] = part["bucket"].to_list()
    months = np.array([_month(at, zone) for at in times])
    quantity = part["quantity"].to_numpy()
    price = part["cost"].to_numpy() / quantity
    used = np.concatenate([quantity[months == month].cumsum() for month in dict.fromkeys(months)]) - quantity
    at = np.array(times)
    before, during = at < first, (at >= first) & (at < last)
    earlier = before & (months < _month(first, zone))
    recent = earlier & (at >= first - timedelta(days=7))
    if not recent.any() or not during.any():
        return 0.0
    usual, now = float(np.median(quantity[recent])), float(np.median(price[recent]))
    known = _price_at(used[earlier], price[earlier], months[earlier], times[0], used[during], price[during], zone)
    rise = np.minimum(known, price[during] * (1 + SAME)) - now
    return float(np.maximum(rise, 0.0).sum() * usual)


def _price_at(
    used: Array, price: Array, months: Any, begins: datetime, wanted: Array, charged: Array, zone: str
) -> Array:
    """Price of earlier months at the same quantity of the month so far.

    Where the bill begins within the only earlier month, its prices say but that they fall: then what is charged counts
    as the first step if it is no lower than all of them.
    """
    whole = (months > _month(begins, zone)) | (begins - _month(begins, zone) < timedelta(days=1, hours=12))
    if whole.any():
        order = np.argsort(used[whole], kind="stable")
        at = np.searchsorted(used[whole][order], wanted, side="right") - 1
        return np.asarray(price[whole][order][np.maximum(at, 0)])
    falls = bool((np.diff(price) <= 1e-9 * price[:-1]).all()) and price[-1] < price[0] * (1 - SAME)
    return charged if falls and (charged >= price.max() * (1 - SAME)).all() else np.zeros(wanted.size)
