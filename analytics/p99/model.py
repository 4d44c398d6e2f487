"""The fitted tail of one group: slopes, shares of what they explain, intervals, and how far to trust them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.p99.selection import Selection
from analytics.stats import autocorrelation, shapley
from analytics.stats.block_bootstrap import COARSE, Resampled, block_counts, interval, refit, share_interval
from analytics.stats.collinearity import usable_columns
from analytics.stats.quantile_regression import QuantileFit, fit, fit_smallest
from analytics.stats.smoothed import Array

if TYPE_CHECKING:
    import polars as pl

LEAST_N_EFF = 30.0
CALIBRATED_WITHIN = 0.005
_CELLS = (24, 240)
_ROWS_PER_CELL = 20
_SHARE_ROWS = 200_000
"""Shares of larger data come from this many rows: their sampling error is then a tenth of the blocks' own."""


@dataclass(frozen=True, slots=True)
class Share:
    """Part of the explained tail associated with a driver, with 95 % limits."""

    driver: str
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Model:
    """A fit and its diagnostics. Coefficients and limits run over (intercept) and the selection's names."""

    method: str
    tau: float
    coefficients: Array
    low: Array
    high: Array
    shares: tuple[Share, ...]
    r1: float
    r1_low: float
    r1_high: float
    n: int
    n_tail: int
    n_eff: float
    lag1: float
    coverage: float | None
    fitted: Array
    notes: tuple[str, ...] = ()
    verdict: str = "ok"

    @property
    def leading(self) -> Share | None:
        """Driver with the largest share."""
        return max(self.shares, key=lambda share: share.share, default=None)


