"""Block accesses of traced requests, replayed on an LRU cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analytics.cache import CacheParams
from analytics.stats.stack_distance import Stack, pollution, stack


@dataclass(frozen=True, slots=True)
class Trace:
    """Accesses in order of time (one row per block), and their stack distances."""

    accesses: pl.DataFrame
    stack: Stack
    requests: int
    block_size: int | None
    unit: str | None

    @property
    def unique(self) -> int:
        """How many different blocks there are."""
        return int((self.stack.previous < 0).sum())


def read(rows: pl.DataFrame) -> Trace | None:
    """Make accesses of traced requests; None where none has blocks."""
    whole = rows.drop_nulls(["ts", "block_hashes"]).filter(pl.col("block_hashes").list.len() > 0)
    if whole.is_empty():
        return None
    ordered = whole.sort("ts", maintain_order=True).with_row_index("request")
    number = pl.when(pl.col("conversation").is_not_null()).then(pl.col("request").cum_count().over("conversation"))
    accesses = (
        ordered.with_columns(number.cast(pl.Int64).alias("round"))
        .explode("block_hashes")
        .drop_nulls("block_hashes")
        .rename({"block_hashes": "block"})
    )
    sizes, units = whole["block_size"].drop_nulls().unique(), whole["unit"].drop_nulls().unique()
    return Trace(
        accesses,
        stack(accesses["block"].to_numpy()),
        whole.height,
        int(sizes[0]) if len(sizes) == 1 else None,
        str(units[0]) if len(units) == 1 else None,
    )


def judged(trace: Trace, params: CacheParams) -> pl.DataFrame:
    """Say of every access what a cache of `params.blocks` made of it."""
    made = pollution(trace.stack, params.blocks)
    conversation = trace.accesses["conversation"].rank("dense").fill_null(0).to_numpy()
    other = conversation != conversation[np.maximum(trace.stack.previous, 0)]
    return trace.accesses.select("ts", "request", "round").with_columns(
        pl.Series("hit", made.hit),
        pl.Series("expired", made.expired),
        pl.Series("redundant", made.redundant),
        pl.Series("pending", made.pending),
        pl.Series("conflict", made.expired & other & (conversation > 0)),
        pl.Series("warm", trace.stack.distance > 0),
    )


COUNTS = (
    pl.len().alias("accesses"),
    pl.col("hit").sum().alias("hits"),
    pl.col("expired").sum(),
    pl.col("redundant").sum(),
    (pl.col("expired") | pl.col("redundant")).mean().alias("cpi"),
    ((pl.col("expired").sum() + pl.col("redundant").sum()) / pl.len()).alias("cpi_sum"),
)


def windows(rows: pl.DataFrame, params: CacheParams) -> list[dict[str, Any]]:
    """Pollution per window."""
    return (
        rows.group_by(pl.col("ts").dt.truncate(f"{params.bucket}s").alias("bucket"))
        .agg(
            *COUNTS,
            pl.col("pending").sum(),
            pl.col("conflict").sum().alias("conflicts"),
            pl.col("hit").mean().alias("hit_ratio"),
            pl.col("warm").mean().alias("ceiling"),
        )
        .sort("bucket")
        .with_columns(pl.lit("exact").alias("basis"))
        .to_dicts()
    )


def rounds(rows: pl.DataFrame) -> Sequence[Mapping[str, Any]]:
    """Pollution per round of a conversation; none where requests name no conversation."""
    known = rows.drop_nulls("round")
    return known.group_by("round").agg(pl.col("request").n_unique().alias("requests"), *COUNTS).sort("round").to_dicts()
