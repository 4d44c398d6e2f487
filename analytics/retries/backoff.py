"""Back-off of clients from the waits that were seen: base x factor^k up to a cap, with jitter around it.

The mean wait before each retry is fitted in logarithms, weighted by how many were seen: a line, or a line that becomes
flat, whichever has the lower BIC (Schwarz 1978). Means, since jitter is uniform in all common libraries: a client with
full jitter up to 10 s shows a mean of 5 s and jitter 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LEAST_GAPS = 10
LEAST_OF_ONE = 3
"""Waits before the k-th retry that its mean needs."""
FAR = 5.0
"""Waits beyond this multiple of the median of their kind are no back-off (full jitter reaches 2)."""
_LEAST_SPREAD = 0.01  # timers and scheduling move a wait by about 1 %
_MISFIT = 0.001


@dataclass(frozen=True, slots=True)
class Limits:
    """An estimate with its 95 % limits."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Backoff:
    """A fitted back-off; what the waits do not tell is None."""

    gaps: int
    verdict: str
    base: Limits | None = None
    factor: Limits | None = None
    cap: Limits | None = None
    jitter: float | None = None


def fit(waits: Array, resamples: int, seed: int) -> Backoff:
    """Fit a matrix of waits (s): a row per sequence, a column per retry, nan where there was none.

    Limits are percentiles of a bootstrap over sequences. Refuses in words with fewer than LEAST_GAPS waits.
    """
    waits = _usual(waits)
    seen = np.isfinite(waits)
    enough = np.cumprod(seen.sum(axis=0) >= LEAST_OF_ONE).astype(bool)
    waits, seen = waits[:, enough], seen[:, enough]
    gaps = int(seen.sum())
    if gaps < LEAST_GAPS:
        return Backoff(gaps, f"{gaps} waits seen often enough; a fit needs {LEAST_GAPS}")
    size = seen.sum(axis=0).astype(np.float64)
    mean = np.nansum(waits, axis=0) / size
    if not (mean > 0).all():
        return Backoff(gaps, "retried at once: no back-off")
    spread = _spread(waits, mean, gaps)
    knee, misfit = _choose(np.log(mean), size, max(spread, _LEAST_SPREAD))
    drawn = _resampled(waits, seen, resamples, seed)
    best = _estimates(np.log(mean)[None, :], size, knee)[0]
    many = _estimates(drawn, size, knee)
    known = np.isfinite(best)  # not the cap, where there is none
    low, high = np.full((2, best.size), np.nan)
    low[known], high[known] = np.quantile(many[:, known], (0.025, 0.975), axis=0)
    base, factor, cap = (Limits(float(v), float(a), float(b)) for v, a, b in zip(best, low, high, strict=True))
    several = mean.size > 1
    verdict = "ok" if not misfit else "waits do not grow as a power: base and factor describe them roughly"
    return Backoff(
        gaps,
        verdict if several else "only first retries seen often enough: no factor",
        base,
        factor if several else None,
        cap if several and knee < mean.size else None,
        min(1.0, float(np.sqrt(3.0)) * spread),
    )


def _usual(waits: Array) -> Array:
    """Leave out waits far beyond the median of their retry: another reason than back-off, or another request."""
    if not waits.size or not np.isfinite(waits).any():
        return np.full((0, 0), np.nan)
    with np.errstate(all="ignore"):
        middle = np.array([np.median(c[np.isfinite(c)]) if np.isfinite(c).any() else np.nan for c in waits.T])
        return np.where(waits <= np.maximum(FAR * middle, 1e-9), waits, np.nan)


def _spread(waits: Array, mean: Array, gaps: int) -> float:
    """Relative standard deviation around the means."""
    rest = waits / mean - 1.0
    return float(np.sqrt(np.nansum(np.square(rest)) / max(gaps - mean.size, 1)))


def _choose(log_mean: Array, size: Array, spread: float) -> tuple[int, bool]:
    """Return how many retries the waits grow for (all: no cap), and whether even the better curve does not fit."""
    from scipy.stats import chi2

    total = log_mean.size
    worth = {knee: _misfit(log_mean, size, spread, knee) for knee in (total, *range(2, total - 1))}
    capped = min((knee for knee in worth if knee < total), key=lambda knee: worth[knee], default=total)
    penalty = 2.0 * float(np.log(size.sum()))  # the height and the place of the knee
    rises = _estimates(log_mean[None, :], size, capped)[0][1] > 1.0
    knee = capped if capped < total and rises and worth[capped] + penalty < worth[total] else total
    degrees = total - (2 if knee == total else 4)
    return knee, degrees > 0 and float(chi2.sf(worth[knee], degrees)) < _MISFIT


def _misfit(log_mean: Array, size: Array, spread: float, knee: int) -> float:
    base, factor, cap = _estimates(log_mean[None, :], size, knee)[0]
    steps = np.arange(log_mean.size)
    curve = np.log(base) + steps * np.log(factor)
    curve = np.where(steps >= knee, np.log(cap), curve)
    return float((size * np.square(log_mean - curve)).sum() / spread**2)


def _estimates(log_means: Array, size: Array, knee: int) -> Array:
    """Estimate base, factor and cap of each row of log means: weighted least squares up to the knee, a mean beyond."""
    steps = np.arange(log_means.shape[1], dtype=np.float64)
    rising, weight = steps[:knee], size[:knee]
    centre = float(weight @ rising) / float(weight.sum())
    spread = float(weight @ np.square(rising - centre))
    middle = log_means[:, :knee] @ weight / weight.sum()
    slope = log_means[:, :knee] @ (weight * (rising - centre)) / spread if spread > 0 else np.zeros(len(log_means))
    flat = log_means[:, knee:] @ size[knee:] / size[knee:].sum() if knee < steps.size else middle * np.nan
    return np.asarray(np.exp(np.column_stack([middle - slope * centre, slope, flat])))


def _resampled(waits: Array, seen: NDArray[np.bool_], resamples: int, seed: int) -> Array:
    """Log means of resamples of whole sequences, at most 20,000 of them."""
    rng = np.random.default_rng(seed)
    if len(waits) > 20_000:
        kept = rng.choice(len(waits), 20_000, replace=False)
        waits, seen = waits[kept], seen[kept]
    counts = rng.multinomial(len(waits), np.full(len(waits), 1.0 / len(waits)), size=resamples)
    sums, sizes = counts @ np.nan_to_num(waits), counts @ seen.astype(np.float64)
    with np.errstate(all="ignore"):
        drawn = np.log(sums / sizes)
    whole = np.isfinite(drawn).all(axis=1)
    return drawn[whole] if whole.any() else drawn[:1] * np.nan
