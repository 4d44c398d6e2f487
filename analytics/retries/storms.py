"""Retry storms: stretches of time in which most of the load is the same requests again."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from analytics.buckets import bucket_index, bucket_start
from analytics.retries import STORM
from analytics.stats.proportion import wilson
from store.window import Window

LEAST_ATTEMPTS = 20
"""Attempts in a bucket for a lower limit."""


@dataclass(frozen=True, slots=True)
class Storm:
    """Adjacent buckets in which the lower limit was above the bound."""

    since: datetime
    until: datetime
    lasting: bool
    attempts: int
    retries: int
    low: float
    error_code: str | None


def timeline(attempts: pl.DataFrame, window: Window, size: timedelta) -> pl.DataFrame:
    """Count attempts per bucket, the latest last: columns of the frame `timeline`, and bucket (0 is the latest).

    The lower limit is that of a share of retries (Wilson), with the retries of one request in a bucket counted as one.
    """
    again = pl.int_range(pl.len()).over("sequence") > 0
    numbered = attempts.with_columns(bucket_index(window, size), again.alias("again"))
    parts = numbered.group_by("bucket", "sequence").agg(
        pl.len().alias("n"), pl.col("again").sum().cast(pl.Int64), pl.col("failed").sum().cast(pl.Int64)
    )
    table = parts.group_by("bucket").agg(
        pl.col("n").sum().cast(pl.Int64).alias("attempts"),
        pl.col("again").sum().alias("retries"),
        pl.col("failed").sum(),
        (pl.col("again").pow(2).sum() / pl.col("again").sum()).alias("_together"),
    )
    together = np.maximum(table["_together"].fill_nan(1.0).fill_null(1.0).to_numpy(), 1.0)
    low = wilson(table["retries"].to_numpy() / together, table["attempts"].to_numpy() / together)[0]
    enough = table["attempts"].to_numpy() >= LEAST_ATTEMPTS
    least = np.where(enough, 1.0 / np.maximum(1.0 - low, 1e-9), np.nan)
    first = pl.col("attempts") - pl.col("retries")
    return table.with_columns(
        pl.when(first > 0).then(pl.col("attempts") / first).alias("amplification"),
        pl.Series("amplification_low", least).fill_nan(None),
        bucket_start(window, size),
    ).sort("bucket", descending=True)


def storms(table: pl.DataFrame, attempts: pl.DataFrame, size: timedelta) -> list[Storm]:
    """Return the stretches of adjacent buckets above the bound of the alert, in order of time."""
    kept = table.filter(pl.col("amplification_low") > STORM.bound)
    if not kept.height:
        return []
    starts = (kept["bucket"].cast(pl.Int64).diff() != -1).fill_null(value=True).cum_sum()
    parts = kept.with_columns(starts.alias("_run")).partition_by("_run", include_key=False, maintain_order=True)
    return [_storm(part, attempts, size) for part in parts]


def _storm(part: pl.DataFrame, attempts: pl.DataFrame, size: timedelta) -> Storm:
    since, until = part["ts"][0], part["ts"][-1] + size
    inside = attempts.filter("failed", pl.col("ts") >= since, pl.col("ts") < until)["error_code"].drop_nulls()
    lasting = part["bucket"][-1] == 0
    low = part["amplification_low"]
    return Storm(
        since=since,
        until=until,
        lasting=lasting,
        attempts=int(part["attempts"].sum()),
        retries=int(part["retries"].sum()),
        low=float(low[-1]) if lasting else float(low.to_numpy().max()),
        error_code=inside.mode().sort()[0] if inside.len() else None,
    )


def row(storm: Storm) -> dict[str, Any]:
    """Row of the frame `episodes`."""
    first = storm.attempts - storm.retries
    return {
        "since": storm.since,
        "until": None if storm.lasting else storm.until,
        "attempts": storm.attempts,
        "retries": storm.retries,
        "amplification": storm.attempts / first if first else None,
        "error_code": storm.error_code,
    }
