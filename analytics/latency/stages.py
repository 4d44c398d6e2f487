"""Stages of requests as engines expose them: histograms of queue, prefill, decode, with bounds instead of guesses."""

from typing import Any

import polars as pl

from analytics.latency import HISTOGRAMS
from analytics.metrics.histograms import buckets
from analytics.metrics.quantiles import quantiles, text
from store.window import Window

_ABOUT = ("name", "series_id", "unit", "combine", "kind", "raw", "service", "instance", "job", "labels")


def stage_rows(summaries: pl.DataFrame, window: Window) -> list[dict[str, Any]]:
    """Rows of the frame `engine_stages` from what each series gained in the window."""
    if not summaries.height:
        return []
    samples = _growth(summaries)
    made = []
    for stage in HISTOGRAMS:
        found = buckets(samples, f"{stage}_seconds", ["service"], window)
        table = quantiles(found, ["service"], (0.5, 0.99)).with_columns(text("s").alias("text"))
        for service, part in sorted(table.partition_by("service", as_dict=True).items(), key=str):
            by_q = {row["q"]: row for row in part.iter_rows(named=True)}
            made.append({"service": service[0], "stage": stage} | _row(by_q[0.5], by_q[0.99]))
    return [row for row in made if row["n"]]


def _growth(summaries: pl.DataFrame) -> pl.DataFrame:
    """Two samples per series that grow as it did: resets within the window are in `increase` already."""
    known = summaries.filter(pl.col("increase").is_not_null(), pl.col("first_ts") < pl.col("last_ts"))
    about = [pl.col(n) for n in _ABOUT if n in known.columns]
    first = known.select(pl.col("first_ts").alias("ts"), pl.lit(0.0).alias("value"), *about)
    last = known.select(pl.col("last_ts").alias("ts"), pl.col("increase").alias("value"), *about)
    return pl.concat([first, last]).sort("ts")


def _row(middle: dict[str, Any], tail: dict[str, Any]) -> dict[str, Any]:
    return {
        "n": middle["total"],
        "p50": middle["text"],
        "p50_s": middle["value"],
        "p99": tail["text"],
        "p99_s": tail["value"],
        "p99_low_s": tail["low"],
        "p99_high_s": tail["high"],
    }
