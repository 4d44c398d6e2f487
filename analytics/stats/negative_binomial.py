"""Counts against their own baseline: overdispersed (negative binomial), robust against the bursts looked for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analytics.stats.smoothed import Array

ROUNDS, TRIMMED_P = 6, 1e-3
"""Rounds of leaving out cells that the others make less likely than this: bursts must not be their own baseline."""
SHRINK = 20.0
"""Cells that a series' own dispersion needs to weigh as much as that of all."""
MANY, PER_BLOCK = 40, 5
"""With so many events the first rate is the median over blocks of so many: half of the time may be a burst."""

RATIOS, GRID = (1e-2, 1e3), 60
"""Smallest and (at least) largest ratio of the prior, and steps between: 21 % each."""
PRIOR_CELLS, STEPS, MOST_CELLS = 10.0, 60, 4_000


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was to be expected of counts, all of shape (series, buckets); nan where there was no exposure.

    `p` is the chance of a count so high or higher; `dispersion` (series,) the alpha of variance = E + alpha E^2.
    """

    expected: Array
    dispersion: Array
    p: Array


def baseline(counts: NDArray[np.float64], exposure: NDArray[np.float64]) -> Baseline:
    """Fit a rate a series, leaving each cell out of its own expectation, and a dispersion shrunk to that of all.

    Moment estimator of the dispersion: sum((y - E)^2 - E) / sum(E^2). Half an event is added to a series' total, so
    that a first event ever is rare, not impossible.
    """
    kept = exposure > 0
    rate = np.array([_first_rate(y, n) for y, n in zip(counts, exposure, strict=True)])
    expected = rate[:, None] * exposure
    dispersion = np.zeros(len(counts))
    p = tail(counts, expected, dispersion)
    for _ in range(ROUNDS):
        before = kept
        kept = (exposure > 0) & (p > TRIMMED_P)
        total_y, total_n = (np.where(kept, part, 0).sum(axis=1, keepdims=True) for part in (counts, exposure))
        others_y, others_n = total_y - np.where(kept, counts, 0), total_n - np.where(kept, exposure, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = np.where(exposure > 0, (others_y + 0.5) / others_n * exposure, np.nan)
        dispersion = _dispersion(counts, expected, kept)
        p = tail(counts, expected, dispersion)
        if (kept == before).all():
            break
    return Baseline(expected, dispersion, p)


def _first_rate(y: Array, n: Array) -> float:
    """Return a rate that a burst does not carry away: the median over blocks, else the mean."""
    events, exposure = float(y.sum()), float(n.sum())
    if not exposure:
        return 0.0
    if events >= MANY:
        blocks = int(min(len(y), max(8, events // PER_BLOCK)))
        starts = np.linspace(0, len(y), blocks, endpoint=False).astype(int)
        y_blocks, n_blocks = np.add.reduceat(y, starts), np.add.reduceat(n, starts)
        events = float(np.median(y_blocks[n_blocks > 0] / n_blocks[n_blocks > 0])) * exposure
    return (events + 0.5) / exposure


def _dispersion(counts: Array, expected: Array, kept: NDArray[np.bool_]) -> Array:
    usable = kept & np.isfinite(expected)
    filled = np.where(usable, expected, 0.0)
    surplus = np.where(usable, (counts - filled) ** 2 - filled, 0.0).sum(axis=1)
    squares = (filled**2).sum(axis=1)
    common = max(surplus.sum() / squares.sum(), 0.0) if squares.sum() else 0.0
    own = np.where(squares > 0, surplus / np.where(squares > 0, squares, 1.0), common)
    weight = (filled >= 0.5).sum(axis=1)
    return np.asarray(np.maximum((weight * own + SHRINK * common) / (weight + SHRINK), 0.0))


def tail(counts: Array, expected: Array, dispersion: Array) -> Array:
    """P(Y >= count) of a negative binomial with this mean and dispersion (Poisson where that is 0); nan as expected."""
    alpha = np.broadcast_to(dispersion[:, None], counts.shape)
    safe = np.where(np.isfinite(expected) & (expected > 0), expected, 1.0)
    size = 1 / np.where(alpha > 0, alpha, 1.0)
    spread = stats.nbinom.sf(counts - 1, size, size / (size + safe))
    p = np.where(alpha > 0, spread, stats.poisson.sf(counts - 1, safe))
    return np.where(np.isfinite(expected) & (expected > 0), p, np.nan)


def adjusted(p: Array) -> Array:
    """Benjamini-Hochberg adjusted p over all that are not nan (Benjamini & Hochberg 1995)."""
    made = np.full(p.shape, np.nan)
    known = np.isfinite(p)
    if known.any():
        made[known] = stats.false_discovery_control(p[known])
    return made


def shrunk_ratio(counts: Array, expected: Array) -> Array:
    """Posterior mean of count over expectation, under a prior of such ratios that is estimated from all cells.

    The prior is weights on a grid of ratios, by expectation maximisation (Laird 1978; Koenker & Mizera 2014), so that
    calm cells keep calm and the few large ratios keep theirs, which one gamma cannot. An exponential prior of mean 1
    counts as PRIOR_CELLS more cells and is all there is where cells are few; no cell is part of its own prior, unless
    there are thousands. nan as expected.
    """
    known = np.isfinite(expected) & (expected > 0)
    made = np.full(counts.shape, np.nan)
    if not known.any():
        return made
    y, e = counts[known], expected[known]
    top = max(RATIOS[1], 2.0 * float((y / e).max()))
    grid = np.geomspace(RATIOS[0], top, GRID)
    assumed = grid * np.exp(-grid)  # of an exponential, per step of the logarithm
    assumed /= assumed.sum()
    step = -(-y.size // MOST_CELLS)
    weights, own = _prior(_likelihood(y[::step], e[::step], grid), assumed)
    others = weights - own if step == 1 else weights
    for start in range(0, y.size, MOST_CELLS):
        part = slice(start, start + MOST_CELLS)
        posterior = _likelihood(y[part], e[part], grid) * others
        y[part] = (posterior @ grid) / posterior.sum(axis=1)
    made[known] = y
    return made


def _likelihood(y: Array, expected: Array, grid: Array) -> Array:
    """Poisson likelihood of each cell at each ratio, relative to the largest of the cell."""
    log = y[:, None] * np.log(grid) - expected[:, None] * grid
    return np.asarray(np.exp(log - log.max(axis=1, keepdims=True)))


def _prior(likelihood: Array, assumed: Array) -> tuple[Array, Array]:
    """Cells that lie at each ratio, those of the assumed prior included, and the part of each cell in that."""
    weights, own = assumed, likelihood
    for _ in range(STEPS):
        own = likelihood * weights
        own /= own.sum(axis=1, keepdims=True)
        weights = own.sum(axis=0) + PRIOR_CELLS * assumed
    return weights, own
