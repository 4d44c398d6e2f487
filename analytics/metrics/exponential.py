"""Exponential histograms stored as classic buckets: their bounds come and go, so every moment gets all of them.

A bucket without observations is not sent, so a bound missing at a moment has the count of the next lower bound present.
"""

import polars as pl

KIND = "exponential"


def with_all_bounds(samples: pl.DataFrame, series: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return samples (series_id, ts, value) and series (series_id, member, le, …) with every bound at every moment.

    `series` has series_id, member, le and what else describes a member. Where the source merges buckets (a change of
    scale) a count would fall; it keeps its height, since only a fall of the +Inf bucket is a restart.
    """
    seen = (
        samples.select("series_id", "ts", "value")
        .drop_nulls("value")
        .join(series.select("series_id", "member", "le"), on="series_id")
    )
    moments = seen.select("member", "ts").unique()
    bounds = series.select("member", "le").unique()
    keys = ["member", "ts", "le"]
    counts = seen.group_by(keys).agg(pl.col("value").sum())
    filled = moments.join(bounds, on="member").join(counts, on=keys, how="left").sort(keys)
    filled = filled.with_columns(pl.col("value").forward_fill().over("member", "ts").fill_null(0.0))
    filled = _never_falling(filled.sort("member", "le", "ts"))
    ids = series.unique(["member", "le"], keep="first", maintain_order=True)
    rows = filled.join(ids.select("series_id", "member", "le"), on=["member", "le"])
    return rows.select("series_id", "ts", "value"), ids


def _never_falling(filled: pl.DataFrame) -> pl.DataFrame:
    totals = filled.filter(pl.col("le").is_infinite()).sort("member", "ts")
    fell = (pl.col("value") < pl.col("value").shift(1).over("member")).fill_null(value=False)
    lives = totals.select("member", "ts", fell.cum_sum().alias("life"))
    joined = filled.join(lives, on=["member", "ts"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("value").cum_max().over("member", "le", "life"))
