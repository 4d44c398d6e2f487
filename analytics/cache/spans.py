"""Cached tokens as requests state them: all there is of the caches of API providers."""

from typing import Any

import polars as pl

ROLLED = (
    "cached tokens from rollups of 5 minutes: requests that do not state any count as found nothing, so the hit ratio "
    "is a lower limit"
)
STEP_S = 300


def windows(requests: pl.DataFrame, rolled: pl.DataFrame | None, bucket_s: int) -> tuple[list[dict[str, Any]], bool]:
    """Rows per window, and whether they are from rollups: only where requests are too many to be read one by one."""
    tokens = pl.col("input_tokens", "cached_input_tokens")
    whole = requests["share_read"].drop_nulls().eq(1).all() if "share_read" in requests.columns else True
    from_rollups = rolled is not None and not whole and bucket_s % STEP_S == 0
    if from_rollups and rolled is not None:
        stated = rolled.with_columns(pl.col("bucket").alias("ts"), tokens.cast(pl.Float64))
    else:
        stated = requests.with_columns(tokens.cast(pl.Float64))
    found = (
        stated.drop_nulls(["input_tokens", "cached_input_tokens"])
        .group_by(pl.col("ts").dt.truncate(f"{bucket_s}s").alias("bucket"))
        .agg(tokens.sum())
        .filter(pl.col("input_tokens") > 0)
        .sort("bucket")
    )
    return [_window(row) for row in found.to_dicts()], from_rollups


def _window(row: dict[str, Any]) -> dict[str, Any]:
    ratio = min(row["cached_input_tokens"] / row["input_tokens"], 1.0)
    return {
        "bucket": row["bucket"],
        "accesses": round(row["input_tokens"]),
        "hits": round(row["cached_input_tokens"]),
        "hit_ratio": ratio,
        "cpi": 1 - ratio,
        "basis": "spans",
    }
