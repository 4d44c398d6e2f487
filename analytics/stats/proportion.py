"""Limits of a proportion."""

import numpy as np
from numpy.typing import ArrayLike

from analytics.stats.smoothed import Array

_Z = 1.959963984540054


def wilson(hits: ArrayLike, n: ArrayLike) -> tuple[Array, Array]:
    """95 % Wilson score limits of hits / n (Wilson 1927); nan where n is 0."""
    k, size = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = k / size
        middle = (share + _Z**2 / (2 * size)) / (1 + _Z**2 / size)
        half = _Z / (1 + _Z**2 / size) * np.sqrt(share * (1 - share) / size + _Z**2 / (4 * size**2))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def newcombe(hits_a: ArrayLike, n_a: ArrayLike, hits_b: ArrayLike, n_b: ArrayLike) -> tuple[Array, Array]:
    """95 % limits of hits_b / n_b - hits_a / n_a from the Wilson limits of both (Newcombe 1998, method 10).

    nan where an arm is empty.
    """
    low_a, high_a = wilson(hits_a, n_a)
    low_b, high_b = wilson(hits_b, n_b)
    with np.errstate(invalid="ignore", divide="ignore"):
        a = np.asarray(hits_a, dtype=np.float64) / np.asarray(n_a, dtype=np.float64)
        b = np.asarray(hits_b, dtype=np.float64) / np.asarray(n_b, dtype=np.float64)
    low = b - a - np.sqrt((b - low_b) ** 2 + (high_a - a) ** 2)
    return low, b - a + np.sqrt((high_b - b) ** 2 + (a - low_a) ** 2)
