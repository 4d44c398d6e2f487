"""How long things last where many are still there when one stops looking: the product-limit estimate.

Kaplan & Meier 1958; limits on the log(-log) scale from Greenwood's variance, as survival packages print them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Survival:
    """Share that lasts longer than each age at which something ended, rising ages; `at_risk` were seen that old."""

    age: Array
    at_risk: Array
    share: Array
    low: Array
    high: Array

    def at(self, age: Any) -> Array:
        """Share that lasts longer than an age; 1 before the first end."""
        found: Array = np.append(1.0, self.share)[np.searchsorted(self.age, age, side="right")]
        return found

    def quantile(self, q: float) -> float | None:
        """Age that a share q of things does not pass; None where too few were seen to end."""
        below = np.flatnonzero(self.share <= 1 - q + 1e-12)
        return float(self.age[below[0]]) if below.size else None


def survival(age: Array, ended: NDArray[np.bool_]) -> Survival:
    """Estimate from ages at the end, or at the last look where not `ended`; ends come before looks of the same age."""
    order = np.argsort(age, kind="stable")
    ages, first = np.unique(age[order], return_index=True)
    ends = np.add.reduceat(ended[order].astype(np.float64), first) if len(age) else np.zeros(0)
    risk = len(age) - first.astype(np.float64)
    some = ends > 0
    ages, ends, risk = ages[some], ends[some], risk[some]
    share = np.asarray(np.cumprod(1 - ends / risk), np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(np.cumsum(ends / (risk * (risk - ends)))) / np.log(share)
        low, high = share ** np.exp(-_Z * spread), share ** np.exp(_Z * spread)
    known = (share > 0) & (share < 1)
    return Survival(
        ages, np.asarray(risk, np.float64), share, np.where(known, low, np.nan), np.where(known, high, np.nan)
    )
