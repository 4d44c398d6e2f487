"""At which concurrency a request is cheapest: a fit of unit cost over the logarithm of concurrency.

The fit falls and then rises (unimodal), and is convex where it is near its minimum: on the logarithm both a fixed cost
shared by more requests (1/c) and a rise with a power of c are. Convex everywhere would misplace the minimum where the
rise levels off (by 17 % in simulation), and unimodal alone has steps, so no one point.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.stats import convex, unimodal

Array = NDArray[np.float64]
LEAST_HOURS = 48
LEAST_RANGE = 2.0
"""Ratio of the 95th to the 5th percentile of concurrency, below which a curve is a guess."""
FOUND = "found"


@dataclass(frozen=True, slots=True)
class Curve:
    """Knots (concurrency, ascending) and the fitted unit cost there."""

    concurrency: Array
    cost: Array

    @property
    def at(self) -> int:
        """Knot with the least cost; the middle one where several have it."""
        least = np.flatnonzero(self.cost <= self.cost.min() * (1 + 1e-9))
        return int(least[least.size // 2])

    @property
    def beside(self) -> tuple[float, float]:
        """Knots beside the cheapest one: where in between it lies, hours of so much concurrency do not say."""
        return float(self.concurrency[max(self.at - 1, 0)]), float(
            self.concurrency[min(self.at + 1, self.cost.size - 1)]
        )

    @property
    def growth(self) -> float:
        """Rise from the cheapest to the highest concurrency, over the cheapest."""
        return float(self.cost[-1] / self.cost[self.at] - 1.0)

    @property
    def fall(self) -> float:
        """Fall from the lowest concurrency to the cheapest, over the cheapest."""
        return float(self.cost[0] / self.cost[self.at] - 1.0)


NEAR = 1.25
"""Fitted cost over the least, up to which the fit is convex."""


def curve(concurrency: Array, cost: Array) -> Curve:
    """Fit; errors are taken as relative to the cost, so points are weighted by a first fit."""
    x, y, size = convex.binned(np.log(concurrency), cost, np.ones(cost.size))
    floor = 1e-3 * float(np.abs(y).max())
    fitted = y
    for _ in range(2):
        fitted = unimodal.fit(y, size / np.maximum(fitted, floor) ** 2)
    near = np.flatnonzero(fitted <= fitted.min() * NEAR)
    part = slice(max(near[0] - 1, 0), near[-1] + 2)
    weight = size / np.maximum(fitted, floor) ** 2
    fitted[part] = convex.fit(x[part], y[part], weight[part])
    return Curve(np.exp(x), np.maximum(fitted, 1e-12))


def cheapest(concurrency: Array, cost: Array, resamples: int, seed: int) -> dict[str, Any]:
    """Row of the frame `cheapest`; hours in order of time."""
    n = concurrency.size
    row: dict[str, Any] = {"hours": n}
    if n < LEAST_HOURS:
        return row | {"verdict": f"no answer below {LEAST_HOURS} hours with cost and requests"}
    low, high = np.quantile(concurrency, (0.05, 0.95))
    if not low > 0 or high / low < LEAST_RANGE:
        return row | {
            "verdict": f"no answer: concurrency varied by less than {LEAST_RANGE:g} times ({low:.3g} to {high:.3g})"
        }
    if not (cost > 0).any():
        return row | {"verdict": "no answer: these hours cost nothing"}
    found = curve(concurrency, cost)
    drawn = [curve(concurrency[i], cost[i]) for i in _blocks(n, resamples, seed)]
    low, high = (
        np.quantile([one.beside[0] for one in drawn], 0.025),
        np.quantile([one.beside[1] for one in drawn], 0.975),
    )
    growth = np.quantile([one.growth for one in drawn], (0.025, 0.975))
    row |= {
        "lowest": float(found.concurrency[0]), "highest": float(found.concurrency[-1]),
    }  # fmt: skip
    fall_low = float(np.quantile([one.fall for one in drawn], 0.025))
    verdict = _verdict(float(growth[0]), fall_low)
    if verdict != FOUND:
        return row | {"verdict": verdict}
    return row | {
        "concurrency": float(found.concurrency[found.at]), "low": float(low), "high": float(high),
        "unit_cost": float(found.cost[found.at]), "growth": found.growth,
        "growth_low": float(growth[0]), "growth_high": float(growth[1]), "verdict": FOUND,
    }  # fmt: skip


LEAST_BEND = 0.02
"""Rise on either side, over the cheapest, that makes it a minimum: less is a flat curve with an edge."""


def _verdict(growth_low: float, fall_low: float) -> str:
    if growth_low > LEAST_BEND and fall_low > LEAST_BEND:
        return FOUND
    if fall_low > LEAST_BEND:
        return "no minimum within what was seen: cost per request falls, or lies flat, up to the highest concurrency"
    if growth_low > LEAST_BEND:
        return "no minimum within what was seen: cost per request rises, or lies flat, from the lowest concurrency"
    return "no minimum: cost per request does not depend on concurrency as far as these hours show"


def _blocks(n: int, resamples: int, seed: int) -> NDArray[np.intp]:
    """Draw hours in blocks, since neighbours are alike: of a day where there are ten or more, else of six hours."""
    length = 24 if n >= 240 else 6
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, n - length + 1, (resamples, -(-n // length)))
    return (starts[:, :, None] + np.arange(length)).reshape(resamples, -1)[:, :n]
