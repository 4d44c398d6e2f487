"""Points of a bill in as few stretches as possible, each on one line: which points must belong together, and what else.

Whether a stretch fits a line only gets harder with more points. So the longest stretches from the left give the fewest
there can be; from the right, the same number with the earliest ends. Points between those two are the core of a
stretch: they are in it however the bill is cut into so few.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from analytics.tiers.lines import Array, Lines, lines, origin_reach, reach

MOST = 12
"""Stretches above which points follow no schedule of a few tiers."""
Cut = tuple[tuple[int, int], ...]
"""First and last point of each stretch."""


@dataclass(frozen=True)
class Segments:
    """Points of rising quantity with the cost each may have had before rounding, cut into the fewest lines.

    `origin` asks for lines through 0. `early` and `late` hold the last point of each stretch, cut from the right and
    from the left; both are empty where more than 12 stretches are needed.
    """

    q: Array
    low: Array
    high: Array
    origin: bool = False
    _lines: dict[tuple[int, int], Lines | None] = field(default_factory=dict, repr=False)
    _reach: dict[int, int] = field(default_factory=dict, repr=False)

    def reach(self, first: int) -> int:
        """Return the last point of the longest stretch that begins at `first`."""
        if first not in self._reach:
            ask = origin_reach if self.origin else reach
            self._reach[first] = ask(self.q, self.low, self.high, first)
        return self._reach[first]

    def line(self, first: int, last: int) -> Lines | None:
        """Return all lines through points first to last."""
        key = first, last
        if key not in self._lines:
            self._lines[key] = lines(*(x[first : last + 1] for x in (self.q, self.low, self.high)))
        return self._lines[key]

    @cached_property
    def late(self) -> list[int]:
        """Last point of each stretch, as late as can be."""
        return _longest(self.q.size, self.reach)

    @cached_property
    def early(self) -> list[int]:
        """Last point of each stretch, as early as can be with so few of them."""
        n = self.q.size
        low, high = self.low[::-1], self.high[::-1]
        if self.origin:  # from the right, the stretch that ends here: the same ratios in the other order
            found = _longest(n, lambda first: origin_reach(self.q[::-1], low, high, first))
        else:
            found = _longest(n, lambda first: reach(-self.q[::-1], low, high, first))
        return [n - 2 - end for end in reversed(found[:-1])] + [n - 1] if found else []

    def core(self, k: int) -> tuple[int, int]:
        """First and last point that stretch k has in every cut; last < first where it has none."""
        return (self.late[k - 1] + 1 if k else 0), self.early[k]

    def cuts(self, most: int) -> Iterator[Cut]:
        """Yield cuts into so few stretches, at most so many, those with the longest first stretches first."""
        left = [most]

        def go(k: int, first: int) -> Iterator[Cut]:
            if k == len(self.late) - 1:
                left[0] -= 1
                yield ((first, self.late[k]),)
                return
            for last in range(min(self.late[k], self.reach(first)), max(self.early[k], first) - 1, -1):
                if left[0] <= 0:
                    return
                for rest in go(k + 1, last + 1):
                    yield ((first, last), *rest)

        if self.late:
            yield from go(0, 0)


def _longest(n: int, reached: Callable[[int], int]) -> list[int]:
    ends: list[int] = []
    first = 0
    while first < n:
        if len(ends) == MOST:
            return []
        ends.append(reached(first))
        first = ends[-1] + 1
    return ends
