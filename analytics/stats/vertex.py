"""Exact quantile regression from a good start: walk along the edges of the check loss to the vertex that is optimal.

An optimal fit passes through p rows (Koenker & Bassett 1978). Each step leaves the row whose dual variable lies
outside [tau - 1, tau] and searches the edge exactly (Barrodale & Roberts 1974); bounds that hold are the proof.
"""

import numpy as np
from numpy.typing import NDArray

from analytics.stats.smoothed import Array, Problem

_SLACK = 1e-9
_STEPS_PER_COLUMN = 200
_BATCH = 64
_INDEPENDENT = 1e-6  # of a row's length: what is left of it beyond the rows before


def descend(problem: Problem, beta: Array) -> tuple[Array, bool]:
    """Return the optimal coefficients and whether the optimality conditions hold.

    Tied rows can make the walk stall; it is then repeated on y moved by at most 1e-10 of its spread, whose dual
    solution is feasible for y itself, so the loss is optimal to that size.
    """
    found, optimal = _walk(problem, beta)
    if optimal:
        return found, True
    spread = float(np.ptp(problem.y)) or 1.0
    moves = np.random.default_rng(0).uniform(-1e-10, 1e-10, problem.y.size) * spread
    return _walk(Problem(problem.design, problem.y + moves, problem.tau, problem.linear), found)


def _walk(problem: Problem, beta: Array) -> tuple[Array, bool]:
    design, y, tau = problem.design, problem.y, problem.tau
    basis = _basis(design, np.abs(y - design @ beta))
    if basis is None:
        return beta, False
    beta = np.asarray(np.linalg.solve(design[basis], y[basis]), dtype=np.float64)
    residuals = y - design @ beta
    for _ in range(_STEPS_PER_COLUMN * design.shape[1]):
        residuals[basis] = 0.0
        slopes = (residuals < 0) - tau
        slopes[basis] = 0.0
        edges = np.linalg.inv(design[basis])
        leave, sign, gain = _leaving(edges.T @ (problem.linear + design.T @ slopes), tau)
        if gain <= _SLACK:
            return beta, True
        rate = sign * (design @ edges[:, leave])
        rate[basis] = 0.0
        enter = _line_search(residuals, rate, gain)
        if enter < 0:
            return beta, False
        basis[leave] = enter
        beta = np.asarray(np.linalg.solve(design[basis], y[basis]), dtype=np.float64)
        residuals = y - design @ beta
    return beta, False


def _leaving(dual: Array, tau: float) -> tuple[int, float, float]:
    """Row to leave the basis, the way to go, and the descent per unit of its residual."""
    forward, backward = -dual - (1.0 - tau), dual - tau
    up, down = int(np.argmax(forward)), int(np.argmax(backward))
    if forward[up] >= backward[down]:
        return up, 1.0, float(forward[up])
    return down, -1.0, float(backward[down])


def _line_search(residuals: Array, rate: Array, gain: float) -> int:
    """Row at which the slope along the edge turns upward; -1 where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(np.abs(rate) > 1e-13 * np.abs(rate).max(), residuals / rate, np.inf)
    steps = np.where((steps > 0) | ((residuals == 0) & (rate > 0)), steps, np.inf)
    candidates = np.flatnonzero(np.isfinite(steps))
    for size in (256, candidates.size):
        nearest = candidates
        if size < candidates.size:
            nearest = candidates[np.argpartition(steps[candidates], size)[:size]]
        nearest = nearest[np.argsort(steps[nearest], kind="stable")]
        turned = np.flatnonzero(np.cumsum(np.abs(rate[nearest])) >= gain)
        if turned.size:
            return int(nearest[turned[0]])
    return -1


def _basis(design: Array, distance: Array) -> NDArray[np.intp] | None:
    """Pick the p rows nearest to the fit that are linearly independent.

    Requests of one scrape share their drivers, so thousands of rows may repeat each other: looked at in batches, each
    twice as large as the one before.
    """
    p = design.shape[1]
    order = np.argsort(distance, kind="stable")
    rows: list[int] = []
    span = np.zeros((0, p))
    start, size = 0, _BATCH
    while start < order.size:
        batch = order[start : start + size]
        rest = design[batch] - (design[batch] @ span.T) @ span
        least = _INDEPENDENT * np.linalg.norm(design[batch], axis=1)
        while (found := np.flatnonzero(np.linalg.norm(rest, axis=1) > least)).size:
            first = found[0]
            rows.append(int(batch[first]))
            span = np.vstack([span, rest[first] / np.linalg.norm(rest[first])])
            if len(rows) == p:
                return np.array(rows)
            batch, rest, least = batch[first + 1 :], rest[first + 1 :], least[first + 1 :]
            rest = rest - (rest @ span[-1])[:, None] * span[-1]
        start, size = start + size, 2 * size
    return None
