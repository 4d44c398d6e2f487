"""The fitted tail of one group: slopes, shares of what they explain, intervals, and how far to trust them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analytics.p99.curvature import held_out_gain
from analytics.p99.selection import Selection, tail_rows
from analytics.stats import autocorrelation, shapley
from analytics.stats.block_bootstrap import COARSE, Resampled, block_counts, interval, refit, share_interval
from analytics.stats.collinearity import usable_columns
from analytics.stats.quantile_regression import QuantileFit, fit, fit_smallest
from analytics.stats.smoothed import Array

if TYPE_CHECKING:
    import polars as pl

LEAST_N_EFF = 30.0
PERSISTENT_N_EFF = 60.0
"""Independent windows below which limits of slopes are known to be too narrow: at 36, 88 % hold the truth, not 95."""
CALIBRATED_WITHIN = 0.005
CURVED = 0.10
"""Gain of bent effects above which straight ones are called averages."""
_CURVE_TAIL_ROWS = 20
_CELLS = (24, 240)
_ROWS_PER_CELL = 20
_SHARE_ROWS = 200_000
"""Shares of larger data come from this many rows: their sampling error is then a tenth of the blocks' own."""
_SHARE_RESAMPLES = 100
"""Resamples of shares: each refits up to 64 coalitions of drivers."""


@dataclass(frozen=True, slots=True)
class Share:
    """Part of the explained tail associated with a driver, with 95 % limits."""

    driver: str
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class AtQuantile:
    """Slopes at one more quantile, with 95 % limits; coefficients run as those of the model."""

    tau: float
    n_tail: int
    coefficients: Array
    low: Array
    high: Array


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
    coverage_error: float | None = None
    r1_covariates: float | None = None
    curvature: float | None = None
    curve: tuple[AtQuantile, ...] = ()
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


def fit_requests(selection: Selection, resamples: int, seed: int, taus: Sequence[float] = ()) -> Model:
    """Fit the selection's quantile on requests, with block bootstrap over time for all intervals; then further taus."""
    y, design, tau = selection.y, selection.design, selection.tau
    best = fit(design, y, tau)
    fitted = best.predict(design)
    cell = time_cells(selection.rows["ts"], y.size)
    cells = int(cell.max()) + 1
    phi_x, phi_z = _persistence(selection.matrix, y - fitted, cell, cells)
    block = autocorrelation.block_length(cells, phi_x, phi_z)
    counts = block_counts(cells, block, resamples, seed)
    widened = (cells / block, autocorrelation.block_stretch(block, phi_x, phi_z))
    this = _at(design, y, cell, best, counts, widened)
    shares, r1 = _attribute(selection, cell, counts, seed)
    coverage, coverage_error = _held_out_coverage(design, y, tau, cell, block)
    others = [other for other in sorted({*taus} - {tau}) if tail_rows(y.size, other) >= _CURVE_TAIL_ROWS]
    curve = [_at(design, y, cell, fit(design, y, other), counts, widened) for other in others]
    whole, alone = _explained(selection, best.loss)
    made = Model(
        method="qr",
        tau=tau,
        coefficients=best.coefficients,
        low=this.low,
        high=this.high,
        shares=shares,
        r1=whole,
        r1_low=r1[0],
        r1_high=r1[1],
        n=y.size,
        n_tail=this.n_tail,
        n_eff=autocorrelation.effective_size(cells, phi_x, phi_z),
        lag1=phi_z,
        coverage=coverage,
        fitted=fitted,
        coverage_error=coverage_error,
        r1_covariates=alone,
        curvature=held_out_gain(design, y, tau, cell),
        curve=tuple(sorted((this, *curve), key=lambda at: at.tau)),
    )
    return judged(made, best.exact, selection)


def _at(
    design: Array, y: Array, cell: NDArray[np.intp], best: QuantileFit, counts: Array, widened: tuple[float, float]
) -> AtQuantile:
    """Coefficients at a quantile with their limits; `widened` are the arguments of `interval` after the resamples."""
    moved = refit(design, y, cell, best.tau, best.coefficients, counts)
    low, high = interval(best.coefficients, moved.coefficients, *widened)
    return AtQuantile(best.tau, round(tail_rows(y.size, best.tau)), best.coefficients, low, high)


