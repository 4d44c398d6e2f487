"""Prefix-cache counters per window: tokens looked up and found."""

from typing import Any

import polars as pl

from analytics.cache import HITS, QUERIES, CacheParams
from analytics.metrics.counters import steps


def read(samples: pl.DataFrame, params: CacheParams) -> tuple[pl.DataFrame, bool]:
    """Return bucket, queries, hits (tokens) per window that looked anything up, and whether they are since the start.

    Where every series has one sample only, what it counted since its engine started is all there is.
    """
    known = samples.drop_nulls(["ts", "value", "series_id"])
    since_start = known.height > 0 and known["series_id"].n_unique() == known.height
    parts = [
        steps(known.filter(pl.col("name") == name), from_zero=since_start)
        .group_by(pl.col("ts").dt.truncate(f"{params.bucket}s").alias("bucket"))
        .agg(pl.col("step").sum().alias(column))
        for name, column in ((QUERIES, "queries"), (HITS, "hits"))
    ]
    made = parts[0].join(parts[1], on="bucket", how="inner").filter(pl.col("queries") > 0).sort("bucket")
    return made, since_start


def windows(counted: pl.DataFrame) -> list[dict[str, Any]]:
    """Windows by counters alone: what was not found is an upper limit of what was evicted too early."""
    return [
        {
            "bucket": row["bucket"],
            "accesses": round(row["queries"]),
            "hits": round(row["hits"]),
            "hit_ratio": min(row["hits"] / row["queries"], 1.0),
            "cpi": max(1 - row["hits"] / row["queries"], 0.0),
            "basis": "proxy",
        }
        for row in counted.to_dicts()
    ]


def with_events(stored: pl.DataFrame, counted: pl.DataFrame, params: CacheParams, block_size: int | None) -> list[Any]:
    """Windows by events, with the hits of the counters where their blocks are of one known size.

    An access is a block found or a block stored: engines store blocks of answers too, which nobody looked up.
    """
    grouped = stored.group_by(pl.col("ts").dt.truncate(f"{params.bucket}s").alias("bucket")).agg(
        pl.len().alias("stored"),
        pl.col("expired").sum(),
        pl.col("redundant").sum(),
        pl.col("pending").sum(),
        (pl.col("expired") | pl.col("redundant")).sum().alias("either"),
    )
    joined = grouped.join(counted if block_size else counted.clear(), on="bucket", how="full", coalesce=True)
    return [_window(row, block_size or 1) for row in joined.sort("bucket").to_dicts()]


def _window(row: dict[str, Any], block_size: int) -> dict[str, Any]:
    known = row["queries"] is not None
    parts = {name: row[name] or 0 for name in ("expired", "redundant", "pending", "stored", "either")}
    hits = round(row["hits"] / block_size) if known else None
    accesses = parts["stored"] + (hits or 0)
    ratio = min(row["hits"] / row["queries"], 1.0) if known else None
    share = parts["expired"] / max(accesses, 1)
    return {
        "bucket": row["bucket"],
        "accesses": accesses,
        "hits": hits,
        "expired": parts["expired"],
        "redundant": parts["redundant"],
        "pending": parts["pending"],
        "cpi": parts["either"] / max(accesses, 1),
        "cpi_sum": (parts["expired"] + parts["redundant"]) / max(accesses, 1),
        "hit_ratio": ratio,
        "ceiling": None if ratio is None else min(ratio + share, 1.0),
        "basis": "exact",
    }
