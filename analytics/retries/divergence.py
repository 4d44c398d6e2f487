"""Calls that succeeded above and failed, or are missing, below: what the caller believes did not happen."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from json import dumps
from typing import Any

import polars as pl

from analytics import frames
from analytics.stats.proportion import wilson
from store.window import Window

LEAST_SHARE = 0.9
"""Share of a call's spans that have a span below in another service, for one without it to be missing."""
LEAST_CALLS = 10
LATE = timedelta(minutes=1)
"""Calls of the last minute are left out: spans of the service below may still be on their way."""
EXAMPLES = 5


def rows(calls: pl.DataFrame, by: Sequence[str], window: Window) -> list[dict[str, Any]]:
    """Rows of the frame `divergent`, by the labels of the call above. Only calls that ended in the window count."""
    end: datetime = window.end.replace(tzinfo=None) - LATE
    above = frames.label_columns(calls, [n for n in by if n != "service"]).filter(
        pl.col("kind").is_in(["client", "producer"]),
        (pl.col("status") != "error").fill_null(value=True) & pl.col("error_code").is_null(),
        pl.col("ts") < end,
    )
    failed = ((pl.col("status") == "error").fill_null(value=False) | pl.col("error_code").is_not_null()).alias("bad")
    below = calls.drop_nulls("parent_span_id").select(
        "trace_id", pl.col("parent_span_id").alias("span_id"), pl.col("service").alias("downstream"), failed
    )
    joined = above.join(below, on=["trace_id", "span_id"], how="left").filter(
        pl.col("downstream").is_null() | (pl.col("downstream") != pl.col("service"))
    )
    key = [*by, "_service", "span"]
    named = joined.with_columns(pl.col("service").fill_null("").alias("_service"), pl.col("name").alias("span"))
    named = named.with_columns(pl.col("service").fill_null("")) if "service" in by else named
    one = named.group_by([*key, "trace_id", "span_id"]).agg(
        pl.col("bad").any(), pl.col("bad").all().alias("all_bad"), pl.col("downstream").drop_nulls().first()
    )
    counted = one.group_by(key).agg(
        pl.len().alias("of"),
        pl.col("downstream").is_not_null().sum().alias("answered"),
        pl.col("downstream").drop_nulls().mode().sort().first(),
        (pl.col("downstream").is_not_null() & pl.col("all_bad")).sum().alias("failed"),
        pl.col("trace_id").filter(pl.col("downstream").is_not_null() & pl.col("all_bad")).head(EXAMPLES).alias("_f"),
        pl.col("trace_id").filter(pl.col("downstream").is_null()).head(EXAMPLES).alias("_m"),
    )
    usual = counted.filter(pl.col("of") >= LEAST_CALLS, pl.col("answered") >= LEAST_SHARE * pl.col("of")).sort(key)
    return [made for row in usual.iter_rows(named=True) for made in _both(row, by)]


def _both(row: dict[str, Any], by: Sequence[str]) -> list[dict[str, Any]]:
    shared = {name: row[name] for name in by} | {n: row[n] for n in ("downstream", "span", "of")}
    made = []
    for kind, calls, traces in (
        ("failed", row["failed"], row["_f"]),
        ("missing", row["of"] - row["answered"], row["_m"]),
    ):
        if calls:
            low = float(wilson(calls, row["of"])[0])
            more = {"kind": kind, "calls": calls, "share": calls / row["of"], "share_low": low}
            made.append(shared | more | {"trace_ids": dumps(traces)})
    return made
