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
