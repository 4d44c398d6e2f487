"""How far apart in time two observations must lie to count as two."""

import math

from analytics.stats.smoothed import Array


def lag1(series: Array) -> float:
    """Lag-1 autocorrelation; 0 for a constant or a single value."""
    centred = series - series.mean() if series.size else series
    total = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / total if total > 0 else 0.0


def effective_size(n: int, phi_x: float, phi_z: float) -> float:
    """Independent windows worth of a slope: n (1 - phi_x phi_z) / (1 + phi_x phi_z), at most n.

    phi_x and phi_z are the lag-1 autocorrelations of driver and residual (Bartlett 1935); a negative product is not
    taken as extra information.
    """
    product = min(max(phi_x * phi_z, 0.0), 0.999)
    return n * (1.0 - product) / (1.0 + product)


def block_length(n: int, phi_x: float, phi_z: float) -> int:
    """Block for the bootstrap: twice the decorrelation time, at least the cube root of n, at most an eighth of it."""
    wanted = 2.0 * n / effective_size(n, phi_x, phi_z) if n else 1.0
    return max(1, min(math.ceil(max(wanted, math.cbrt(n))), n // 8))


def block_stretch(block: int, phi_x: float, phi_z: float) -> float:
    """Factor by which blocks that are short for the persistence make a bootstrapped standard error too small.

    A moving-block bootstrap leaves out of the long-run variance what lies across its blocks (Künsch 1989): of an AR(1)
    with lag-1 autocorrelation r the share 2 r / (1 - r²) / block, here with r = phi_x phi_z; at most three quarters.
    """
    product = min(max(phi_x * phi_z, 0.0), 0.999)
    missing = 2.0 * product / (1.0 - product * product) / max(block, 1)
    return 1.0 / math.sqrt(1.0 - min(missing, 0.75))
