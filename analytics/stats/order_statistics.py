"""Limits of a quantile from the ordered sample, without a model of its distribution."""

import numpy as np
from numpy.typing import NDArray

from analytics.stats.smoothed import Array


def limit_ranks(
    n: NDArray[np.int64], q: float, confidence: float = 0.95
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ranks (1 … n) whose order statistics enclose the q-quantile with at least the confidence, split on both sides.

    A lower rank of 0 or an upper rank of n + 1 means that the sample gives no such limit: for P99 the upper one needs
    367 values at 95 %. Exact binomial (David & Nagaraja, Order Statistics, 7.1).
    """
    from scipy.special import bdtrik

    tail = (1.0 - confidence) / 2.0
    size = np.asarray(n, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        low = np.nan_to_num(np.ceil(bdtrik(tail, size, q) - 1e-9))
        high = np.nan_to_num(np.ceil(bdtrik(1.0 - tail, size, q) - 1e-9), nan=0.0) + 1.0
    return low.astype(np.int64), np.minimum(high, size + 1.0).astype(np.int64)


def quantile_limits(
    values: Array, q: float, confidence: float = 0.95, effect: float = 1.0
) -> tuple[float | None, float | None]:
    """Lower and upper confidence limit of the q-quantile of unordered values; None where the sample gives none.

    Values that cluster are worth n / `effect`: the ranks are those of so many, stretched to n (Woodruff 1952, with the
    design effect of the share below the quantile).
    """
    ordered = np.sort(values)
    size = max(int(ordered.size / effect), min(ordered.size, 1))
    low, high = (int(rank[0]) for rank in limit_ranks(np.array([size]), q, confidence))
    stretch = ordered.size / size if size else 1.0
    first, last = int(np.floor(low * stretch)), int(np.ceil(high * stretch))
    lower = float(ordered[first - 1]) if low >= 1 else None
    return lower, float(ordered[min(last, ordered.size) - 1]) if 1 <= high <= size else None
