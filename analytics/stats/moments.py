"""Count, mean and sum of squared deviations, which merge exactly (Chan, Golub & LeVeque 1983)."""

from collections.abc import Iterable
from typing import NamedTuple


class Moments(NamedTuple):
    """Of n values: their mean, and `m2`, the sum of squared deviations from it."""

    n: int = 0
    mean: float = 0.0
    m2: float = 0.0

    def add(self, value: float) -> "Moments":
        """Return the moments with one value more (Welford 1962)."""
        return self.merge(Moments(1, value, 0.0))

    def merge(self, other: "Moments") -> "Moments":
        """Return the moments of both sets of values."""
        n = self.n + other.n
        if not n:
            return self
        delta = other.mean - self.mean
        mean = self.mean + delta * other.n / n
        return Moments(n, mean, self.m2 + other.m2 + delta * delta * self.n * other.n / n)

    @property
    def variance(self) -> float | None:
        """Sample variance (n - 1); None below two values."""
        return self.m2 / (self.n - 1) if self.n > 1 else None


def of(values: Iterable[float]) -> Moments:
    """Return the moments of values, one pass."""
    made = Moments()
    for value in values:
        made = made.add(value)
    return made
