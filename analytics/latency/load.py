"""How time in the queue goes with the load: bins of arrival rate, and whether it grows faster than the load."""

from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from analytics.buckets import bucket_index
from analytics.latency.segments import LEAST_FOR_P99
from analytics.stats.least_squares import fit_hac
from store.window import Window

MOST_BINS = 10
BUCKETS_PER_BIN = 5
LEAST_BUCKETS = 20
"""Buckets for two slopes: ten on either side of the knee."""


def bins(
    rows: pl.DataFrame, window: Window, size: timedelta, share: float = 1.0
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the rows of `queue_load` and the one of `queue_growth` for one group; nothing without queue times.

    Buckets between the first and the last arrival count, also those without any: they have no mean wait, and are left
    out of the fit. Where only a share of the traces was read, rates are scaled up by it.
    """
    known = rows.drop_nulls("queue")
    if not known.height:
        return [], None
    seconds = size.total_seconds() * share
    counted = rows.with_columns(bucket_index(window, size))
    buckets = (
        counted.group_by("bucket")
        .agg((pl.len() / seconds).alias("rate"), pl.col("queue").mean().alias("mean"), pl.col("queue").alias("waits"))
        .filter(pl.col("mean").is_not_null())
        .sort("bucket", descending=True)
    )
    whole = buckets[1:-1] if buckets.height > 2 else buckets  # the first and last are cut by the data's ends
    return _bins(whole), _growth(whole)


def _bins(buckets: pl.DataFrame) -> list[dict[str, Any]]:
    rates = buckets["rate"].to_numpy()
    many = max(1, min(MOST_BINS, rates.size // BUCKETS_PER_BIN))
    edges = np.unique(np.quantile(rates, np.linspace(0, 1, many + 1)))
    place = np.clip(np.searchsorted(edges, rates, side="right") - 1, 0, max(edges.size - 2, 0))
    made = []
    for _, part in sorted(buckets.with_columns(pl.Series("_bin", place)).partition_by("_bin", as_dict=True).items()):
        waits = part["waits"].explode().drop_nulls().to_numpy()
        mean = float(waits.mean())
        made.append(
            {
                "rate_low": part["rate"].min(),
                "rate_high": part["rate"].max(),
                "buckets": part.height,
                "requests": waits.size,
                "queue_mean_s": mean,
                "queue_p50_s": float(np.median(waits)),
                "queue_p99_s": float(np.quantile(waits, 0.99)) if waits.size >= LEAST_FOR_P99 else None,
                "depth": mean * float(part["rate"].mean()),  # type: ignore[arg-type]
            }
        )
    return made


def _growth(buckets: pl.DataFrame) -> dict[str, Any]:
    """Fit two slopes that meet at the median rate (least squares, Newey-West errors) and judge their difference."""
    rate, wait = buckets["rate"].to_numpy(), buckets["mean"].to_numpy()
    knee = float(np.median(rate))
    above = np.maximum(rate - knee, 0.0)
    if rate.size < LEAST_BUCKETS:
        return {"n": rate.size, "verdict": f"{rate.size} buckets with a queue time; two slopes need {LEAST_BUCKETS}"}
    design = np.column_stack([np.ones(rate.size), rate, above])
    if np.linalg.matrix_rank(design) < 3:
        return {"n": rate.size, "verdict": "the load hardly changed: no slope can be told"}
    fit = fit_hac(design, wait, max(1, round(rate.size ** (1 / 3))))
    slope, bend = float(fit.coefficients[1]), float(fit.coefficients[2])
    faster = float(fit.low[2]) > 0
    return {
        "knee_rate": knee,
        "slope_below": slope,
        "slope_above": slope + bend,
        "bend": bend,
        "bend_low": float(fit.low[2]),
        "bend_high": float(fit.high[2]),
        "n": rate.size,
        "verdict": "grows faster than the load" if faster else "no bend found",
    }
