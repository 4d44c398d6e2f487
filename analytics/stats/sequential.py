"""A test that may be looked at at any time: the mixture sequential probability ratio test on two proportions.

Robbins 1970; Johari, Koomen, Pekelis & Walsh 2017 ("Peeking at A/B tests"). With d the difference of the proportions
and V its variance, the likelihood ratio mixed over effects N(0, tau^2) is sqrt(V / (V + tau^2)) exp(tau^2 d^2 /
(2 V (V + tau^2))). Under no difference it exceeds 1 / alpha at any look with probability alpha at most.
"""

import numpy as np

from analytics.stats.smoothed import Array

TAU_SQUARED = 1e-4
"""Variance of the effects expected: differences of a percentage point in how often P99 is exceeded."""
FEWEST_HITS = 5
"""Hits in both arms together below which the variance is not known."""


def log_ratio(
    hits_a: Array, n_a: Array, hits_b: Array, n_b: Array, design_effect: float = 1.0, tau_squared: float = TAU_SQUARED
) -> Array:
    """Logarithm of the mixture likelihood ratio at each look; 0 (no evidence) where there are too few hits.

    Looks are cumulative counts. `design_effect` says by how much clustering inflates the variance.
    """
    a, b = (np.asarray(x, dtype=np.float64) for x in (n_a, n_b))
    with np.errstate(invalid="ignore", divide="ignore"):
        pooled = (hits_a + hits_b) / (a + b)
        variance = pooled * (1 - pooled) * (1 / a + 1 / b) * design_effect
        difference = hits_b / b - hits_a / a
        spread = variance + tau_squared
        made = 0.5 * np.log(variance / spread) + tau_squared * difference**2 / (2 * variance * spread)
    enough = (np.asarray(hits_a) + hits_b >= FEWEST_HITS) & np.isfinite(made)
    return np.where(enough, made, 0.0)


def always_valid_p(log_ratios: Array) -> Array:
    """p-value at each look, however many looks there were: the smallest 1 / ratio so far."""
    return np.minimum.accumulate(np.exp(-np.maximum(log_ratios, 0.0))) if log_ratios.size else log_ratios
