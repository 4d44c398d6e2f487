"""Latencies of engines: means and quantiles that state their bucket bounds, per histogram."""

from collections.abc import Sequence
from datetime import timedelta

import polars as pl

from analytics.metrics.histograms import buckets, means
from analytics.metrics.quantiles import quantiles, text
from store.window import Window

LATENCIES = ("ttft", "itl", "tpot", "e2e", "queue")
"""Histograms `<name>_seconds`; itl is per step, tpot the mean of a request."""
QUANTILES = {"p50": 0.5, "p99": 0.99}
PARTS = tuple(f"{name}_seconds{part}" for name in LATENCIES for part in ("_bucket", "_sum", "_count"))
COLUMNS = tuple(
    column
    for name in LATENCIES
    for column in (
        f"{name}_mean_s",
        *(f"{name}_{q}{part}" for q in QUANTILES for part in ("", "_s", "_low_s", "_high_s")),
    )
)
"""Per latency: mean, and per quantile its text ('> 60 s'), estimate (null where refused) and bucket bounds."""
FLAGS = ("merged", "no_inf", "repaired")


def latencies(rows: pl.DataFrame, window: Window, by: Sequence[str], *, from_zero: bool) -> pl.DataFrame:
    """Return COLUMNS per entity, and what notes and rates are made of.

    That is `<name>_flags` and `<name>_count` per latency, e2e_per_second, latency_span_s and latency_since_start.
    """
    key = list(by)
    who = rows.filter(pl.col("name").is_in(PARTS)).select(key).unique()
    spans = []
    for name in LATENCIES:
        mean = means(rows, f"{name}_seconds", key, window, from_zero=from_zero)
        spans.append(mean.select(*key, "first_ts", "last_ts"))
        named = mean.select(*key, pl.col("mean").alias(f"{name}_mean_s"), pl.col("count").alias(f"{name}_count"))
        who = who.join(named, on=key, how="left", nulls_equal=True)
        who = who.join(_quantiles(rows, name, window, key, from_zero), on=key, how="left", nulls_equal=True)
    covered = (
        pl.concat(spans)
        .group_by(key)
        .agg(((pl.col("last_ts").max() - pl.col("first_ts").min()) / timedelta(seconds=1)).alias("latency_span_s"))
    )
    per_second = pl.when(pl.col("latency_span_s") > 0).then(pl.col("e2e_count") / pl.col("latency_span_s"))
    return who.join(covered, on=key, how="left", nulls_equal=True).with_columns(
        per_second.alias("e2e_per_second"), pl.lit(from_zero).alias("latency_since_start")
    )


def _quantiles(rows: pl.DataFrame, name: str, window: Window, key: list[str], from_zero: bool) -> pl.DataFrame:
    found = buckets(rows, f"{name}_seconds", key, window, from_zero=from_zero)
    flags = [pl.when(pl.col(flag)).then(pl.lit(flag)) for flag in FLAGS]
    flagged = found.unique(key, keep="first").select(
        *key, pl.concat_str(flags, separator=" ", ignore_nulls=True).alias(f"{name}_flags")
    )
    table = quantiles(found, key, list(QUANTILES.values())).with_columns(text("s").alias("text"))
    for label, q in QUANTILES.items():
        one = table.filter(pl.col("q") == q)
        stem = f"{name}_{label}"
        parts = {"text": stem, "value": f"{stem}_s", "low": f"{stem}_low_s", "high": f"{stem}_high_s"}
        named = one.select(*key, *(pl.col(old).alias(new) for old, new in parts.items()))
        flagged = flagged.join(named, on=key, how="left", nulls_equal=True)
    return flagged
