"""Streams over time, and how the latest bucket's share of stalled streams compares with the buckets before."""

from datetime import timedelta
from typing import Any

import polars as pl

from analytics import buckets, frames
from analytics.stats.proportion import wilson
from analytics.stream import slower
from store.window import Window

MEDIAN_STREAMS = 30
FEWEST_BEFORE = 100
"""Streams in the buckets before that a comparison wants."""


def timeline(
    streams: pl.DataFrame, rows: pl.DataFrame, by: list[str], window: Window
) -> tuple[pl.DataFrame, timedelta]:
    """Return a row per group and bucket that has streams, with the gaps of these (`rows`: events), and the bucket."""
    size = buckets.choose(streams, window, MEDIAN_STREAMS)
    placed = streams.with_columns(buckets.bucket_index(window, size))
    made = placed.group_by([*by, "bucket"]).agg(
        pl.len().cast(pl.Int64).alias("streams"),
        pl.col("itl_median_s").median().alias("itl_p50_s"),
        pl.col("itl_max_s").quantile(0.99, "linear").alias("itl_p99_s"),
        pl.col("stalls").count().cast(pl.Int64).alias("able"),
        (pl.col("stalls") > 0).sum().cast(pl.Int64).alias("stalled"),
        pl.col("stalls").sum().alias("stalls"),
    )
    gaps = slower.judged(slower.measured(rows, placed, by, size), by).drop("streams")
    ratio = pl.when(pl.col("able") > 0).then(pl.col("stalled") / pl.col("able")).alias("stalled_ratio")
    whole = made.join(gaps, on=[*by, "bucket"], how="left")
    return whole.with_columns(ratio, buckets.bucket_start(window, size)).sort(*by, "ts"), size


def excess(rows: pl.DataFrame, by: list[str]) -> list[dict[str, Any]]:
    """Return, per group, the latest bucket's lower limit of the stalled share over the upper limit before.

    Null (None) where the buckets before hold too few streams, or the latest has none.
    """
    made = []
    for labels, part in frames.groups(rows, by):
        last = part.filter(pl.col("bucket") == 0)
        before = part.filter(pl.col("bucket") > 0)
        hits, n = int(last["stalled"].sum()), int(last["able"].sum())
        hits_before, n_before = int(before["stalled"].sum()), int(before["able"].sum())
        low = float(wilson([hits], [n])[0][0]) if n else None
        high = float(wilson([hits_before], [n_before])[1][0]) if n_before >= FEWEST_BEFORE else None
        ratio = low / high if low is not None and high else None
        since = last["ts"][0] if last.height else None
        made.append(
            {"labels": labels, "low": low, "high": high, "excess": ratio, "since": since, "stalled": hits, "n": n}
        )
    return made
