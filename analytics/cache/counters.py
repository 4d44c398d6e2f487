"""Prefix-cache counters per window: tokens looked up and found."""

from typing import Any

import polars as pl

from analytics.cache import COUNTED, HITS, QUERIES, CacheParams
from analytics.metrics.counters import steps


def read(samples: pl.DataFrame, params: CacheParams) -> tuple[pl.DataFrame, bool]:
    """Return bucket, queries, hits (tokens) per window that looked anything up, and whether they are since the start.

    Where every series has one sample only, what it counted since its engine started is all there is.
    """
    known = _best(samples.drop_nulls(["ts", "value", "series_id"]))
    since_start = known.height > 0 and known["series_id"].n_unique() == known.height
    parts = [
        steps(known.filter(pl.col("name") == name), from_zero=since_start)
        .group_by(pl.col("ts").dt.truncate(f"{params.bucket}s").alias("bucket"))
        .agg(pl.col("step").sum().alias(column))
        for name, column in ((QUERIES, "queries"), (HITS, "hits"))
    ]
    made = parts[0].join(parts[1], on="bucket", how="inner").filter(pl.col("queries") > 0).sort("bucket")
    return made, since_start


def _best(samples: pl.DataFrame) -> pl.DataFrame:
    """Keep the better pair of counters of each engine, under the names of the first; gateways count engines again."""
    engine = ["service", "instance"]
    first = samples.filter(pl.col("name").is_in(COUNTED[0]))
    names = dict(zip(COUNTED[1], COUNTED[0], strict=True))
    second = samples.filter(pl.col("name").is_in(COUNTED[1])).join(first, on=engine, how="anti", nulls_equal=True)
    found = second.filter(pl.col("name") == COUNTED[1][1])
    second = second.join(found, on=engine, how="semi", nulls_equal=True)  # prompts alone say nothing of a cache
    whole = pl.concat([first, second.with_columns(pl.col("name").replace(names))])
    gateway = pl.col("labels").str.contains('"tier":"gateway"', literal=True).fill_null(value=False)
    return whole.filter(~gateway) if whole.filter(~gateway).height else whole


def two_points(series: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """Rows of a RollupQuery as samples: nothing at the first, the increase at the last; and whether since the start.

    A series of one sample has no increase; where all are such, their value is what they counted since the start.
    """
    known = series.drop_nulls(["series_id", "first_ts"])
    grown = known.filter(pl.col("first_ts") < pl.col("last_ts"))
    rest = ["name", "series_id", "service", "instance", "job", "labels", "kind"]
    if grown.is_empty():
        return known.select(pl.col("last_ts").alias("ts"), pl.col("last").alias("value"), *rest), True
    first = grown.select(pl.col("first_ts").alias("ts"), pl.lit(0.0).alias("value"), *rest)
    last = grown.select(pl.col("last_ts").alias("ts"), pl.col("increase").alias("value"), *rest)
    return pl.concat([first, last]), False


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
