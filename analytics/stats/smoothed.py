"""Smoothed check loss: quantile regression as a Newton problem, with rows that are surely on one side as plain sums.

Convolution smoothing after He, Pan, Tan & Zhou (2021, "conquer"), with a logistic kernel: one exponential gives weight
and slope, and its tails keep the Hessian regular when few rows lie near the quantile (a compact kernel does not).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_STEPS = 30
_SHRINK = 3.0


@dataclass(frozen=True, slots=True)
class Problem:
    """Minimise sum of rho_tau(y - design b) + linear'b; `linear` stands for the rows that are surely above or below."""

    design: Array
    y: Array
    tau: float
    linear: Array

    @classmethod
    def of(cls, design: Array, y: Array, tau: float) -> "Problem":
        """Problem over all its rows."""
        return cls(design, y, tau, np.zeros(design.shape[1]))


def check_loss(residuals: NDArray[Any], tau: float) -> float:
    """Sum of rho_tau(r) = r (tau - 1[r < 0])."""
    return float(tau * residuals.sum() - residuals[residuals < 0].sum())


def starting_point(problem: Problem) -> tuple[Array, float]:
    """Coefficients of the intercept-only fit (column 0 is the constant) and a bandwidth as wide as the tail."""
    quantile, middle = np.quantile(problem.y, [problem.tau, 0.5 if problem.tau != 0.5 else 0.25])
    width = abs(quantile - middle) or float(problem.y.std()) or 1.0
    start = np.zeros(problem.design.shape[1])
    start[0] = quantile
    return start, float(width) / _SHRINK


def minimise(problem: Problem, start: Array, width: float, rows_near: int) -> tuple[Array, float]:
    """Follow the smoothed minimum while the bandwidth shrinks threefold; return it and the last bandwidth.

    Stops when the kernel's weights amount to fewer than `rows_near` rows: below that, smoothing says no more than the
    vertex search (`analytics.stats.vertex`) does exactly.
    """
    beta = start
    while True:
        beta, residuals = _newton(problem, beta, width)
        upper, _soft = _soft_step(residuals / width)
        if 4.0 * float(upper @ (1.0 - upper)) <= rows_near or width < 1e-12 * (1.0 + float(np.abs(residuals).max())):
            return beta, width
        width /= _SHRINK


def _newton(problem: Problem, beta: Array, width: float) -> tuple[Array, Array]:
    """Minimum of the smoothed loss and its residuals."""
    design, diagonal = problem.design, np.arange(beta.size)
    residuals = problem.y - design @ beta
    upper, loss = _at(problem, beta, residuals, width)
    reach = 1e3 * (width + float(np.abs(residuals).max(initial=0.0)))
    for _ in range(_STEPS):
        gradient = problem.linear - design.T @ (upper - (1.0 - problem.tau))
        curve = design.T @ (design * (upper * (1.0 - upper) / width)[:, None])
        curve[diagonal, diagonal] += 1e-10 * (1e-300 + np.trace(curve))
        step = -_solved(curve, gradient)
        expected = float(-gradient @ step)
        if expected <= 1e-12 * (abs(loss) + 1e-300):
            break
        moved = design @ step
        if not np.abs(moved).max(initial=0.0) < reach:  # the window holds no minimum: the caller widens it
            break
        size = 1.0
        while True:
            tried = residuals - size * moved
            upper, new = _at(problem, beta + size * step, tried, width)
            if new <= loss - 1e-4 * size * expected:
                break
            size *= 0.4
            if size < 1e-8:
                return beta, residuals
        done = loss - new <= 1e-9 * abs(loss)
        beta, residuals, loss = beta + size * step, tried, new
        if done:
            break
    return beta, residuals


def _solved(curve: Array, gradient: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(curve, gradient))
    except np.linalg.LinAlgError:  # no row near the quantile in some direction
        return np.asarray(np.linalg.lstsq(curve, gradient, rcond=None)[0])


def _at(problem: Problem, beta: Array, residuals: Array, width: float) -> tuple[Array, float]:
    """Weight above of each row, and the smoothed loss."""
    upper, soft = _soft_step(residuals / width)
    return upper, float(width * soft.sum() - (1.0 - problem.tau) * residuals.sum() + problem.linear @ beta)


def _soft_step(scaled: Array) -> tuple[Array, Array]:
    """Logistic function and its integral, from one exponential."""
    decay = np.exp(-np.abs(scaled))
    upper = np.where(scaled > 0, 1.0, decay) / (1.0 + decay)
    return upper, np.maximum(scaled, 0.0) + np.log1p(decay)
