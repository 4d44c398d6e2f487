"""Fit of retention(step) = r0 (1 - a (1 - e^(-step / tau))), and what it tells of its three numbers.

For a given tau the form is linear, so the least squares over all three are a search over tau alone (variable
projection, Golub & Pereyra 1973): no starting values, no wrong minimum. The same search on resampled clusters (turns of
one conversation, blocks stored at one time) gives limits that hold where observations within a cluster move together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
TAUS, REACH = 240, 8.0
"""Values of tau tried, from a 500th of the longest step to REACH times it."""
RESAMPLES, SEED = 400, 20_261_201
FEWEST_STEPS, FEWEST_CLUSTERS = 8, 20
SEEN = 1.5
"""Times the upper limit of tau that the longest step must reach: before that, decay and end level look alike."""


@dataclass(frozen=True, slots=True)
class Decay:
    """Estimates with 95 % limits (low, high); `told` says whether tau lies within what the steps can show."""

    r0: tuple[float, float, float]
    a: tuple[float, float, float]
    tau: tuple[float, float, float]
    rmse: float
    told: bool


def form(step: Array, r0: float, a: float, tau: float) -> Array:
    """Return the retention at each step."""
    made: Array = r0 * (1 - a * (1 - np.exp(-step / tau)))
    return made


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums over rows: weight, y, y², and by tau of e = 1 - e^(-step/tau): e, e², e y. Leading axes are resamples."""

    n: Array
    y: Array
    yy: Array
    e: Array
    ee: Array
    ey: Array

    def drawn(self, counts: Array) -> "_Sums":
        """Add up resampled clusters: counts (resamples, clusters)."""
        return _Sums(*(counts @ part for part in (self.n, self.y, self.yy, self.e, self.ee, self.ey)))


def taus(step: Array) -> Array:
    """Values of tau to try for these steps."""
    longest = float(step.max())
    return np.geomspace(longest / 500, longest * REACH, TAUS)


def _by_cluster(step: Array, y: Array, weight: Array, cluster: NDArray[np.intp], tried: Array) -> _Sums:
    count = int(cluster.max()) + 1
    steps, at = np.unique(step, return_inverse=True)
    grown = 1 - np.exp(-steps[:, None] / tried[None, :])
    cell = cluster * len(steps) + at
    size = count * len(steps)
    w = np.bincount(cell, weight, size).reshape(count, len(steps))
    wy = np.bincount(cell, weight * y, size).reshape(count, len(steps))
    wyy = np.bincount(cluster, weight * y * y, count).astype(np.float64)
    return _Sums(w.sum(axis=1), wy.sum(axis=1), wyy, w @ grown, w @ grown**2, wy @ grown)


def _solve(sums: _Sums, tried: Array) -> tuple[Array, Array, Array, Array]:
    """r0, a, tau and the sum of squares of each set of sums (leading axis)."""
    n, y, yy = sums.n[:, None], sums.y[:, None], sums.yy[:, None]
    spread = np.maximum(sums.ee - sums.e**2 / n, 1e-12 * n)
    slope = (sums.ey - sums.e * y / n) / spread
    squares = yy - y**2 / n - slope**2 * spread
    best = np.argmin(squares, axis=1)
    rows = np.arange(len(best))
    tau = _between(squares, best, tried)
    chosen = slope[rows, best]
    r0 = (sums.y - chosen * sums.e[rows, best]) / sums.n
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(r0 != 0, -chosen / r0, np.nan)
    return r0, a, tau, squares[rows, best]


def _between(squares: Array, best: NDArray[np.intp], tried: Array) -> Array:
    """Vertex of the parabola through the best value and its neighbours, on the scale of log tau."""
    rows, inner = np.arange(len(best)), np.clip(best, 1, len(tried) - 2)
    low, middle, high = (squares[rows, inner + shift] for shift in (-1, 0, 1))
    curve = low - 2 * middle + high
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(curve > 0, 0.5 * (low - high) / curve, 0.0)
    shift = np.where(inner == best, np.clip(shift, -1, 1), 0.0)
    step = np.log(tried[1] / tried[0])
    made: Array = tried[best] * np.exp(shift * step)
    return made


def fit(step: Array, y: Array, cluster: NDArray[np.intp], weight: Array | None = None) -> Decay | None:
    """Fit by least squares; None below 8 distinct steps or 20 clusters (numbered from 0), or without spread.

    Limits are percentiles of refits on resampled clusters, widened as a mean of that many clusters needs (Student t).
    """
    if len(np.unique(step)) < FEWEST_STEPS or len(np.unique(cluster)) < FEWEST_CLUSTERS or float(np.ptp(y)) == 0:
        return None
    given = np.ones(len(y)) if weight is None else weight
    tried = taus(step)
    sums = _by_cluster(step, y, given, cluster, tried)
    clusters = len(sums.n)
    draws = np.random.default_rng(SEED).multinomial(clusters, np.full(clusters, 1 / clusters), RESAMPLES)
    whole = sums.drawn(np.ones((1, clusters)))
    return _with_limits(whole, sums.drawn(draws.astype(np.float64)), tried, clusters, float(step.max()))


def fit_curve(step: Array, y: Array, refits: Array, clusters: int) -> Decay | None:
    """Fit a curve that was estimated as a whole, y at rising steps; `refits` (resamples, steps) are its resamples."""
    if len(step) < FEWEST_STEPS or clusters < FEWEST_CLUSTERS or float(np.ptp(y)) == 0:
        return None
    tried = taus(step)
    whole, drawn = (_of_curves(step, curves, tried) for curves in (y[None, :], refits))
    return _with_limits(whole, drawn, tried, clusters, float(step.max()))


def _of_curves(step: Array, curves: Array, tried: Array) -> _Sums:
    grown = 1 - np.exp(-step[:, None] / tried[None, :])
    n = np.full(len(curves), float(len(step)))
    e, ee = (np.tile(part.sum(axis=0), (len(curves), 1)) for part in (grown, grown**2))
    return _Sums(n, curves.sum(axis=1), (curves**2).sum(axis=1), e, ee, curves @ grown)


def _with_limits(whole: _Sums, drawn: _Sums, tried: Array, clusters: int, longest: float) -> Decay:
    found, made = _solve(whole, tried), _solve(drawn, tried)
    limits = [_limits(float(at[0]), refits, clusters) for at, refits in zip(found[:3], made[:3], strict=True)]
    rmse = float(np.sqrt(max(found[3][0], 0.0) / whole.n[0]))
    low, high = limits[2][1:]
    told = bool(limits[1][1] > 0 and low > tried[1] and high * SEEN <= longest)
    return Decay(limits[0], limits[1], limits[2], rmse, told)


def _limits(estimate: float, refits: Array, clusters: int) -> tuple[float, float, float]:
    from scipy.special import stdtrit

    low, high = np.nanquantile(refits, [0.025, 0.975])
    stretch = float(stdtrit(clusters - 1, 0.975)) / 1.959964
    return estimate, estimate - (estimate - float(low)) * stretch, estimate + (float(high) - estimate) * stretch
