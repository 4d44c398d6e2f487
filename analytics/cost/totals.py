"""What was charged: sums per group, currency and category, exact; and per local day with the hours it had."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import polars as pl

from analytics.cost.grid import USAGE, Lines
from store.window import Window
from store.zone import bucket_of, days
from store.zone import zone as named_zone

MOST_DAYS = 2_000
"""Rows of days: of many groups, those of the newest days."""


def totals(lines: Lines) -> pl.DataFrame:
    """Add up by category, largest groups first; `net` is the sum of a group over all of them."""
    made = lines.frame.group_by("group", pl.col("category").cast(pl.Categorical)).agg(
        pl.col("cost").sum(), pl.col("effective").sum(), pl.col("lines").sum(), pl.col("cost").count().alias("known")
    )
    made = made.with_columns(pl.col("category").cast(pl.String))
    net = pl.col("cost").sum().over("group")
    made = made.with_columns(net.alias("net"), pl.when(pl.col("known") > 0).then(pl.col("cost")).alias("cost"))
    made = made.sort("net", "group", "category", descending=[True, False, False])
    return made.join(lines.groups, on="group", maintain_order="left")


def by_day(lines: Lines, zone: str) -> tuple[list[dict[str, Any]], str]:
    """Return usage per local day, and per hour of it: 23 or 25 of them where a clock changes; a note if it is cut."""
    span = (
        pl.duration(seconds=pl.col("span_s").fill_null(3600)) if "span_s" in lines.frame.columns else timedelta(hours=1)
    )
    first = lines.frame["bucket"].min()
    last = lines.frame.filter(USAGE).select((pl.col("bucket") + span).max()).item()
    if not isinstance(first, datetime) or not isinstance(last, datetime):
        return [], ""
    known = Window(first.replace(tzinfo=UTC), last.replace(tzinfo=UTC))
    bounds = days(known, named_zone(zone))
    shown = max(7, MOST_DAYS // max(lines.groups.height, 1))
    kept = bounds[-shown - 1 :]
    length = {_naive(start): (end - start) / timedelta(hours=1) for start, end in pairwise(kept)}
    recent = lines.frame.filter(USAGE & (pl.col("bucket") >= _naive(kept[0])))
    noon = pl.when(pl.col("basis") == "billed daily").then(timedelta(hours=12)).otherwise(timedelta(0))
    recent = recent.with_columns((pl.col("bucket") + noon).alias("at"))
    summed = recent.group_by("group", bucket_of("at", kept).alias("day")).agg(pl.col("cost").sum())
    summed = summed.drop_nulls("day").sort("day", "group").tail(MOST_DAYS)
    rows = [
        row | {"hours": round(length[row["day"]]), "per_hour": _per_hour(row, length[row["day"]], first, last)}
        for row in summed.join(lines.groups, on="group", maintain_order="left").iter_rows(named=True)
    ]
    cut = len(kept) < len(bounds) or len(rows) == MOST_DAYS
    return rows, f"days: the newest {len(kept) - 1} of {len(bounds) - 1}" if cut else ""


def _per_hour(row: dict[str, Any], length: float, first: datetime, last: datetime) -> float | None:
    """Divide by the hours of the day; None for a day of which lines are known for a part only."""
    begins: datetime = row["day"]
    whole = first <= begins and begins + timedelta(hours=length) <= last
    return float(row["cost"]) / length if whole else None


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)
