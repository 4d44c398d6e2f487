"""Least squares on windowed values with errors that allow for autocorrelation, and its share of variance."""

from dataclasses import dataclass

import numpy as np

from analytics.stats.smoothed import Array


@dataclass(frozen=True, slots=True)
class LeastSquaresFit:
    """Coefficients with 95 % limits; column 0 of the design is the constant."""

    coefficients: Array
    low: Array
    high: Array
    residuals: Array


def fit_hac(design: Array, y: Array, lags: int) -> LeastSquaresFit:
    """Ordinary least squares with Newey-West errors over `lags` (statsmodels' OLS, cov_type HAC, Student t)."""
    from statsmodels.regression.linear_model import OLS

    options = {"maxlags": lags, "use_correction": True}
    fitted = OLS(y, design).fit(cov_type="HAC", cov_kwds=options, use_t=True)
    limits = np.asarray(fitted.conf_int())
    return LeastSquaresFit(
        np.asarray(fitted.params), limits[:, 0], limits[:, 1], np.asarray(y - design @ np.asarray(fitted.params))
    )


def unexplained(design: Array, y: Array, counts: Array) -> Array:
    """Residual sum of squares of each weighted fit; `counts` (resamples, n) holds the weight of every row."""
    cross = np.einsum("rn,np,nq->rpq", counts, design, design, optimize=True)
    cross[:, np.arange(design.shape[1]), np.arange(design.shape[1])] *= 1.0 + 1e-12
    moment = np.einsum("rn,np,n->rp", counts, design, y, optimize=True)
    beta = np.stack([np.linalg.lstsq(c, m, rcond=1e-12)[0] for c, m in zip(cross, moment, strict=True)])
    return np.asarray((counts * np.square(y - beta @ design.T)).sum(axis=1))
