"""Sequence numbers of one stream: what was seen, what is missing, and when the engine began again."""

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum

REMEMBERED = 20_000
"""Messages whose time is remembered, to tell a copy from a new run: twice what vLLM keeps for replay by default."""


class Seen(Enum):
    """What a message turned out to be."""

    NEW = "new"
    COPY = "copy"
    RESTARTED = "restarted"  # new as well, and the first one seen of a new run


@dataclass(slots=True)
class Ranges:
    """A set of whole numbers as sorted, disjoint, half-open ranges that do not touch."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.starts, number) - 1
        return at >= 0 and number < self.ends[at]

    def add(self, low: int, high: int) -> None:
        """Add low … high-1."""
        first = bisect_right(self.ends, low - 1)
        last = bisect_right(self.starts, high)
        if first < last:
            low, high = min(low, self.starts[first]), max(high, self.ends[last - 1])
        self.starts[first:last] = [low]
        self.ends[first:last] = [high]

    def holes(self) -> list[tuple[int, int]]:
        """Return the ranges between the ranges."""
        return list(zip(self.ends[:-1], self.starts[1:], strict=True))


@dataclass(slots=True)
class Cursor:
    """Follows one stream; `lost` counts the messages that never came.

    Live messages come in order and never twice; replayed ones may come late and again.
    """

    live: int | None = None
    seen: Ranges = field(default_factory=Ranges)
    times: dict[int, float] = field(default_factory=dict)
    lost: int = 0

    @property
    def top(self) -> int | None:
        """Largest number seen of this run."""
        return self.seen.ends[-1] - 1 if self.seen.ends else None

    def take(self, sequence: int, ts_s: float | None, *, live: bool) -> Seen:
        """Take note of a message and tell what it is; `ts_s` is None where it cannot be read.

        A number that comes again at another time, or one that is not above the last live one, is of a new run: the
        numbers of an engine begin with 0 at each start.
        """
        known = self.times.get(sequence)
        again = live and self.live is not None and sequence <= self.live
        restarted = again or (known is not None and ts_s is not None and known != ts_s)
        if restarted:
            self._begin(None if live else sequence)
        elif sequence in self.seen:
            if live:
                self.live = sequence
            return Seen.COPY
        self.seen.add(sequence, sequence + 1)
        if ts_s is not None:
            self._remember(sequence, ts_s)
        if live:
            self.live = sequence
        return Seen.RESTARTED if restarted else Seen.NEW

    def missing(self) -> int:
        """How many messages of this run are missing between those seen."""
        return sum(high - low for low, high in self.seen.holes())

    def give_up(self, below: int) -> None:
        """Take what is missing below a number for lost."""
        for low, high in self.seen.holes():
            if low < below:
                end = min(high, below)
                self.seen.add(low, end)
                self.lost += end - low

    def _begin(self, below: int | None) -> None:
        """Forget the run before. What is missing of it is lost; from `below` on it may never have been sent."""
        self.lost += sum(high - low for low, high in self.seen.holes() if below is None or low < below)
        self.live = None
        self.seen = Ranges([-1], [0])  # what comes before the first one seen of this run is missing
        self.times.clear()

    def _remember(self, sequence: int, ts_s: float) -> None:
        self.times[sequence] = ts_s
        if len(self.times) > REMEMBERED:
            del self.times[next(iter(self.times))]
