"""How much less requests that cluster in time say than as many independent ones."""

import numpy as np
from numpy.typing import NDArray

from analytics.stats.smoothed import Array


def design_effect(hit: NDArray[np.bool_], cell: NDArray[np.intp]) -> float:
    """Variance of a share when blocks are drawn, over that when requests are: at least 1.

    Linearised variance of a ratio (Cochran 1977, 6.3 and 9A): squares of hits less those expected, per block; `cell` is
    the block of each request.
    """
    if hit.size < 2:
        return 1.0
    used = np.unique(cell, return_inverse=True)[1]
    return effect_of_counts(np.bincount(used, hit).astype(np.float64), np.bincount(used).astype(np.float64))


def effect_of_counts(hits: Array, sizes: Array) -> float:
    """Return the same from how many of each block are hits, and how many it holds."""
    n, blocks = float(sizes.sum()), hits.size
    share = float(hits.sum()) / n if n else 0.0
    if blocks < 2 or not 0 < share < 1:
        return 1.0
    over = hits - share * sizes
    clustered = float(over @ over) * blocks / (blocks - 1)
    return max(1.0, clustered / (n * share * (1 - share)))
