"""Sums of rollups as rows to charge: for windows that hold more requests than are worth reading one by one."""

from collections.abc import Sequence
from datetime import timedelta

import polars as pl

from analytics import frames
from analytics.tokens.cards import Cards
from analytics.tokens.charged import TOKENS
from store.window import format_duration

NOTE = (
    "from rollups of {size}: no single requests, tenants, conversations or swaps; batch requests are charged in full, "
    "and requests that two spans report twice; a price that changes within {size} holds from the next on"
)


def rows(rolled: pl.DataFrame, labels: Sequence[str]) -> pl.DataFrame:
    """Return one row per bucket and model with the sums of its tokens; `weight` is its requests.

    How long each prompt was is not in a sum, so the base price holds.
    """
    made = frames.label_columns(rolled, labels).filter(pl.col("requests") > 0).sort("bucket")
    return made.with_columns(
        *(pl.col(name).cast(pl.Int64) for name in TOKENS),
        pl.col("bucket").alias("ts"),
        pl.col("requests").alias("weight"),
        pl.lit(0, pl.Int64).alias("length"),
        pl.lit(value=False).alias("batch"),
    )


def notes(rows: pl.DataFrame, cards: Cards, size_s: int) -> tuple[str, ...]:
    """Say what rollups cannot tell."""
    long = sorted(cards.tiered & set(rows["model"].drop_nulls()))
    tiers = (f"long prompts of {', '.join(long)} cost more, and rollups do not say which were long: base price used",)
    return (NOTE.format(size=format_duration(timedelta(seconds=size_s))), *(tiers if long else ()))
