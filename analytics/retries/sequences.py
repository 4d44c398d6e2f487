"""Logical requests: their attempts in order, the error they began with, how they ended, and the waits between."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.retries.recovery import over_at

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Group:
    """Attempts of one group and its logical requests."""

    labels: dict[str, str]
    attempts: pl.DataFrame
    sequences: pl.DataFrame


def sequences_of(attempts: pl.DataFrame) -> pl.DataFrame:
    """Return one row per logical request of a group, in order of time.

    Columns: sequence, start, attempts (the resend count of the last one may tell of more than were seen), error_code
    (of the first attempt; null where it succeeded), succeeded, ended_failed, failed_at (start of the first failure),
    over (us: when the error was over - its own success, or that of others after it gave up; null where not seen),
    last_end, told_by, sure.
    """
    over = pl.concat([over_at(attempts, code) for code in _codes(attempts)]) if attempts["failed"].any() else None
    known = attempts.join(over, on="_row", how="left", maintain_order="left") if over is not None else None
    rows = known if known is not None else attempts.with_columns(pl.lit(None, pl.Int64).alias("over"))
    code = pl.when("failed").then("error_code")
    fine = ~pl.col("failed")
    found = rows.group_by("sequence", maintain_order=True).agg(
        pl.col("start").first(),
        pl.max_horizontal(pl.len(), pl.col("resend_count").max().fill_null(0) + 1).cast(pl.Int64).alias("attempts"),
        code.first().alias("error_code"),
        fine.any().alias("succeeded"),
        pl.col("failed").last().alias("ended_failed"),
        pl.col("start").filter("failed").first().alias("failed_at"),
        pl.col("start").filter(fine).first().alias("success_at"),
        pl.col("over").filter("failed").last().alias("over"),
        pl.coalesce("end", "start").max().alias("last_end"),
        pl.col("told_by").first(),
        pl.col("sure").first(),
    )
    return found.with_columns(pl.when("succeeded").then("success_at").otherwise("over").alias("over"))


def _codes(attempts: pl.DataFrame) -> list[str]:
    return sorted(attempts.filter("failed")["error_code"].drop_nulls().unique().to_list())


def waits(attempts: pl.DataFrame, chosen: Sequence[int]) -> Array:
    """Return the waits (s) of sequences: a row each, a column per retry; from the end of a failure to the next start.

    A retry that began before the attempt before it ended did not wait: it is a hedge, and nan.
    """
    rows = attempts.filter(pl.col("sequence").is_in(list(chosen))).with_columns(
        pl.int_range(pl.len()).over("sequence").alias("_k"),
        pl.col("end").shift(1).over("sequence").alias("_since"),
        pl.col("failed").shift(1).over("sequence").alias("_failed"),
        (pl.col("sequence").rank("dense") - 1).cast(pl.Int64).alias("_place"),
    )
    gaps = rows.with_columns(((pl.col("start") - pl.col("_since")) / 1e6).alias("_wait"))
    kept = gaps.filter(pl.col("_failed"), pl.col("_wait") >= 0)
    if not kept.height:
        return np.full((0, 0), np.nan)
    shape = (rows["_place"].n_unique(), int(kept["_k"].to_numpy().max()))
    made = np.full(shape, np.nan)
    made[kept["_place"].to_numpy(), kept["_k"].to_numpy() - 1] = kept["_wait"].to_numpy()
    return made
