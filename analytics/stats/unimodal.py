"""Unimodal regression: least squares among all functions that fall and then rise, without a form to choose."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def fit(y: Array, weight: Array) -> Array:
    """Fitted values that do not rise up to some point and do not fall after it, the point with the least squares.

    Isotonic on both sides of the turn (Frisén 1986, turned upside down); the squares of every turn come from one pass
    from each end (Stout 2008).
    """
    from scipy.optimize import isotonic_regression

    turn = int(np.argmin(_squares(y, weight) + _squares(y[::-1], weight[::-1])[::-1]))
    left = isotonic_regression(y[:turn], weights=weight[:turn], increasing=False).x if turn else y[:0]
    right = isotonic_regression(y[turn:], weights=weight[turn:]).x if turn < y.size else y[:0]
    return np.concatenate([left, right])


def _squares(y: Array, weight: Array) -> Array:
    """Squares of the best fit that does not rise, of the first 0, 1, … all points: pooled adjacent violators."""
    made = [0.0]
    blocks: list[tuple[float, float, float]] = []  # mean, weight, squares within
    total = 0.0
    for value, w in zip(y.tolist(), weight.tolist(), strict=True):
        mean, mass, within = value, w, 0.0
        while blocks and blocks[-1][0] < mean:
            before, m, inner = blocks.pop()
            total -= inner
            within += inner + m * mass / (m + mass) * (before - mean) ** 2
            mean = (before * m + mean * mass) / (m + mass)
            mass += m
        blocks.append((mean, mass, within))
        total += within
        made.append(total)
    return np.array(made)
