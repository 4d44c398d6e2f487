"""One metric stream of OTLP: its points as samples of classic series, deltas added up.

A stream that is new here starts at its stated start with zero, so that the increase of its first point counts. Deltas
of a stream that was forgotten (or of a restarted receiver) start from zero again, which reads as a counter reset.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import inf
from typing import Any

from collector.push.columns import STALE_NAN
from collector.push.exponential import Buckets, ClassicBuckets, le, number_text, on_grid

DELTA, CUMULATIVE = 1, 2
NO_VALUE = 1
"""Flag of a point that says only that its series ended."""
_SCALES = range(-10, 21)

Part = tuple[str, str, str]
"""Suffix of the name, and a label with its value ('' for none)."""
Emitted = tuple[Part, int, float, int]
"""Part, time and value of a sample, and the start of its count (0: not known); times in us."""
VALUE, SUM, COUNT, INFINITE = ("", "", ""), ("_sum", "", ""), ("_count", "", ""), ("_bucket", "le", "+Inf")


class RejectedError(Exception):
    """A point that cannot be stored; its text is the reason it is counted under."""


@dataclass(slots=True, eq=False)
class Stream:
    """What is remembered of a stream: its last point, and for deltas the totals. Compared by identity."""

    delta: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    last_us: int = 0
    first_us: int = 0
    total: float = 0
    count: float = 0
    bounds: tuple[float, ...] = ()
    counts: Sequence[float] = ()
    buckets: Buckets = field(default_factory=Buckets)
    shown: ClassicBuckets = field(default_factory=ClassicBuckets)
    parts: list[Part] = field(default_factory=list)

    def number(self, point: Any, *, counts: bool) -> Iterator[Emitted]:
        """Return the sample of a gauge or sum; `counts` for one that only rises. Raises RejectedError."""
        kind = point.WhichOneof("value")
        if kind is None:
            raise RejectedError("no_value")
        value = float(getattr(point, kind))
        if self._adds(point):
            self.total += value
        start_us = self._start_us(point) if counts else 0
        yield VALUE, _us(point), self.total if self.delta else value, start_us

    def histogram(self, point: Any) -> Iterator[Emitted]:
        """Return buckets, sum and count of a histogram with explicit bounds. Raises RejectedError."""
        bounds, counts = tuple(point.explicit_bounds), list(point.bucket_counts)
        rising = all(low < high for low, high in pairwise((-inf, *bounds)))
        if bounds and (len(counts) != len(bounds) + 1 or not rising):
            raise RejectedError("invalid_histogram")
        ended = [bound for bound in self.bounds if bound not in bounds] if bounds != self.bounds else []
        if self._adds(point):
            if bounds != self.bounds:
                self._restart(point)
                self.counts = counts
            else:
                self.counts = [a + b for a, b in zip(self.counts or [0] * len(counts), counts, strict=True)]
        self.bounds = bounds
        at, start_us = _us(point), self._start_us(point)
        yield from ((_bucket(number_text(bound)), at, STALE_NAN, 0) for bound in ended)
        below = accumulate(self.counts if self.delta else counts)
        finite = ((bound, n) for bound, n in zip(bounds, below, strict=False) if bound < inf)
        yield from ((_bucket(number_text(bound)), at, n, start_us) for bound, n in finite)
        yield from self._sum_and_count(point, at, start_us)

    def exponential(self, point: Any) -> Iterator[Emitted]:
        """Return buckets, sum and count of an exponential histogram. Raises RejectedError."""
        if point.scale not in _SCALES or not 0 <= point.zero_threshold < inf:
            raise RejectedError("invalid_histogram")
        positive, negative = (
            [(part.offset + i + 1, n) for i, n in enumerate(part.bucket_counts) if n]
            for part in (point.positive, point.negative)
        )
        now = on_grid(point.scale, point.zero_count, point.zero_threshold, positive, negative)
        at = _us(point)
        if self._adds(point):
            self.buckets = self.buckets.plus(now)
        shown = self.shown.update(self.buckets if self.delta else now, at)
        start_us = self._start_us(point)
        yield from ((_bucket(le(edge)), shown.before_at, n, 0) for edge, n in shown.before.items())
        yield from ((_bucket(le(edge)), at, n, start_us) for edge, n in shown.now.items())
        yield from self._sum_and_count(point, at, start_us)

    def summary(self, point: Any) -> Iterator[Emitted]:
        """Return quantiles, sum and count of a summary."""
        at, start_us = _us(point), self._start_us(point)
        for value in point.quantile_values:
            yield ("", "quantile", number_text(value.quantile)), at, value.value, 0
        yield SUM, at, point.sum, start_us
        yield COUNT, at, float(point.count), start_us

    def ends(self, point: Any) -> Iterator[Emitted]:
        """Return the end of every part that this stream has shown."""
        self.shown.end()
        return ((part, _us(point), STALE_NAN, 0) for part in self.parts)

    def moved(self, point: Any, parts: list[Part]) -> None:
        """Take note that a point is read, and which parts it had."""
        self.last_us = max(self.last_us, _us(point))
        self.parts = parts

    def _sum_and_count(self, point: Any, at: int, start_us: int) -> Iterator[Emitted]:
        if self._adds(point):
            self.total += point.sum
            self.count += point.count
        count = self.count if self.delta else float(point.count)
        yield INFINITE, at, count, start_us
        yield COUNT, at, count, start_us
        if point.HasField("sum"):
            yield SUM, at, self.total if self.delta else point.sum, start_us

    def _adds(self, point: Any) -> bool:
        """Whether a delta is to be added. The last point once more is a sender that saw no answer: its totals stand.

        Raises RejectedError for one that is older: where it belongs is past.
        """
        if not self.delta:
            return False
        at = _us(point)
        if at < self.last_us:
            raise RejectedError("out_of_order")
        if not self.first_us:
            self.first_us = point.start_time_unix_nano // 1000 + 1 if point.start_time_unix_nano else 0
        return at > self.last_us

    def _restart(self, point: Any) -> None:
        self.total = self.count = 0
        self.first_us = point.start_time_unix_nano // 1000 + 1 if point.start_time_unix_nano else 0

    def _start_us(self, point: Any) -> int:
        """Return since when the value counts; for added deltas just after the last sample that another sum may have."""
        return self.first_us if self.delta else point.start_time_unix_nano // 1000


def _us(point: Any) -> int:
    return int(point.time_unix_nano // 1000)


def _bucket(bound: str) -> Part:
    return "_bucket", "le", bound
