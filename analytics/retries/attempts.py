"""Which spans are attempts: a client's view, the gateway's and the engine's of one attempt count once."""

import polars as pl

_KEY = ["trace_id", "span_id"]
ROW = "_row"
UNNAMED = "ERROR"
"""Error of an attempt that failed without saying how."""


def attempts_of(requests: pl.DataFrame, resends: pl.DataFrame) -> pl.DataFrame:
    """Return one row per attempt, in order of time: _row, start, end (us, null if unknown), failed, wrapper, and all.

    A request below another one is that one's view from further down, where it is alone. Where there are several and one
    of them failed, they are the attempts, and `wrapper` (the parent) is the logical request; where none failed, each is
    a request of its own (an agent's steps). Calls that say they were sent again, and their siblings, count too.
    """
    rows = pl.concat([requests, resends]).drop_nulls("ts").unique(_KEY, keep="first", maintain_order=True)
    failed = (pl.col("status") == "error").fill_null(value=False) | pl.col("error_code").is_not_null()
    code = pl.when(failed).then(pl.col("error_code").fill_null(UNNAMED)).alias("error_code")
    rows = rows.with_columns(failed.alias("failed"), code)
    known = rows.select("trace_id", pl.col("span_id").alias("parent_span_id"), pl.lit(1).alias("_has_parent"))
    below = rows.join(known, on=["trace_id", "parent_span_id"], how="left", maintain_order="left")
    inside = pl.col("_has_parent").is_not_null()
    siblings = (
        below.filter(inside)
        .group_by("trace_id", "parent_span_id")
        .agg(pl.len().alias("_siblings"), pl.col("failed").any().alias("_retried"))
    )
    joined = below.join(siblings, on=["trace_id", "parent_span_id"], how="left", maintain_order="left")
    parents = siblings.filter(pl.col("_siblings") > 1).select("trace_id", pl.col("parent_span_id").alias("span_id"))
    kept = joined.filter(~(inside & (pl.col("_siblings") == 1))).join(parents, on=_KEY, how="anti")
    wrapper = pl.when(inside & pl.col("_retried")).then("parent_span_id").alias("wrapper")
    lasted = pl.coalesce("duration_s", "e2e_s")
    start = pl.col("ts").dt.epoch("us")
    end = pl.when(lasted >= 0).then(start + (lasted * 1e6).round().cast(pl.Int64))
    timed = kept.with_columns(wrapper, start.alias("start"), end.alias("end")).sort("start", "span_id")
    return timed.drop("_has_parent", "_siblings", "_retried").with_row_index(ROW)
