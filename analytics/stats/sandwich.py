"""Density of the residuals at a fitted quantile, weighted by the design: the bread of the sandwich."""

import numpy as np

from analytics.stats.smoothed import Array


def density_matrix(design: Array, residuals: Array, tau: float) -> tuple[Array, float]:
    """X' diag(f(0)) X as a difference quotient around the fit (Powell 1991), and the width of residuals it used.

    No kernel with tails: it would see the many rows far below a high quantile and call the fit ten times more certain
    than it is. A little ridge keeps it regular where a column does not vary near the fit.
    """
    reach = 1.5 * float(np.cbrt(1.0 / residuals.size)) * np.sqrt(tau * (1.0 - tau))
    reach = min(float(reach), 0.5 * tau, 0.5 * (1.0 - tau))
    low, high = np.quantile(residuals, [tau - reach, tau + reach])
    near = design[(residuals >= low) & (residuals <= high)]
    width = float(high - low)
    density = near.T @ near / max(width, 1e-300)
    density[np.diag_indices_from(density)] += 1e-9 * np.trace(density) + 1e-300
    return np.asarray(density), width
