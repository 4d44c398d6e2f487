"""Items whose price depends on how much of the month's quantity is used up, and the schedule their bill follows."""

from datetime import datetime, timedelta

import polars as pl

from analytics.tiers.bills import items
from analytics.tiers.bills import usage as lines_with_quantity
from analytics.tiers.regimes import follow
from analytics.tiers.schedule import Schedule

MOST_ITEMS = 20
"""Items looked at, those of the highest cost whose price was not one and the same."""
SAME = 1.02
"""Largest price of a day over its smallest that rounding explains."""


def schedules(usage: pl.DataFrame) -> dict[str, Schedule]:
    """Return the schedule of each item (by name) of `named` usage in one currency that is known to follow tiers.

    It has to hold for two months: within one, a new price looks like a tier. A month of which the lines lack the first
    days says nothing. One group's lines may be part of what an account's
    tiers count; then no schedule fits them and none is returned.
    """
    days = _by_day(_varying(usage))
    first = days["bucket"].min()
    if not isinstance(first, datetime):
        return {}
    known, _ = lines_with_quantity(days, (), first - timedelta(days=1, hours=12))
    found = {}
    for item in items(known, (), MOST_ITEMS):
        followed = follow(item, item.months, 0.0)
        schedule = followed.inferred.schedule
        if schedule is not None and len(followed.months) > 1 and followed.inferred.model in ("graduated", "volume"):
            found[item.key["item"]] = schedule
    return found


def _varying(usage: pl.DataFrame) -> pl.DataFrame:
    """Keep the items whose price per unit differs between days."""
    measured = usage.filter(pl.col("pool").is_not_null() & (pl.col("quantity") > 0))
    sums = measured.group_by("item", pl.col("bucket").dt.truncate("1d")).agg(
        (pl.col("cost").cast(pl.Float64).sum() / pl.col("quantity").sum()).alias("price")
    )
    price = pl.col("price")
    varying = sums.group_by("item").agg(price.min().alias("least"), price.max().alias("most"))
    kept = varying.filter(pl.col("most") > SAME * pl.col("least"))
    return measured.join(kept.select("item"), on="item", how="semi")


def _by_day(measured: pl.DataFrame) -> pl.DataFrame:
    """Add up by day, in the form that `analytics.tiers` reads, where the SKU names an item."""
    count = pl.col("lines").sum() if "lines" in measured.columns else pl.len().cast(pl.Int64).alias("lines")
    days = measured.group_by("item", "unit", pl.col("bucket").dt.truncate("1d")).agg(
        pl.col("cost").sum(), pl.col("quantity").sum(), count
    )
    nothing = [pl.lit(None, pl.String).alias(n) for n in ("model", "tokens_kind", "cost_service", "billing_period")]
    return days.rename({"item": "sku"}).with_columns(
        *nothing, pl.lit("Usage").alias("category"), pl.lit("").alias("currency")
    ).sort("bucket")  # fmt: skip
