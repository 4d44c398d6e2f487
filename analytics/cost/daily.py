"""Charge lines as amounts per local calendar day, and how the amount of a day comes in over its hours."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from analytics.stats.smoothed import Array
from store.window import Window
from store.zone import bucket_of, day_start, days

_PROFILE_DAYS = 28


@dataclass(frozen=True, slots=True)
class Daily:
    """Amounts of the whole days before `now`, oldest first, and of the day that `now` is in.

    `left` is the share of a day that comes in after the time of day that `now` is: 1 at midnight. `days` are dates of
    the report zone. `cost` and `quantity` have one value a day; a day without a line within them counts as 0.
    """

    days: tuple[date, ...]
    cost: Array
    quantity: Array
    today: date
    left: float


def daily(lines: pl.DataFrame, now: datetime, where: ZoneInfo) -> Daily:
    """Add up lines (bucket, cost, quantity) by local day. The first day counts if its lines begin with it."""
    known = lines.filter(pl.col("bucket") < now.astimezone(UTC).replace(tzinfo=None))
    today = now.astimezone(where).date()
    if not known.height:
        return Daily((), np.zeros(0), np.zeros(0), today, _even(now, where))
    first = known["bucket"].min()
    assert isinstance(first, datetime)
    bounds = days(Window(first.replace(tzinfo=UTC), max(now, first.replace(tzinfo=UTC)).astimezone(UTC)), where)
    bounds = [at for at in bounds if at <= now]
    if first.replace(tzinfo=UTC) > bounds[0] and len(bounds) > 1:
        bounds = bounds[1:]
    whole = [start for start, _ in pairwise(bounds)]
    found = known.with_columns(bucket_of("bucket", bounds).alias("day"))
    sums = found.drop_nulls("day").group_by("day").agg(pl.col("cost", "quantity").cast(pl.Float64).sum())
    table = pl.DataFrame({"day": [at.replace(tzinfo=None) for at in whole]}, schema={"day": pl.Datetime("us")})
    table = table.join(sums, on="day", how="left", maintain_order="left").fill_null(0.0)
    dates = tuple(at.astimezone(where).date() for at in whole)
    left = _left(found, whole, now, where)
    return Daily(dates, table["cost"].to_numpy(), table["quantity"].to_numpy(), today, left)


def _even(now: datetime, where: ZoneInfo) -> float:
    start = day_start(now.astimezone(where).date(), where)
    return max(0.0, 1.0 - (now - start).total_seconds() / 86400.0)


def _left(found: pl.DataFrame, whole: list[datetime], now: datetime, where: ZoneInfo) -> float:
    """Return the share of the last four weeks' cost that came in later in the day than `now` is."""
    passed = now - day_start(now.astimezone(where).date(), where)
    since = [at.replace(tzinfo=None) for at in whole[-_PROFILE_DAYS:]]
    recent = found.filter(pl.col("day").is_in(since))
    total = float(recent["cost"].cast(pl.Float64).sum())
    if total <= 0.0:
        return _even(now, where)
    late = recent.filter(pl.col("bucket") - pl.col("day") >= passed)
    return min(1.0, max(0.0, float(late["cost"].cast(pl.Float64).sum()) / total))
