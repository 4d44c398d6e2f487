"""Cost of a thousand requests by the hour, beside the concurrency of that hour."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from analytics.connections.concurrency import in_progress
from analytics.connections.over_time import Group, seconds_of
from store.window import Window

HOUR = timedelta(hours=1)
LONGEST_S = 3_600
DIGITS = Decimal("0.000001")
NO_USAGE = ("Tax", "Credit", "Purchase", "Adjustment", "Refund")
"""Categories of charges that do not arise in the hour they are billed for."""


def hourly(costs: pl.DataFrame, labels: dict[str, str], chosen: bool) -> tuple[pl.DataFrame, str | None]:
    """Costs of a group by hour and currency, and why there are none.

    Costs are those of the same service, or those that `--costs` chose. Charges for longer than an hour cannot be told
    by the hour, so they are left out; so are taxes, credits and purchases.
    """
    mine = costs if chosen else costs.filter(pl.col("service").fill_null("") == labels.get("service", ""))
    if not mine.height:
        return mine, "costs are stored, but none name this service: bill it with --label service=, or use --costs k=v"
    usage = mine.filter(~pl.col("category").is_in(NO_USAGE).fill_null(value=False), pl.col("cost").is_not_null())
    fine = usage.filter((pl.col("span_s") <= LONGEST_S).fill_null(value=True))
    why = (
        "costs are charged for longer than an hour each: no cost by the hour"
        if usage.height and not fine.height
        else None
    )
    hours = pl.col("bucket").dt.truncate("1h").alias("hour")
    named = fine.with_columns(pl.col("currency").fill_null(""))
    return named.group_by(hours, "currency").agg(pl.col("cost").sum()).sort("currency", "hour"), why


def rows(group: Group, costs: pl.DataFrame, window: Window) -> list[dict[str, Any]]:
    """Hours with cost and requests that lie wholly within the window, the first and last request's hour left out."""
    found: list[dict[str, Any]] = []
    if not costs.height:
        return found
    first = max(window.start.replace(tzinfo=None), group.rows["ts"][0])
    end = min(window.end.replace(tzinfo=None), _floor(group.rows["ts"][-1]))
    begin = first if first == _floor(first) else _floor(first) + HOUR
    count = (end - begin) // HOUR
    if count < 1:
        return found
    edges = np.arange(count + 1, dtype=np.float64) * 3600.0
    asked = group.rows.filter("request")
    timed = asked.drop_nulls("seconds")
    mean, _ = in_progress(seconds_of(timed["ts"], begin), timed["seconds"].to_numpy(), edges)
    at = np.floor(seconds_of(asked["ts"], begin) / 3600.0).astype(np.int64)
    n = np.bincount(at[(at >= 0) & (at < count)], minlength=count)
    for hour, currency, cost in costs.select("hour", "currency", "cost").iter_rows():
        place = (hour - begin) // HOUR
        if 0 <= place < count and n[place]:
            requests = round(n[place] / group.share_read)
            found.append(
                {"hour": hour, "currency": currency, "concurrency": float(mean[place]) / group.share_read}
                | {"requests": requests, "cost": cost, "unit_cost": (cost * 1000 / requests).quantize(DIGITS)}
            )
    return found


def _floor(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
