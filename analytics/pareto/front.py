"""Points that no other point beats, and the volume they dominate, exactly. Less is better in every column."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def on_front(points: Array) -> NDArray[np.bool_]:
    """Say of each point that none is at least as good in all columns and better in one: equal points stand together."""
    no_worse = (points[:, None, :] <= points[None, :, :]).all(axis=2)
    better = (points[:, None, :] < points[None, :, :]).any(axis=2)
    return np.asarray(~(no_worse & better).any(axis=0))


def dominators(points: Array, one: int) -> list[int]:
    """Return which points dominate one."""
    no_worse = (points <= points[one]).all(axis=1)
    return np.flatnonzero(no_worse & (points < points[one]).any(axis=1)).tolist()


def hypervolume(points: Array, reference: Array) -> float:
    """Return the volume between the points and a reference that they dominate.

    Exact, by slicing along the last column (While et al. 2006). Points that are not better than the reference in every
    column add nothing.
    """
    inside = points[(points < reference).all(axis=1)]
    return _sliced(inside[on_front(inside)], reference) if inside.size else 0.0


def _sliced(points: Array, reference: Array) -> float:
    if points.shape[1] == 1:
        return float(reference[0] - points.min())
    order = points[np.argsort(points[:, -1], kind="stable")]
    edges = np.append(order[:, -1], reference[-1])
    total = 0.0
    for i in range(len(order)):
        thick = edges[i + 1] - edges[i]
        if thick > 0:
            total += thick * _sliced(order[: i + 1, :-1], reference[:-1])
    return float(total)


def contributions(points: Array, reference: Array) -> Array:
    """Return how much volume is lost without each point; of two equal ones, nothing."""
    whole = hypervolume(points, reference)
    return np.array([whole - hypervolume(np.delete(points, i, axis=0), reference) for i in range(len(points))])


def worst_by(points: Array, share: float) -> Array:
    """Return the worst value of each column moved by a share of its size.

    Of a column whose worst value is 0 it is a share of its range, or that share itself where all are 0.
    """
    worst, spread = points.max(axis=0), np.ptp(points, axis=0)
    size = np.where(worst != 0, np.abs(worst), np.where(spread > 0, spread, 1.0))
    return np.asarray(worst + share * size)
