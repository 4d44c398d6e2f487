"""P99 by window, its baseline from the windows before, and the episodes in which it was above."""

import bisect
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analytics.buckets import bucket_index, bucket_start
from analytics.p99 import ABOVE
from analytics.stats.order_statistics import limit_ranks
from analytics.stats.smoothed import Array
from store.window import Window

if TYPE_CHECKING:
    from analytics.result import Trigger

LEAST_REQUESTS = 30
"""Requests in a window whose P99 is compared; below, the P99 is the maximum and even its lower limit says little."""
LEAST_EARLIER = 3
"""Earlier windows for a baseline: with three, chance alone exceeds 1.5 hardly more often than with ten (simulated)."""
BAND = ABOVE.bound
"""Expected band around the baseline: the factor of the first trigger."""


@dataclass(frozen=True, slots=True)
class Episode:
    """Consecutive windows in which the ratio was above a bound."""

    since: datetime
    until: datetime
    lasting: bool
    n: int
    p99: float
    baseline: float
    ratio: float


def by_window(rows: pl.DataFrame, window: Window, size: timedelta, tau: float) -> pl.DataFrame:
    """One row per window from the first to the last with requests, and the latest: n, quantiles, baseline, ratio.

    `rows` (at least one) has ts and y, and fitted where there is a model. Windows without requests are there with n 0
    and nulls, so that a gap shows as a gap.
    """
    numbered = rows.with_columns(bucket_index(window, size)).sort("bucket", "y", descending=[True, False])
    counts = numbered.group_by("bucket", maintain_order=True).len()
    table = counts.select("bucket", pl.col("len").cast(pl.Int64).alias("n")).with_columns(
        _quantiles(numbered["y"].to_numpy().astype(np.float64), counts["len"].to_numpy().astype(np.int64), tau)
    )
    if "fitted" in rows.columns:
        fitted = numbered.group_by("bucket").agg(pl.col("fitted").quantile(tau, "linear").alias("fitted_p99"))
        table = table.join(fitted, on="bucket", how="left")
    else:
        table = table.with_columns(pl.lit(None, pl.Float64).alias("fitted_p99"))
    oldest, newest = int(table["bucket"][0]), int(table["bucket"][-1])
    spanned = [*range(oldest, newest - 1, -1), *([0] if newest else [])]
    whole = pl.DataFrame({"bucket": pl.Series(spanned, dtype=table.schema["bucket"])})
    table = whole.join(table, on="bucket", how="left", maintain_order="left").with_columns(pl.col("n").fill_null(0))
    baseline = _baseline(*(table[name].to_list() for name in ("p99", "p99_low", "n")))
    return table.with_columns(pl.Series("baseline", baseline, pl.Float64), bucket_start(window, size)).with_columns(
        (pl.col("baseline") / BAND).alias("low"),
        (pl.col("baseline") * BAND).alias("high"),
        pl.when((pl.col("n") >= LEAST_REQUESTS) & (pl.col("baseline") > 0))
        .then(pl.col("p99_low") / pl.col("baseline"))
        .alias("ratio"),
    )


def episodes(table: pl.DataFrame, trigger: "Trigger", size: timedelta) -> list[Episode]:
    """Stretches of consecutive windows in which the trigger holds, in order of time."""
    found: list[Episode] = []
    run: list[dict[str, object]] = []
    for row in table.iter_rows(named=True):
        if trigger.holds(row["ratio"]):
            run.append(row)
        elif run:
            found.append(_episode(run, size))
            run = []
    return [*found, _episode(run, size)] if run else found


def _episode(run: list[dict[str, object]], size: timedelta) -> Episode:
    part = pl.DataFrame(run)
    return Episode(
        since=part["ts"][0],
        until=part["ts"][-1] + size,
        lasting=part["bucket"][-1] == 0,
        n=int(part["n"].sum()),
        p99=float(part["p99"].to_numpy().max()),
        baseline=float(part["baseline"][0]),
        ratio=float(part["ratio"].to_numpy().max()),
    )


def _quantiles(values: Array, sizes: "np.typing.NDArray[np.int64]", tau: float) -> list[pl.Series]:
    """Median, quantile and its limits of each run of sorted values."""
    starts = np.cumsum(sizes) - sizes
    low, high = limit_ranks(sizes, tau)
    at = np.minimum(starts + np.maximum(low - 1, 0), values.size - 1)
    above = np.minimum(starts + np.minimum(high, sizes) - 1, values.size - 1)
    return [
        pl.Series("p50", _at(values, starts, sizes, 0.5)),
        pl.Series("p99", _at(values, starts, sizes, tau)),
        pl.Series("p99_low", np.where(low >= 1, values[at], np.nan)).fill_nan(None),
        pl.Series("p99_high", np.where(high <= sizes, values[above], np.nan)).fill_nan(None),
    ]


def _at(values: Array, starts: "np.typing.NDArray[np.int64]", sizes: "np.typing.NDArray[np.int64]", q: float) -> Array:
    place = (sizes - 1) * q
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, sizes - 1)
    share = place - below
    return np.asarray(values[starts + below] * (1 - share) + values[starts + above] * share)


def _baseline(p99: list[float | None], lowest: list[float | None], n: list[int]) -> list[float | None]:
    """Median of the earlier windows' P99s, null before there are LEAST_EARLIER of them.

    Windows that were above the band themselves are left out, so that an incident does not become its own baseline;
    once they are more than half of the earlier ones, they are the new normal and count.
    """
    earlier: list[float] = []
    calm: list[float] = []
    found: list[float | None] = []
    for value, low, size in zip(p99, lowest, n, strict=True):
        base = _median(calm if 2 * len(calm) >= len(earlier) and len(calm) >= LEAST_EARLIER else earlier)
        found.append(base)
        if value is not None and size >= LEAST_REQUESTS:
            bisect.insort(earlier, value)
            if base is None or low is None or low <= BAND * base:
                bisect.insort(calm, value)
    return found


def _median(ordered: list[float]) -> float | None:
    k = len(ordered)
    return (ordered[(k - 1) // 2] + ordered[k // 2]) / 2.0 if k >= LEAST_EARLIER else None
