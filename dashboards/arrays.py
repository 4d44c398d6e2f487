"""Arrays for figures: typed (base64) instead of lists, epoch milliseconds, few points, gaps kept.

A hundred thousand points as lists are megabytes of JSON and a frozen tab; thinned and typed they are some 40 kB.
"""

from base64 import b64encode
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dashboards.words import aware

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]

POINTS = 2000
"""Points per trace at most: more than a screen has columns, few enough to draw and send at once."""

GAP = 1.9
"""A step this many times the usual one is a gap: one missing point already doubles it."""


def typed(values: Array) -> dict[str, str]:
    """Return plotly's typed form of an array: little-endian float64 in base64."""
    return {"dtype": "f8", "bdata": b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()}


def floats(column: "pl.Series") -> Array:
    """Return a column as float64; null becomes NaN, which plotly draws as nothing."""
    import polars as pl

    return np.asarray(column.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)


def epoch_ms(column: "pl.Series") -> Array:
    """Return naive-UTC times as milliseconds since 1970, what plotly's date axis reads fastest."""
    import polars as pl

    return floats(column.cast(pl.Datetime("us")).cast(pl.Int64)) / 1000.0


def at_ms(at: datetime) -> float:
    """Return one time as milliseconds since 1970."""
    return aware(at).timestamp() * 1000.0


def usual_step(x: Array) -> float:
    """Return the median distance of sorted positions; NaN below two points."""
    return float(np.median(np.diff(x))) if x.size > 1 else float("nan")


def gaps(x: Array, start: float, end: float) -> list[tuple[float, float]]:
    """Return the stretches of [start, end) without points, longer than a usual step allows for."""
    step = usual_step(x)
    if not step > 0:
        return []
    edges = np.concatenate(([start - step], x, [end + step]))
    wide = np.flatnonzero(np.diff(edges) > (GAP + 1) * step)
    return [(max(edges[i] + step, start), min(edges[i + 1], end)) for i in wide]


def broken(x: Array, y: Array) -> tuple[Array, Array]:
    """Put a NaN into every gap of a line, so that no line crosses missing data."""
    step = usual_step(x)
    if not step > 0:
        return x, y
    wide = np.flatnonzero(np.diff(x) > GAP * step)
    return np.insert(x, wide + 1, x[wide] + step), np.insert(y, wide + 1, np.nan)


def thinned(x: Array, y: Array, limit: int = POINTS) -> tuple[Array, Array]:
    """Keep at most `limit` points: first, lowest, highest and last of equal buckets (M4, Jugel et al. 2014).

    Every spike stays visible: the overall minimum and maximum are always among the points kept. NaN are gaps and
    stay where they are first or last of a bucket.
    """
    if x.size <= limit:
        return x, y
    edges = np.linspace(0, x.size, limit // 4 + 1).astype(np.int64)
    low = np.where(np.isnan(y), np.inf, y)
    high = np.where(np.isnan(y), -np.inf, y)
    keep = [(a, a + int(low[a:b].argmin()), a + int(high[a:b].argmax()), b - 1) for a, b in pairwise(edges.tolist())]
    index = np.unique(np.array(keep, dtype=np.int64))
    return x[index], y[index]
