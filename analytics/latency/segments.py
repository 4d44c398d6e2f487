"""Statistics of the segments of a group of requests, and how its slowest ones spend their time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.latency.names import SEGMENTS
from analytics.stats.autocorrelation import effective_size, lag1
from analytics.stats.order_statistics import quantile_limits

Array = NDArray[np.float64]
LEAST_FOR_P99 = 100
"""Requests for a P99; below, it would be the maximum by another name."""
LEAST_TAIL = 5
"""Slowest requests that shares are made of, also where 1 % of the requests are fewer."""
LEAST_FOR_SHARES = 20


@dataclass(frozen=True, slots=True)
class Tail:
    """The slowest requests of a group, in order of time: from which quantile on, and their seconds by segment."""

    q: float
    rows: pl.DataFrame

    @property
    def n(self) -> int:
        """How many."""
        return self.rows.height


def tail_of(rows: pl.DataFrame, tau: float) -> Tail | None:
    """Return the requests at or beyond quantile `tau` of e2e_s, at least LEAST_TAIL; None for too few requests."""
    if rows.height < LEAST_FOR_SHARES:
        return None
    wanted = max(LEAST_TAIL, int(np.ceil(rows.height * (1.0 - tau) - 1e-9)))
    least = rows["e2e_s"].top_k(wanted).min()
    found = rows.filter(pl.col("e2e_s") >= least).sort("ts")
    return Tail(1.0 - wanted / rows.height, found)


def describe(rows: pl.DataFrame, tail: Tail | None) -> list[dict[str, Any]]:
    """Rows of the frame `segments` for one group, and one for the whole (e2e)."""
    made = []
    for segment in (*SEGMENTS, "e2e"):
        column = "e2e_s" if segment == "e2e" else segment
        values = rows[column].drop_nulls().to_numpy()
        if values.size and (segment != "other" or values.max() > 0):
            made.append({"segment": segment} | _statistics(values) | _share_of_all(rows, column) | _share(tail, column))
    return made


def _statistics(values: Array) -> dict[str, Any]:
    mean = float(values.mean())
    enough = values.size >= LEAST_FOR_P99
    low, high = quantile_limits(values, 0.99) if enough else (None, None)
    return {
        "n": values.size,
        "p50_s": float(np.quantile(values, 0.5)),
        "p99_s": float(np.quantile(values, 0.99)) if enough else None,
        "p99_low_s": low,
        "p99_high_s": high,
        "mean_s": mean,
        "cv": float(values.std(ddof=1)) / mean if values.size > 1 and mean > 0 else None,
    }


def fitted(rows: pl.DataFrame, column: str) -> Array:
    """Seconds of a segment per request, 0 where not stated; shrunk where segments add up to more than the whole."""
    values = rows[column].fill_null(0.0).to_numpy().astype(np.float64)
    if column == "e2e_s":
        return values
    total = rows.select(pl.sum_horizontal(pl.col(s).fill_null(0.0) for s in SEGMENTS)).to_series().to_numpy()
    whole = rows["e2e_s"].to_numpy()
    return np.asarray(values * np.divide(whole, total, out=np.ones_like(total), where=total > whole))


def _share_of_all(rows: pl.DataFrame, column: str) -> dict[str, Any]:
    whole = float(rows["e2e_s"].sum())
    return {"share": float(fitted(rows, column).sum()) / whole if whole > 0 else None}


def _share(tail: Tail | None, column: str) -> dict[str, Any]:
    if tail is None:
        return {}
    part, whole = fitted(tail.rows, column), tail.rows["e2e_s"].to_numpy()
    share, low, high = ratio_limits(part, whole)
    return {
        "share_of_p99": share,
        "share_low": None if low is None else max(low, 0.0),
        "share_high": None if high is None else min(high, 1.0),
        "tail_s": float(part.mean()),
        "n_tail": tail.n,
        "tail_q": tail.q,
    }


def ratio_limits(part: Array, whole: Array) -> tuple[float | None, float | None, float | None]:
    """Ratio of two sums with 95 % limits: linearised, Student's t, values in order of time.

    Requests that were slow together are not as many observations: their number is reduced by the lag-1
    autocorrelation (Bartlett 1935).
    """
    from scipy.stats import t

    total = float(whole.sum())
    if not total > 0:
        return None, None, None
    ratio = float(part.sum()) / total
    rest = part - ratio * whole
    n = effective_size(rest.size, lag1(rest), 1.0)
    if rest.size < LEAST_TAIL or n <= 2:
        return ratio, None, None
    half = float(t.ppf(0.975, n - 1)) * float(rest.std(ddof=1)) / float(whole.mean()) / float(np.sqrt(n))
    return ratio, ratio - half, ratio + half