def _explained(selection: Selection, loss: float) -> tuple[float, float | None]:
    """Share of the check loss that the drivers explain beyond the covariates, and that those explain alone."""
    y, tau = selection.y, selection.tau
    base = fit_smallest(y, tau).loss
    if not selection.adjusted:
        return (1.0 - loss / base if base > 0 else 0.0), None
    adjusted = fit(_columns(selection.design, selection.adjusted), y, tau).loss
    drivers = 1.0 - loss / adjusted if adjusted > 0 else 0.0
    return drivers, (1.0 - adjusted / base if base > 0 else 0.0)


def _columns(design: Array, chosen: Iterable[int]) -> Array:
    """Return the constant and these columns of the drivers' matrix."""
    return np.ascontiguousarray(design[:, [0, *sorted(1 + i for i in chosen)]])


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
    elif model.n_eff < PERSISTENT_N_EFF:
        notes.append(
            f"drivers and residuals persist (residuals {model.lag1:.2f} from one window to the next), so the windows "
            f"are worth {model.n_eff:.0f} independent ones: 95 % limits of slopes then hold the truth in about 88 % of "
            "cases (simulated)"
        )
    if model.coverage is not None:
        off = abs(model.coverage - model.tau)
        if off > max(CALIBRATED_WITHIN, 2.0 * (model.coverage_error or 0.0)):
            notes.append(
                f"not calibrated: fitted on the first three quarters, {model.coverage:.1%} of the last quarter lie at "
                f"or below the quantile, {model.tau:.1%} should (standard error {model.coverage_error or 0.0:.1%}); "
                "conditions changed or effects are not linear"
            )
            verdicts.append("not calibrated")
    if model.curvature is not None and model.curvature > CURVED:
        notes.append(
            f"non-linear: bent effects (linear splines) save {model.curvature:.0%} of the check loss on held-out time; "
            "linear effects are averages"
        )
        verdicts.append("non-linear")
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
    y, design, tau, counts = selection.y, selection.design, selection.tau, counts[:_SHARE_RESAMPLES]
    if y.size > _SHARE_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(y.size, _SHARE_ROWS, replace=False))
        y, design, cell = y[rows], design[rows], cell[rows]
    alone = _columns(design, selection.adjusted)
    fitted = fit(alone, y, tau) if alone.shape[1] > 1 else fit_smallest(y, tau)
    base = _losses(fitted, alone, y, cell, counts)
    base = np.where(base > 0, base, np.inf)

    known: dict[frozenset[int], Array] = {}

    def worth(coalition: frozenset[int]) -> Array:
        if not coalition:
            return np.zeros_like(base)
        chosen = {*selection.adjusted, *(i for player in coalition for i in selection.players[player][1])}
        smaller = next((known[part] for left in coalition if (part := coalition - {left}) in known), None)
        columns = [0, *(1 + i for i in sorted(chosen))]
        near = None if smaller is None else smaller[columns]
        best = fit(_columns(design, chosen), y, tau, near)
        known[coalition] = np.zeros(design.shape[1])
        known[coalition][columns] = best.coefficients
        return np.asarray(1.0 - _losses(best, _columns(design, chosen), y, cell, counts) / base)

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


def _losses(best: QuantileFit, design: Array, y: Array, cell: NDArray[np.intp], counts: Array) -> Array:
    """Check loss of the fit to all rows, then of each resample."""
    moved: Resampled = refit(design, y, cell, best.tau, best.coefficients, counts, COARSE)
    return np.concatenate([[best.loss], moved.losses])


def _held_out_coverage(
    design: Array, y: Array, tau: float, cell: NDArray[np.intp], block: int
) -> tuple[float | None, float | None]:
    """Share of the last quarter at or below the quantile fitted on the rest, and its standard error.

    None where the rest cannot be fitted. Blocks of cells count as one observation each; the earlier fit, on three
    times the rows, adds a third of the variance.
    """
    cut = 3 * y.size // 4
    kept, _left = usable_columns(design[:cut, 1:])
    columns = [0, *(1 + i for i in kept)]
    if cut <= 2 * len(columns) or cut == y.size:
        return None, None
    earlier = fit(np.ascontiguousarray(design[:cut, columns]), y[:cut], tau)
    met = (y[cut:] <= earlier.predict(design[cut:, columns])).astype(np.float64)
    share = float(met.mean())
    blocks = np.unique(cell[cut:] // block, return_inverse=True)[1]
    sums = np.bincount(blocks, met - share)
    clustered = float(np.square(sums).sum()) * sums.size / max(sums.size - 1, 1)
    variance = max(clustered / met.size**2, tau * (1.0 - tau) / met.size)
    return share, float(np.sqrt(variance * 4.0 / 3.0))
