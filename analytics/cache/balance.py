"""How evenly the engines of a cache (shards) are used."""

from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from analytics.cache.ring import cv
from analytics.cache.versions import conflicts

HOT, HOT_P = 1.2, 0.01


def shards(
    requests: pl.DataFrame, events: pl.DataFrame, bytes_per_token: float = 0, versions: str = ""
) -> list[dict[str, Any]]:
    """One row per engine: requests by the address that served them, blocks by the address that stored them."""
    served = (
        requests.drop_nulls("server_address")
        .group_by(pl.col("server_address").alias("shard"))
        .agg(pl.len().alias("requests"), pl.col("input_tokens").sum().alias("tokens"))
    )
    stored = (
        events.filter(pl.col("kind") == "stored")
        .with_columns(pl.coalesce(pl.col("instance").replace("", None), "stream").alias("shard"))
        .drop_nulls("shard")
    )
    number = pl.col("block_hashes").list.len()
    kept = stored.group_by("shard").agg(
        number.sum().cast(pl.Int64).alias("blocks"),
        # null as soon as one event does not say how large its blocks are
        pl.when(pl.col("block_size").null_count() == 0).then((number * pl.col("block_size")).sum()).alias("held"),
    )
    rows = served.join(kept, on="shard", how="full", coalesce=True).sort("shard").to_dicts()
    disputed = conflicts(stored, versions) if versions else None
    for row in rows:
        held = row.pop("held")
        row["bytes"] = held * bytes_per_token if held is not None and bytes_per_token > 0 else None
        row["conflicts"] = None if disputed is None else disputed.get(row["shard"], 0)
    return _judged(rows)


def _judged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    counts = [row["requests"] for row in rows]
    measure = "requests" if all(count is not None for count in counts) else "blocks"
    load = np.array([row[measure] or 0 for row in rows], float)
    judged = judge(load) if measure == "requests" else [(None, None)] * len(rows)
    several = len(load) > 1  # one shard has nothing to be held against
    total, spread = load.sum() if several else 0.0, cv(load) if several else None
    return [
        row | {"share": load[i] / total if total else None, "load_cv": spread, "p_hot": p, "hot": hot}
        for i, (row, (p, hot)) in enumerate(zip(rows, judged, strict=True))
    ]


def judge(load: np.ndarray[Any, Any]) -> list[tuple[float | None, bool | None]]:
    """Chance of each count or more if every shard were equally likely (binomial), adjusted for their number (BH)."""
    total, count = int(load.sum()), len(load)
    if count < 2 or total == 0:
        return [(None, None)] * count
    p = stats.false_discovery_control(stats.binom.sf(load - 1, total, 1 / count))
    return [(float(p[i]), bool(p[i] < HOT_P and load[i] >= HOT * total / count)) for i in range(count)]


def keyed(requests: pl.DataFrame, blocks: pl.DataFrame, key: str) -> pl.DataFrame:
    """Shard, key and requests: the key is the first block of the prompt (`prefix`), else an attribute or column."""
    served = requests.drop_nulls("server_address").with_columns(pl.col("server_address").alias("shard"))
    if key == "prefix":
        first = pl.col("block_hashes").list.first().cast(pl.String).alias("key")
        prompts = blocks.select("trace_id", "span_id", first).unique(["trace_id", "span_id"])
        served = served.drop("key", strict=False).join(prompts, on=["trace_id", "span_id"], how="left")
    else:
        served = served.with_columns(pl.col(key).cast(pl.String).alias("key"))
    return served.group_by("shard", "key").agg(pl.len().alias("requests"))
