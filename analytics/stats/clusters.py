"""How much less requests that cluster in time say than as many independent ones."""

import numpy as np
from numpy.typing import NDArray


def design_effect(hit: NDArray[np.bool_], cell: NDArray[np.intp]) -> float:
    """Variance of a share when blocks are drawn, over that when requests are: at least 1.

    Linearised variance of a ratio (Cochran 1977, 6.3 and 9A): squares of hits less those expected, per block; `cell` is
    the block of each request.
    """
    n, share = hit.size, float(hit.mean()) if hit.size else 0.0
    if n < 2 or not 0 < share < 1:
        return 1.0
    used = np.unique(cell, return_inverse=True)[1]
    blocks = int(used.max()) + 1
    if blocks < 2:
        return 1.0
    over = np.bincount(used, hit - share)
    clustered = float(over @ over) * blocks / (blocks - 1)
    return max(1.0, clustered / (n * share * (1 - share)))
