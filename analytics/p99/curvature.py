"""Whether straight effects are enough: linear splines against lines, by check loss on time that neither has seen.

Not boosted trees: a spline per driver needs nothing but the fit at hand and says what bends. It does not see drivers
that work only together.
"""

import numpy as np
from numpy.typing import NDArray

from analytics.stats.collinearity import usable_columns
from analytics.stats.quantile_regression import fit
from analytics.stats.smoothed import Array, check_loss

_FOLDS = 4
_KNOTS = (0.5, 0.9)
_TAIL_ROWS_PER_PARAMETER = 10
_MOST_ROWS = 60_000
"""Rows that are looked at; the gain of 10 % that matters shows in far fewer."""


def held_out_gain(design: Array, y: Array, tau: float, cell: NDArray[np.intp]) -> float | None:
    """Share of the check loss that splines save on held-out cells of time; None where the tail cannot carry them.

    Every fourth cell is held out in turn. A gain within two standard errors of its folds counts as none. Where the
    tail is thin, only the strongest drivers bend.
    """
    step = -(-y.size // _MOST_ROWS)
    design, y, cell = design[::step], y[::step], cell[::step]
    drivers = design.shape[1] - 1
    tail = y.size * min(tau, 1.0 - tau) * (_FOLDS - 1) / _FOLDS
    room = int(tail / _TAIL_ROWS_PER_PARAMETER) - drivers - 1
    if room < 1 or not drivers:
        return None
    strength = np.abs(fit(design, y, tau).coefficients[1:]) * design[:, 1:].std(axis=0)
    bending = np.argsort(-strength, kind="stable")[:room]
    knots = min(max(room // drivers, 1), len(_KNOTS))
    straight, bent = [], []
    for fold in range(_FOLDS):
        out = cell % _FOLDS == fold
        if out.all() or not out.any():
            return None
        curved = _bent(design, ~out, bending, knots)
        straight.append(_loss(design, y, tau, out))
        bent.append(_loss(curved, y, tau, out))
    saved = np.array(straight) - np.array(bent)
    whole = sum(straight)
    if whole <= 0:
        return 0.0
    error = float(saved.std(ddof=1)) * np.sqrt(_FOLDS)
    return float(saved.sum() / whole) if saved.sum() > 2.0 * error else 0.0


def _bent(design: Array, known: NDArray[np.bool_], drivers: NDArray[np.intp], knots: int) -> Array:
    """Add max(0, x - knot) for knots at quantiles of these drivers, where they have values on both sides."""
    hinges = [design]
    for column in design[:, 1 + drivers].T:
        at = np.unique(np.quantile(column[known], _KNOTS[:knots] if knots > 1 else (0.8,)))
        hinges += [np.maximum(column - knot, 0.0)[:, None] for knot in at[at > column[known].min()]]
    return np.hstack(hinges)


def _loss(design: Array, y: Array, tau: float, out: NDArray[np.bool_]) -> float:
    kept, _left = usable_columns(design[~out, 1:])
    columns = np.ascontiguousarray(design[:, [0, *(1 + i for i in kept)]])
    found = fit(columns[~out], y[~out], tau)
    return check_loss(y[out] - found.predict(columns[out]), tau)
