"""Charge lines as a CostQuery gives them, from few words."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl

BEFORE = (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC))
AFTER = (datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 3, tzinfo=UTC))
SCHEMA = {
    "bucket": pl.Datetime("us"), "sku": pl.String, "model": pl.String, "tokens_kind": pl.String, "unit": pl.String,
    "currency": pl.String, "category": pl.String, "cost": pl.Decimal(38, 18), "effective": pl.Decimal(38, 18),
    "quantity": pl.Float64, "requests": pl.Int64, "lines": pl.Int64, "span_s": pl.Float64,
}  # fmt: skip


def lines(rows: Iterable[Mapping[str, Any]], **labels: str) -> pl.DataFrame:
    """Rows with defaults: US dollars, usage of yesterday ("before") unless a bucket says another time."""
    made = []
    for row in rows:
        one: dict[str, Any] = {"bucket": BEFORE[0].replace(tzinfo=None), "currency": "USD", "category": "Usage"}
        one |= {"lines": 1} | labels | row
        one["cost"] = Decimal(str(row["cost"])) if row.get("cost") is not None else None
        made.append(one)
    return pl.DataFrame(made, schema=SCHEMA | dict.fromkeys(labels, pl.String))


def two_days(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Lines of the day before and of the day after."""
    later = [row | {"bucket": AFTER[0].replace(tzinfo=None)} for row in map(dict, after)]
    return lines([*map(dict, before), *later])
