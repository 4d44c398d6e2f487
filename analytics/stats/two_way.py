"""Two factors and their interaction on a mean or a spread: linear model of cells, unbalanced ones included."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.stats.smoothed import Array

Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Term:
    """Test of one term: F with its degrees of freedom and p."""

    f: float
    df: int
    df_residual: int
    p: float


def cell_sizes(a: Codes, b: Codes) -> NDArray[np.intp]:
    """Rows per cell, (levels of a, levels of b)."""
    sizes = np.zeros((int(a.max()) + 1, int(b.max()) + 1), dtype=np.intp)
    np.add.at(sizes, (a, b), 1)
    return sizes


def about_median(y: Array, a: Codes, b: Codes) -> Array:
    """Distance of each value from the median of its cell: spread as a mean (Brown & Forsythe 1974)."""
    cell = a * (int(b.max()) + 1) + b
    away = np.empty_like(y)
    for one in np.unique(cell):
        inside = cell == one
        away[inside] = np.abs(y[inside] - np.median(y[inside]))
    return away


def analyse(y: Array, a: Codes, b: Codes, *, robust: bool = True) -> tuple[Term, Term, Term]:
    """Test factor a, factor b and their interaction with sums of type III (each given the others, cells weigh alike).

    `robust` uses the covariance HC3 (MacKinnon & White 1985), for cells that differ in spread; otherwise one variance
    is assumed, as in the textbook's table. Raises ValueError where a cell has fewer than 2 rows.
    """
    from scipy.special import fdtrc

    if int(cell_sizes(a, b).min()) < 2:
        raise ValueError("each cell needs at least 2 rows")
    parts = (_contrasts(a), _contrasts(b))
    crossed = (parts[0][:, :, None] * parts[1][:, None, :]).reshape(y.size, -1)
    design = np.column_stack([np.ones(y.size), *parts, crossed])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ (design.T @ y)
    covariance = _covariance(design, y - design @ beta, inverse, robust)
    free, start, found = y.size - design.shape[1], 1, []
    for part in (*parts, crossed):
        at = slice(start, start + part.shape[1])
        wald = float(beta[at] @ np.linalg.solve(covariance[at, at], beta[at])) / part.shape[1]
        found.append(Term(wald, part.shape[1], free, float(fdtrc(part.shape[1], free, wald))))
        start = at.stop
    return found[0], found[1], found[2]


def _contrasts(codes: Codes) -> Array:
    """Columns that say how far a level is from the mean of all levels (the last level is minus the others)."""
    levels = int(codes.max()) + 1
    return np.vstack([np.eye(levels - 1), -np.ones(levels - 1)])[codes]


def _covariance(design: Array, residuals: Array, inverse: Array, robust: bool) -> Array:
    if not robust:
        return np.asarray(inverse * (residuals @ residuals) / (design.shape[0] - design.shape[1]))
    leverage = ((design @ inverse) * design).sum(axis=1)
    scaled = design * (residuals / (1.0 - leverage))[:, None]
    return np.asarray(inverse @ (scaled.T @ scaled) @ inverse)
