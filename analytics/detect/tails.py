"""How often a series would by itself reach a value: the probability of its tail, from the outermost values before.

Beyond a high order statistic most tails fall exponentially on a linear scale (Gaussian and exponential ones) or on a
logarithmic one (Pareto); the larger probability of the two counts, so that heavy tails do not page.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OUTERMOST = 20
"""Values that the mean excess is taken from, a fifth of them where there are few: how uncertain that is, is in the
result."""
LEAST = 40
"""Values before, with fewer of which there is no probability."""


def tail_probability(before: Floats, value: float) -> float:
    """Probability that one more value is as far out as `value`, given those before; 1.0 where there are too few.

    (k/n) (1 + y / (k e))^-k with y the excess over the k-th outermost value and e the mean excess of the k: the
    predictive distribution of an exponential tail (Lomax). Of a value within the bulk: the share beyond it.
    """
    known = before[~np.isnan(before)]
    if known.size < LEAST:
        return 1.0
    middle = float(np.median(known))
    size = float(np.median(np.abs(known)))
    out, away = (known, value) if value >= middle else (-known, -value)
    found = _exponential(out, away)
    if size > 0:
        found = max(found, _exponential(np.arcsinh(out / size), float(np.arcsinh(away / size))))
    return found


def _exponential(known: Floats, value: float) -> float:
    count = min(OUTERMOST, known.size // 5)
    outer = np.partition(known, known.size - count - 1)[known.size - count - 1 :]
    edge = float(outer.min())
    excess = float(outer.mean() - edge) * (count + 1) / count
    if value <= edge:
        return float((known >= value).mean())
    if excess <= 0:
        return float(1.0 / known.size)
    return float(count / known.size * (1.0 + (value - edge) / (count * excess)) ** -count)