def time_cells(ts: "pl.Series", rows: int) -> NDArray[np.intp]:
    """Cell of each row: equal stretches of time, 24 to 240 of them as the rows allow; empty ones are not counted."""
    at = ts.dt.epoch("us").to_numpy().astype(np.float64)
    cells = int(np.clip(rows // _ROWS_PER_CELL, *_CELLS))
    share = (at - at.min()) / max(float(np.ptp(at)), 1.0)
    return np.unique(np.minimum((share * cells).astype(np.intp), cells - 1), return_inverse=True)[1].astype(np.intp)


def fit_requests(selection: Selection, resamples: int, seed: int) -> Model:
    """Fit the selection's quantile on requests, with block bootstrap over time for all intervals."""
    y, design, tau = selection.y, selection.design, selection.tau
    best, base = fit(design, y, tau), fit_smallest(y, tau)
    fitted = best.predict(design)
    cell = time_cells(selection.rows["ts"], y.size)
    cells = int(cell.max()) + 1
    phi_x, phi_z = _persistence(selection.matrix, y - fitted, cell, cells)
    block = autocorrelation.block_length(cells, phi_x, phi_z)
    counts = block_counts(cells, block, resamples, seed)
    moved = refit(design, y, cell, tau, best.coefficients, counts)
    low, high = interval(best.coefficients, moved.coefficients, cells / block)
    shares, r1 = _attribute(selection, cell, counts, seed)
    exact_r1 = 1.0 - best.loss / base.loss if base.loss > 0 else 0.0
    made = Model(
        method="qr",
        tau=tau,
        coefficients=best.coefficients,
        low=low,
        high=high,
        shares=shares,
        r1=exact_r1,
        r1_low=r1[0],
        r1_high=r1[1],
        n=y.size,
        n_tail=round(y.size * min(tau, 1.0 - tau)),
        n_eff=autocorrelation.effective_size(cells, phi_x, phi_z),
        lag1=phi_z,
        coverage=_held_out_coverage(design, y, tau),
        fitted=fitted,
    )
    return judged(made, best.exact, selection)


def judged(model: Model, exact: bool, selection: Selection) -> Model:
    """Add the verdict in words: what keeps the numbers from being taken at face value."""
    notes = list(selection.notes)
    verdicts = []
    if not exact:
        notes.append("the fit did not reach its optimum: more ties than the search could resolve")
        verdicts.append("not converged")
    if model.n_eff < LEAST_N_EFF or selection.low_confidence:
        notes.append(
            f"low confidence: {model.n_tail} tail rows in windows worth {model.n_eff:.0f} independent ones "
            f"({LEAST_N_EFF:.0f} are wanted); intervals may be too narrow"
        )
        verdicts.append("low confidence")
    if model.coverage is not None:
        off = abs(model.coverage - model.tau)
        chance = 2.0 * np.sqrt(model.tau * (1.0 - model.tau) / max(model.n / 4.0, 1.0))
        if off > max(CALIBRATED_WITHIN, float(chance)):
            notes.append(
                f"not calibrated: fitted on the first three quarters, {model.coverage:.1%} of the last quarter lie at "
                f"or below the quantile, {model.tau:.1%} should; conditions changed or effects are not linear"
            )
            verdicts.append("not calibrated")
    shares = model.shares
    if model.r1_low <= 0.0:
        notes.append(f"no driver identified: what the drivers explain (R1 {model.r1:.2f}) cannot be told from zero")
        verdicts.append("no driver identified")
        shares = ()
    return replace(model, shares=shares, notes=tuple(notes), verdict=", ".join(verdicts) or "ok")


def _persistence(matrix: Array, residuals: Array, cell: NDArray[np.intp], cells: int) -> tuple[float, float]:
    """Lag-1 autocorrelation of the most persistent driver (cell means) and of the residuals (cell medians)."""
    sizes = np.bincount(cell, minlength=cells)
    drivers = [autocorrelation.lag1(np.bincount(cell, column, cells) / sizes) for column in matrix.T]
    order = np.lexsort((residuals, cell))
    starts = np.cumsum(sizes) - sizes
    ordered = residuals[order]
    medians = (ordered[starts + (sizes - 1) // 2] + ordered[starts + sizes // 2]) / 2.0
    return max(drivers, default=0.0), autocorrelation.lag1(medians)


def _attribute(
    selection: Selection, cell: NDArray[np.intp], counts: Array, seed: int
) -> tuple[tuple[Share, ...], tuple[float, float]]:
    y, design, tau = selection.y, selection.design, selection.tau
    if y.size > _SHARE_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(y.size, _SHARE_ROWS, replace=False))
        y, design, cell = y[rows], design[rows], cell[rows]
    base = _losses(np.ones((y.size, 1)), y, cell, tau, counts)
    base = np.where(base > 0, base, np.inf)

    def worth(coalition: frozenset[int]) -> Array:
        if not coalition:
            return np.zeros_like(base)
        columns = [0, *sorted(1 + i for player in coalition for i in selection.players[player][1])]
        return np.asarray(1.0 - _losses(np.ascontiguousarray(design[:, columns]), y, cell, tau, counts) / base)

    return shared_out(selection, worth, seed)


def shared_out(selection: Selection, worth: shapley.Worth, seed: int) -> tuple[tuple[Share, ...], tuple[float, float]]:
    """Shapley shares of what the players explain, and the limits of the whole; worth is [estimate, resamples…]."""
    players = len(selection.players)
    parts = shapley.values(players, worth, shapley.orders(players, seed))
    total = parts.sum(axis=0)
    low, high = share_interval(total[0], total[1:])
    share = shapley.shares(parts)
    limits = share_interval(share[:, 0], _known(share[:, 1:]).T)
    named = zip(selection.players, share[:, 0], *limits, strict=True)
    found = tuple(Share(name, float(s), float(a), float(b)) for (name, _), s, a, b in named)
    return found, (float(low), float(high))


def _known(share: Array) -> Array:
    return share[:, np.isfinite(share).all(axis=0)] if np.isfinite(share).all(axis=0).any() else np.zeros_like(share)


def _losses(design: Array, y: Array, cell: NDArray[np.intp], tau: float, counts: Array) -> Array:
    """Check loss of the fit to all rows, then of each resample."""
    best: QuantileFit = fit_smallest(y, tau) if design.shape[1] == 1 else fit(design, y, tau)
    moved: Resampled = refit(design, y, cell, tau, best.coefficients, counts, COARSE)
    return np.concatenate([[best.loss], moved.losses])


def _held_out_coverage(design: Array, y: Array, tau: float) -> float | None:
    """Share of the last quarter at or below the quantile fitted on the rest; None where that cannot be fitted."""
    cut = 3 * y.size // 4
    kept, _left = usable_columns(design[:cut, 1:])
    columns = [0, *(1 + i for i in kept)]
    if cut <= 2 * len(columns) or cut == y.size:
        return None
    earlier = fit(np.ascontiguousarray(design[:cut, columns]), y[:cut], tau)
    return float(np.mean(y[cut:] <= earlier.predict(design[cut:, columns])))
