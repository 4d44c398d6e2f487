"""Smoothed check loss: quantile regression as a Newton problem, with rows that are surely on one side as plain sums.

Convolution smoothing after He, Pan, Tan & Zhou (2021, "conquer"), with a logistic kernel: one `tanh` gives weight and
slope, and its tails keep the Hessian regular when few rows lie near the quantile (a compact kernel does not).
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
        beta = _newton(problem, beta, width)
        residuals = problem.y - problem.design @ beta
        upper = 0.5 + 0.5 * np.tanh(residuals / (2.0 * width))
        if 4.0 * float(upper @ (1.0 - upper)) <= rows_near or width < 1e-12 * (1.0 + float(np.abs(residuals).max())):
            return beta, width
        width /= _SHRINK


def _newton(problem: Problem, beta: Array, width: float) -> Array:
    residuals = problem.y - problem.design @ beta
    loss = _loss(problem, beta, residuals, width)
    reach = 1e3 * (width + float(np.abs(residuals).max(initial=0.0)))
    for _ in range(_STEPS):
        upper = 0.5 + 0.5 * np.tanh(residuals / (2.0 * width))
        gradient = problem.linear - problem.design.T @ (upper - (1.0 - problem.tau))
        curve = problem.design.T @ (problem.design * (upper * (1.0 - upper) / width)[:, None])
        curve[np.diag_indices_from(curve)] += 1e-10 * (1e-300 + np.trace(curve))
        step = -np.linalg.lstsq(curve, gradient, rcond=None)[0]
        expected = float(-gradient @ step)
        if expected <= 1e-12 * (abs(loss) + 1e-300):
            return beta
        moved = problem.design @ step
        if not np.abs(moved).max(initial=0.0) < reach:  # the window holds no minimum: the caller widens it
            return beta
        size = 1.0
        while True:
            tried = residuals - size * moved
            new = _loss(problem, beta + size * step, tried, width)
            if new <= loss - 1e-4 * size * expected:
                break
            size *= 0.4
            if size < 1e-8:
                return beta
        done = loss - new <= 1e-9 * abs(loss)
        beta, residuals, loss = beta + size * step, tried, new
        if done:
            return beta
    return beta


def _loss(problem: Problem, beta: Array, residuals: Array, width: float) -> float:
    scaled = residuals / width
    soft = np.maximum(scaled, 0.0) + np.log1p(np.exp(-np.abs(scaled)))
    return float(width * soft.sum() - (1.0 - problem.tau) * residuals.sum() + problem.linear @ beta)
