"""Exponential (native) histograms as classic buckets that stay the same series while the sender changes its scale.

Every bound lies on one grid of four buckets to a power of two: neighbours are a factor of 2^(1/4) apart, so a quantile
read from the buckets is at most 19 % off, and 9 % from the middle of its bucket. Finer buckets of a sender fall
together exactly; coarser ones keep their own bounds, which are on the grid too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from collector.push.columns import STALE_NAN

SCALE = 2
"""Scale (schema) of the grid: the upper bound with index u is 2^(u / 2^SCALE)."""

Edge = tuple[int, float]
"""Upper bound of a classic bucket: (1, u) is 2^(u/4) for a grid index u, (-1, u) is -2^(u/4), (0, x) is x itself."""


@dataclass(slots=True)
class Buckets:
    """Counts by the upper edge of their absolute value on the grid. `step` is the width of a bucket in grid indexes.

    `zero` counts values within +-`threshold`.
    """

    step: int = 1
    zero: float = 0.0
    threshold: float = 0.0
    positive: dict[int, float] = field(default_factory=dict)
    negative: dict[int, float] = field(default_factory=dict)

    def plus(self, other: "Buckets") -> "Buckets":
        """Return the sum of both; the coarser of their steps and the wider zero bucket hold for it."""
        total = Buckets(max(self.step, other.step), self.zero + other.zero, max(self.threshold, other.threshold))
        for part in (self, other):
            total._take(total.positive, part.positive)
            total._take(total.negative, part.negative)
        return total

    def _take(self, into: dict[int, float], counts: Mapping[int, float]) -> None:
        """Add counts at this object's step; those within its threshold to the zero bucket."""
        for upper, count in counts.items():
            coarse = -(-upper // self.step) * self.step
            if bound(coarse) <= self.threshold:
                self.zero += count
            else:
                into[coarse] = into.get(coarse, 0) + count

    def edges(self) -> set[Edge]:
        """Return both bounds of every bucket that counted something, so that interpolation stays inside it."""
        found: set[Edge] = set()
        for sign, counts in ((1, self.positive), (-1, self.negative)):
            for upper in counts:
                found |= {(sign, u) for u in (upper, upper - self.step) if self.threshold < bound(u) < inf}
        if self.zero or self.negative:
            found.add((0, self.threshold))
        return found

    def cumulative(self, edges: Iterable[Edge]) -> dict[Edge, float]:
        """Return how many values are at or below each edge, in ascending order of the edges."""
        below_zero = sum(self.negative.values())
        rising = sorted(self.positive.items())
        falling = sorted(self.negative.items(), reverse=True)
        found: dict[Edge, float] = {}
        at, counted = 0, 0.0
        for edge in sorted((e for e in edges if e[0] < 0), key=lambda e: -e[1]):
            while at < len(falling) and falling[at][0] > edge[1]:
                counted += falling[at][1]
                at += 1
            found[edge] = counted
        found |= {edge: below_zero + self.zero for edge in edges if edge[0] == 0}
        at, counted = 0, below_zero + self.zero
        for edge in sorted(e for e in edges if e[0] > 0):
            while at < len(rising) and rising[at][0] <= edge[1]:
                counted += rising[at][1]
                at += 1
            found[edge] = counted
        return found


def on_grid(
    scale: int,
    zero: float,
    threshold: float,
    positive: Iterable[tuple[int, float]],
    negative: Iterable[tuple[int, float]] = (),
) -> Buckets:
    """Return buckets of any scale on the grid; `positive` and `negative` are (index of the upper bound, count).

    In OpenTelemetry's terms the index of the upper bound is the bucket's index plus one, in Prometheus' the index.
    """
    step = 1 << max(0, SCALE - scale)
    made = Buckets(step, zero, threshold)
    for counts, part in ((made.positive, positive), (made.negative, negative)):
        for upper, count in part:
            if count:
                u = -(-upper >> (scale - SCALE)) if scale > SCALE else upper * step
                counts[u] = counts.get(u, 0) + count
    return made


def bound(index: float) -> float:
    """Return the bound with a grid index; infinity beyond the largest number."""
    try:
        return float(2.0 ** (index / (1 << SCALE)))
    except OverflowError:
        return inf


def le(edge: Edge) -> str:
    """Return the text of the label le."""
    sign, at = edge
    return number_text(sign * bound(at) if sign else at)


def number_text(value: float) -> str:
    """Return a bound as Prometheus writes it: 1 and not 1.0, +Inf."""
    if value == inf:
        return "+Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


class Shown(NamedTuple):
    """Counts at all bounds of a point; counts at bounds that are new with it, as they were at the point before."""

    now: dict[Edge, float]
    before: dict[Edge, float]
    before_at: int


@dataclass(slots=True)
class ClassicBuckets:
    """The bounds that one histogram has shown so far. Once shown, a bound is shown with every point."""

    shown: set[Edge] = field(default_factory=set)
    _at: int = 0
    _last: Buckets | None = None
    _before: tuple[dict[Edge, float], int] = field(default_factory=lambda: ({}, 0))

    def update(self, now: Buckets, at: int) -> Shown:
        """Return the counts of a point at time `at`; the last point once more gives the same again.

        STALE_NAN for a bound that ends, because the sender's buckets became wider than its distance to the next.
        """
        ended = {e for e in self.shown if (e[0] and e[1] % now.step) or (not e[0] and e[1] < now.threshold)}
        if at != self._at:
            new = now.edges() - self.shown
            known = self._last is not None and self._last.step <= now.step
            self._before = (self._last.cumulative(new) if self._last and known else {}), self._at
            self.shown = (self.shown | new) - ended
            self._last, self._at = now, at
        return Shown(now.cumulative(self.shown) | dict.fromkeys(ended, STALE_NAN), *self._before)

    def end(self) -> None:
        """Take note that the histogram ended: what comes next has no point before it."""
        self._last = None
