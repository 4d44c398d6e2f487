"""Convex regression of one variable: least squares among all convex functions, without a form to choose.

The fit is a constant, a slope and hinges with weights that are not negative (Hildreth 1954), so it is a non-negative
least-squares problem (Lawson & Hanson 1974).
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_KNOTS = 40


def binned(x: Array, y: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Join neighbours in x so that at most MOST_KNOTS points of about equal size remain: means, and sums of weights."""
    order = np.argsort(x, kind="stable")
    part = (np.arange(x.size) * min(MOST_KNOTS, x.size)) // x.size
    total = np.bincount(part, weights=weight[order])
    mean_x, mean_y = (np.bincount(part, weights=(v * weight)[order]) / total for v in (x, y))
    keep = np.concatenate([[True], np.diff(mean_x) > 0])
    return mean_x[keep], mean_y[keep], total[keep]


def fit(x: Array, y: Array, weight: Array) -> Array:
    """Fitted values at x (ascending, distinct) of the convex function with the least weighted squares."""
    from scipy.optimize import nnls

    if x.size < 3:
        return y
    span = x[-1] - x[0]
    z = (x - x[0]) / span
    hinges = np.maximum(z[:, None] - z[None, 1:-1], 0.0)
    design = np.column_stack([np.ones(z.size), -np.ones(z.size), z, -z, hinges])
    root = np.sqrt(weight / weight.max())
    found, _ = nnls(design * root[:, None], y * root, maxiter=50 * design.shape[1])
    return np.asarray(design @ found)
