"""Kernel change points: where the distribution of a series changes, for many series at once.

Penalised least squares in the feature space of a Gaussian kernel (Harchaoui & Cappé 2007; Arlot, Celisse & Harchaoui
2019), solved exactly by dynamic programming. Ours, since no library has it for every Python this project runs on; a
test holds it against one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

CELLS = 20_000_000
"""Cells of the Gram matrices held at a time."""


def kernel_change_points(series: NDArray[Any], penalty: float, min_size: int = 3) -> list[NDArray[np.int64]]:
    """First index after each change, per row of `series` (S, n; finite values).

    The kernel is exp(-gamma (x - y)²), gamma one over the median squared difference within the row, so that unit and
    scale do not matter; `penalty` is the price of a change, `min_size` the fewest points between two.
    """
    values = np.atleast_2d(np.asarray(series, dtype=np.float64))
    count, n = values.shape
    if n < 2 * min_size:
        return [np.empty(0, np.int64)] * count
    step = max(1, CELLS // (n * n))
    found: list[NDArray[np.int64]] = []
    for at in range(0, count, step):
        found += _partition(_block_sums(values[at : at + step]), penalty, min_size)
    return found


def _block_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gram matrices summed over both axes from the start, (S, n + 1, n + 1)."""
    squares = (values[:, :, None] - values[:, None, :]) ** 2
    upper = squares[:, *np.triu_indices(values.shape[1], 1)]
    middle = np.median(upper, axis=1)
    gamma = np.where(middle > 0, 1 / np.where(middle > 0, middle, 1), 1.0)
    sums = np.zeros((len(values), values.shape[1] + 1, values.shape[1] + 1))
    sums[:, 1:, 1:] = np.exp(-gamma[:, None, None] * squares).cumsum(axis=1).cumsum(axis=2)
    return sums


def _partition(sums: NDArray[np.float64], penalty: float, min_size: int) -> list[NDArray[np.int64]]:
    """Cheapest partition of every row: the cost of a segment is its length less the mean of its Gram block."""
    count, n = sums.shape[0], sums.shape[1] - 1
    diagonal = np.einsum("sii->si", sums)
    best = np.full((count, n + 1), np.inf)
    best[:, 0] = -penalty
    previous = np.zeros((count, n + 1), np.int64)
    for end in range(min_size, n + 1):
        starts = np.arange(0, end - min_size + 1)
        length = end - starts
        block = diagonal[:, [end]] - 2 * sums[:, end, : len(starts)] + diagonal[:, : len(starts)]
        total = best[:, : len(starts)] + penalty + length - block / length
        previous[:, end] = np.argmin(total, axis=1)
        best[:, end] = np.take_along_axis(total, previous[:, [end]], axis=1)[:, 0]
    return [_way_back(row) for row in previous]


def _way_back(previous: NDArray[np.int64]) -> NDArray[np.int64]:
    changes = []
    end = int(previous[-1])
    while end > 0:
        changes.append(end)
        end = int(previous[end])
    return np.array(changes[::-1], np.int64)
