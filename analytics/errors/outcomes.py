"""Each request's outcome as one code, and the counts per bucket that everything else is made of."""

from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from analytics import buckets, frames
from analytics.analysis import Inputs
from analytics.errors import PLACE, ErrorsParams, _step
from analytics.errors.meanings import ABORT, CUT, NOT_FAILED
from analytics.given_up import given_up
from store.window import Window

MEDIAN_REQUESTS = 60
"""Requests in the median bucket: a burst of one in ten is five of them and more."""
STATES_TOKENS = 0.9
"""Share of a service's whole answers that must state their tokens before one without counts as cut."""
UNNAMED = "UNNAMED"


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Counts of outcomes.

    `counts` has the labels of `by`, service, cloud, region, bucket (0 the latest), code (null: went well) and n;
    `requests` the raw rows with code (none from rollups); `moments` n_ok and n_failed per labels of `by` and time.
    """

    counts: pl.DataFrame
    requests: pl.DataFrame
    moments: pl.DataFrame
    size: timedelta
    rolled: bool


def outcomes(inputs: Inputs, params: ErrorsParams, window: Window) -> Outcomes:
    """Count the requests of the window by outcome, from rows or rollups."""
    labels = list(dict.fromkeys((*params.by, "service", *PLACE)))
    rolled = inputs.get("rolled")
    if rolled is not None:
        return _from_rollups(rolled, labels, params, window)
    rows = frames.label_columns(inputs["requests"].drop_nulls("ts"), labels)
    auto = params.bucket == "auto"
    size = buckets.choose(rows, window, MEDIAN_REQUESTS) if auto else buckets.named(params.bucket, window)
    rows = rows.with_columns(_code(), buckets.bucket_index(window, size))
    counts = rows.group_by([*labels, "bucket", "code"]).agg(pl.len().cast(pl.Int64).alias("n"))
    moments = rows.group_by([*params.by, pl.col("ts").dt.truncate("1s")]).agg(_ok(pl.lit(1)), _failed(pl.lit(1)))
    return Outcomes(_placed(counts), rows, moments, size, rolled=False)


def _code() -> pl.Expr:
    """Return the error's code; ABORT or CUT for a request that says none but did not end."""
    aborted = given_up()
    fine = pl.col("status").ne_missing(pl.lit("error")) & pl.col("error_code").is_null()
    whole = fine & ~aborted & pl.col("ttft_s").is_not_null()
    telling = (whole & pl.col("output_tokens").is_not_null()).sum().over("service") >= STATES_TOKENS * whole.sum().over(
        "service"
    )
    cut = whole & pl.col("output_tokens").is_null() & pl.col("finish_reason").is_null() & telling
    named = pl.col("error_code").fill_null(UNNAMED)
    return pl.when(aborted & fine).then(pl.lit(ABORT)).when(~fine).then(named).when(cut).then(pl.lit(CUT)).alias("code")


def _from_rollups(rolled: pl.DataFrame, labels: list[str], params: ErrorsParams, window: Window) -> Outcomes:
    size = timedelta(seconds=_step(params, window))
    rows = frames.label_columns(rolled, labels).with_columns(pl.col("bucket").alias("ts"))
    failed = rows.filter(pl.col("errors") > 0).with_columns(
        pl.col("error_code").fill_null(UNNAMED).alias("code"), pl.col("errors").alias("n")
    )
    fine = rows.with_columns(pl.lit(None, pl.String).alias("code"), (pl.col("requests") - pl.col("errors")).alias("n"))
    both = pl.concat([failed, fine.filter(pl.col("n") > 0)]).with_columns(buckets.bucket_index(window, size))
    counts = both.group_by([*labels, "bucket", "code"]).agg(pl.col("n").sum().cast(pl.Int64))
    moments = both.group_by([*params.by, "ts"]).agg(_ok(pl.col("n")), _failed(pl.col("n")))
    return Outcomes(_placed(counts), both.clear(), moments, size, rolled=True)


def _placed(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.with_columns(pl.col("cloud_provider").alias("cloud"), pl.col("cloud_region").alias("region"))


def _ok(n: pl.Expr) -> pl.Expr:
    return pl.when(pl.col("code").is_null()).then(n).otherwise(0).sum().cast(pl.Int64).alias("n_ok")


def _failed(n: pl.Expr) -> pl.Expr:
    bad = pl.col("code").is_not_null() & ~pl.col("code").is_in(NOT_FAILED)
    return pl.when(bad).then(n).otherwise(0).sum().cast(pl.Int64).alias("n_failed")
