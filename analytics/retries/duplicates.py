"""Requests that succeeded more than once: work paid twice, and a side effect done twice where there is one."""

from typing import Any

import polars as pl

from analytics.retries.sequences import Group

MOST = 100
"""Rows of the frame per group, the newest; the signal counts all."""


def twice(group: Group) -> pl.DataFrame:
    """One row per logical request, told by ids or links, with more than one success.

    Successes of one id with different prompts are not the same request: such an id names a conversation.
    """
    told = pl.col("told_by").fill_null("")
    fine = group.attempts.filter(~pl.col("failed"), told != "", ~told.str.contains("content|parent span"))
    found = fine.group_by("sequence", maintain_order=True).agg(
        pl.coalesce("request_id", "trace_id").first().alias("request_id"),
        pl.len().cast(pl.Int64).alias("successes"),
        pl.col("ts").first().alias("first_ts"),
        pl.col("ts").last().alias("last_ts"),
        (pl.col("output_tokens").sum() - pl.col("output_tokens").first()).alias("extra_output_tokens"),
        pl.col("trace_id").alias("trace_ids"),
        pl.col("input_tokens").drop_nulls().n_unique().alias("_prompts"),
    )
    tries = group.attempts.group_by("sequence").agg(pl.len().cast(pl.Int64).alias("attempts"))
    kept = found.filter(pl.col("successes") > 1, pl.col("_prompts") <= 1)
    return kept.join(tries, on="sequence", how="left", maintain_order="left").sort("last_ts", descending=True)


def reused_ids(group: Group) -> int:
    """Count logical requests whose successes have different prompts."""
    fine = group.attempts.filter(~pl.col("failed"), pl.col("told_by").is_not_null())
    counted = fine.group_by("sequence").agg(pl.col("input_tokens").drop_nulls().n_unique().alias("n"))
    return counted.filter(pl.col("n") > 1).height


def rows(group: Group, found: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of the frame `duplicates`."""
    from json import dumps

    kept = found.head(MOST).drop("sequence", "_prompts")
    return [group.labels | row | {"trace_ids": dumps(row["trace_ids"][:5])} for row in kept.iter_rows(named=True)]
