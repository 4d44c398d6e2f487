"""Tiers of a cache, and how evenly its engines (shards) are used."""

from typing import Any

import numpy as np
import polars as pl
from scipy import stats

HOT, HOT_P = 1.2, 0.01


def tiers(stored: pl.DataFrame, removed: dict[str, int]) -> list[dict[str, Any]]:
    """One row per medium."""
    made = stored.group_by("medium").agg(
        (pl.len()).alias("stored"),
        pl.col("life_s").median().alias("life_p50_s"),
        pl.col("moved").sum(),
        pl.col("present").sum(),
    )
    return [row | {"removed": removed.get(row["medium"], 0)} for row in made.sort("medium").to_dicts()]


def shards(requests: pl.DataFrame, events: pl.DataFrame) -> list[dict[str, Any]]:
    """One row per engine: requests by the address that served them, blocks by the address that stored them."""
    served = (
        requests.drop_nulls("server_address")
        .group_by(pl.col("server_address").alias("shard"))
        .agg(pl.len().alias("requests"), pl.col("input_tokens").sum().alias("tokens"))
    )
    kept = (
        events.filter(pl.col("kind") == "stored")
        .with_columns(pl.coalesce(pl.col("instance").replace("", None), "stream").alias("shard"))
        .drop_nulls("shard")
        .group_by("shard")
        .agg(pl.col("block_hashes").list.len().sum().cast(pl.Int64).alias("blocks"))
    )
    rows = served.join(kept, on="shard", how="full", coalesce=True).sort("shard").to_dicts()
    counts = [row["requests"] for row in rows]
    measure = "requests" if all(count is not None for count in counts) else "blocks"
    load = np.array([row[measure] or 0 for row in rows], float)
    judged = judge(load) if measure == "requests" else [(None, None)] * len(rows)
    total, cv = load.sum(), float(load.std() / load.mean()) if load.sum() > 0 and len(load) > 1 else None
    return [
        row | {"share": load[i] / total if total else None, "load_cv": cv, "p_hot": judged[i][0], "hot": judged[i][1]}
        for i, row in enumerate(rows)
    ]


def judge(load: np.ndarray[Any, Any]) -> list[tuple[float | None, bool | None]]:
    """Chance of each count or more if every shard were equally likely (binomial), adjusted for their number (BH)."""
    total, count = int(load.sum()), len(load)
    if count < 2 or total == 0:
        return [(None, None)] * count
    p = stats.false_discovery_control(stats.binom.sf(load - 1, total, 1 / count))
    return [(float(p[i]), bool(p[i] < HOT_P and load[i] >= HOT * total / count)) for i in range(count)]
