"""The older method, kept for comparison: least squares on windowed P99s with errors that allow for autocorrelation.

It ranks drivers well but is mis-calibrated (96.4 % of requests below its "P99", simulated): a linear fit of maxima.
"""

import numpy as np
import polars as pl

from analytics.p99.model import Model, judged, shared_out
from analytics.p99.selection import Selection
from analytics.stats import autocorrelation
from analytics.stats.block_bootstrap import block_counts
from analytics.stats.least_squares import fit_hac, unexplained
from analytics.stats.smoothed import Array

LEAST_WINDOWS = 20


def windowed(rows: pl.DataFrame, drivers: list[str], tau: float) -> pl.DataFrame:
    """Make windows of requests (ts, y, drivers, bucket): y is the window's quantile, a driver its mean."""
    return (
        rows.group_by("bucket")
        .agg(
            pl.col("ts").min(),
            pl.col("y").quantile(tau, "linear"),
            pl.len().alias("n"),
            *(pl.col(name).mean() for name in drivers),
        )
        .sort("ts")
    )


def fit_windows(selection: Selection, requests: pl.DataFrame, resamples: int, seed: int) -> Model:
    """Fit windowed quantiles by least squares. `requests` (bucket, y) serve to check the coverage."""
    y, design = selection.y, selection.design
    phi_x = max(map(autocorrelation.lag1, selection.matrix.T), default=0.0)
    first = fit_hac(design, y, 1)
    phi_z = autocorrelation.lag1(first.residuals)
    lags = autocorrelation.block_length(y.size, phi_x, phi_z)
    best = fit_hac(design, y, lags)
    counts = np.vstack([np.ones(y.size), block_counts(y.size, lags, resamples, seed)])
    base = unexplained(design[:, [0, *(1 + i for i in selection.adjusted)]], y, counts)

    def worth(coalition: frozenset[int]) -> Array:
        chosen = [*selection.adjusted, *(i for player in coalition for i in selection.players[player][1])]
        columns = [0, *sorted(1 + i for i in chosen)]
        return np.asarray(1.0 - unexplained(design[:, columns], y, counts) / np.where(base > 0, base, np.inf))

    shares, r2 = shared_out(selection, worth, seed)
    coverage, error = _coverage(selection, requests)
    made = Model(
        method="ols",
        tau=selection.tau,
        coefficients=best.coefficients,
        low=best.low,
        high=best.high,
        shares=shares,
        r1=float(worth(frozenset(range(len(selection.players))))[0]),
        r1_low=r2[0],
        r1_high=r2[1],
        n=y.size,
        n_tail=y.size,
        n_eff=autocorrelation.effective_size(y.size, phi_x, phi_z),
        lag1=phi_z,
        coverage=coverage,
        coverage_error=error,
        fitted=design @ best.coefficients,
    )
    return judged(made, exact=True, selection=selection)


def _coverage(selection: Selection, requests: pl.DataFrame) -> tuple[float | None, float | None]:
    """Share of requests of the last quarter of windows at or below the value predicted from the earlier windows.

    And its standard error, a window counting as one observation.
    """
    y, design = selection.y, selection.design
    cut = 3 * y.size // 4
    beta = np.linalg.lstsq(design[:cut], y[:cut], rcond=None)[0]
    later = selection.rows[cut:].select("bucket", pl.Series("predicted", design[cut:] @ beta))
    met = requests.join(later, on="bucket").select("bucket", met=(pl.col("y") <= pl.col("predicted")).cast(pl.Float64))
    if not met.height:
        return None, None
    share = met.select(pl.col("met").mean()).item()
    sums = met.group_by("bucket").agg((pl.col("met") - share).sum())["met"].to_numpy()
    return float(share), float(np.sqrt(np.square(sums).sum() * 4.0 / 3.0)) / met.height
