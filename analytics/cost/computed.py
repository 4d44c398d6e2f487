"""Spend computed from requests: their tokens at the prices in force, for services that no bill names.

An estimate beside the bill, never added to it: base prices alone, without tiers for long prompts, batch discounts,
commitments and what failed requests cost.
"""

from collections.abc import Sequence

import polars as pl

from analytics.cost import priced

LABELS = {"region": "cloud_region"}
"""Columns of rollups that are called otherwise than in a bill."""


def lines(requests: pl.DataFrame, prices: pl.DataFrame, labels: Sequence[str]) -> pl.DataFrame:
    """Hourly usage lines in the form of a CostQuery, by kind of token; hours whose model has no price are left out."""
    if not requests.height or not prices.height:
        return pl.DataFrame()
    named = requests.with_columns(_text(LABELS.get(name, name), requests).alias(name) for name in labels)
    return priced.lines(named, prices, labels).with_columns(
        pl.lit("hour").alias("grain"), pl.lit("computed").alias("basis")
    )


def _text(column: str, frame: pl.DataFrame) -> pl.Expr:
    return pl.col(column).cast(pl.String) if column in frame.columns else pl.lit(None, pl.String)
