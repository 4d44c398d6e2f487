"""Moving-block bootstrap of a quantile fit over stretches of time, in time that hardly grows with the rows.

Requests close in time share their queue and their neighbours, so whole blocks of time are drawn (Künsch 1989;
circular, Politis & Romano 1992). A resample changes the fit by a few standard errors only: rows farther from it than
that are sums per cell of time, and all resamples take their Newton steps together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.stats.sandwich import density_matrix
from analytics.stats.smoothed import Array, check_loss

_BAND = 6.0
_WIDTHS = (0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125)
"""Bandwidth of each Newton step, in standard errors of the fit: wide steps travel, narrow ones arrive (against exact
refits: standard deviations within 3 %, check loss within 0.2 %, 400 times as fast)."""
_NEAR_ROWS = 16_000
"""Rows near the fit are thinned to this many (the rest weigh more); at tau .99 that is the tail of a million rows."""
_SIDE_BY_SIDE = 64  # resamples per matrix: 64 x 16,000 doubles stay in cache-sized pieces


@dataclass(frozen=True, slots=True)
class Resampled:
    """Coefficients (resamples, p) and check losses (resamples,), centred on those of the fit to all rows."""

    coefficients: Array
    losses: Array


def block_counts(cells: int, block: int, resamples: int, seed: int) -> Array:
    """How often each cell of time is drawn, (resamples, cells), in blocks of `block` neighbouring cells."""
    rng = np.random.default_rng(seed)
    blocks = -(-cells // block)
    starts = rng.integers(0, cells, (resamples, blocks))
    drawn = (starts[:, :, None] + np.arange(block)) % cells
    drawn = drawn.reshape(resamples, -1)[:, :cells]
    return np.stack([np.bincount(picks, minlength=cells) for picks in drawn]).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Near:
    """Rows near the fit with their cell and weight, and sums per cell for all others."""

    design: Array
    y: Array
    cell: NDArray[np.intp]
    weight: float
    linear: Array
    constant: Array
    width: float
    reach: Array


def refit(design: Array, y: Array, cell: NDArray[np.intp], tau: float, beta: Array, counts: Array) -> Resampled:
    """Refit the tau-quantile on resampled cells.

    `beta` is the fit to all rows; `cell` (n,) says which column of `counts` (resamples, cells) a row belongs to.
    The smoothed fit to all rows is refitted alongside and its distance from `beta` taken off, so the bandwidth does
    not move the centre.
    """
    scale = np.sqrt(np.square(design).mean(axis=0))
    near = _near(design / scale, y, cell, tau, beta * scale, counts.shape[1])
    all_rows = np.vstack([np.ones(counts.shape[1]), counts])
    found, losses = [], []
    for start in range(0, all_rows.shape[0], _SIDE_BY_SIDE):
        part = all_rows[start : start + _SIDE_BY_SIDE]
        moved = _newton(near, tau, beta * scale, part)
        found.append(moved / scale)
        losses.append(_losses(near, tau, moved, part))
    coefficients, loss = np.vstack(found), np.concatenate(losses)
    centre = check_loss(y - design @ beta, tau) / loss[0] if loss[0] > 0 else 1.0
    return Resampled(coefficients[1:] - coefficients[0] + beta, loss[1:] * centre)


def _near(design: Array, y: Array, cell: NDArray[np.intp], tau: float, beta: Array, cells: int) -> _Near:
    residuals = y - design @ beta
    side = tau - (residuals < 0)
    density, spread = density_matrix(design, residuals, tau)
    scores = np.stack([np.bincount(cell, side * column, cells) for column in design.T])
    error = np.sqrt(np.square(design @ np.linalg.solve(density, scores)).sum(axis=1))
    close = np.abs(residuals) <= _BAND * error
    typical = float(np.median(error[close])) if close.any() else 0.0
    width = _WIDTHS[0] * max(min(typical, spread), 1e-12 * float(np.abs(y).max()) + 1e-300)
    close |= np.abs(residuals) <= 8.0 * width
    side[close] = 0.0
    rows, weight = np.flatnonzero(close), 1.0
    if rows.size > _NEAR_ROWS:
        weight = rows.size / _NEAR_ROWS
        rows = np.sort(np.random.default_rng(0).choice(rows, _NEAR_ROWS, replace=False))
    return _Near(
        design=design[rows],
        y=y[rows],
        cell=cell[rows],
        weight=weight,
        linear=np.column_stack([np.bincount(cell, -side * column, cells) for column in design.T]),
        constant=np.asarray(np.bincount(cell, side * y, cells), dtype=np.float64),
        width=width,
        reach=error[rows],
    )


def _newton(near: _Near, tau: float, beta: Array, counts: Array) -> Array:
    """Coefficients (resamples, p) of the smoothed fit to each row of counts, all stepping together."""
    p = beta.size
    upper = np.triu_indices(p)
    products = near.design[:, upper[0]] * near.design[:, upper[1]]
    weights = counts.T[near.cell] * near.weight
    linear = counts @ near.linear
    betas = np.tile(beta, (counts.shape[0], 1))
    for width in (near.width * ratio / _WIDTHS[0] for ratio in _WIDTHS):
        residuals = near.y[:, None] - near.design @ betas.T
        above = 0.5 + 0.5 * np.tanh(residuals / (2.0 * width))
        gradient = linear - (weights * (above - (1.0 - tau))).T @ near.design
        curve = np.zeros((counts.shape[0], p, p))
        curve[:, upper[0], upper[1]] = (weights * above * (1.0 - above) / width).T @ products
        curve[:, upper[1], upper[0]] = curve[:, upper[0], upper[1]]
        ridge = 1e-6 * np.trace(curve, axis1=1, axis2=2) + 1e-300
        curve[:, np.arange(p), np.arange(p)] += ridge[:, None]
        step = -np.linalg.solve(curve, gradient[:, :, None])[:, :, 0]
        stretch = (np.abs(near.design @ step.T) / (near.reach[:, None] + width)).max(axis=0)
        betas = betas + step * np.minimum(1.0, 3.0 / np.maximum(stretch, 1e-300))[:, None]
    return betas


def _losses(near: _Near, tau: float, betas: Array, counts: Array) -> Array:
    residuals = near.y[:, None] - near.design @ betas.T
    loss = residuals * (tau - (residuals < 0)) * counts.T[near.cell] * near.weight
    return np.asarray(loss.sum(axis=0) + counts @ near.constant + ((counts @ near.linear) * betas).sum(axis=1))


def interval(estimate: Array, resampled: Array, blocks: float) -> tuple[Array, Array]:
    """95 % percentile limits about the estimate, widened as a mean of few blocks needs (Student t, blocks - 1).

    Without the widening the limits of a slope cover 92 % at 12 blocks, with it 94 to 95 % (simulated, 200 runs).
    """
    from scipy.special import stdtrit

    degrees = max(blocks - 1.0, 1.0)
    stretch = float(stdtrit(degrees, 0.975)) / 1.959964 * float(np.sqrt(blocks / degrees))
    low, high = np.quantile(resampled, [0.025, 0.975], axis=0)
    return estimate + (low - estimate) * stretch, estimate + (high - estimate) * stretch


def reflected_interval(estimate: Array, resampled: Array) -> tuple[Array, Array]:
    """95 % limits for a quantity that cannot be negative, such as a share: 2 x estimate minus the quantiles, in [0, 1].

    Resampling adds its own noise to a share, so plain quantiles never reach 0, not even for a driver without effect.
    """
    low, high = np.quantile(resampled, [0.025, 0.975], axis=0)
    return np.clip(2 * estimate - high, 0.0, 1.0), np.clip(2 * estimate - low, 0.0, 1.0)
