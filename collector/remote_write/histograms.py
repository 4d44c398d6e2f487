"""Native histograms of remote write as classic buckets, sum and count."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import inf, isnan
from typing import Any

from collector.prometheus.exposition import Series
from collector.push.columns import STALE_NAN
from collector.push.exponential import Buckets, ClassicBuckets, le, number_text, on_grid
from collector.remote_write.labels import RefusedError

KIND = "exponential_histogram"
"""Type of the parts of a native histogram: buckets that the receiver made."""
_CUSTOM = -53
_SCALES = range(-12, 21)

Part = tuple[str, str]
"""Suffix of the name, and the label le ('' for none)."""


@dataclass(slots=True)
class NativeHistogram:
    """A series of native histograms: what it is, and the bounds it has shown."""

    series: Series
    shown: ClassicBuckets = field(default_factory=ClassicBuckets)
    bounds: tuple[float, ...] = ()

    def part(self, part: Part, kind: str) -> Series:
        """Return the series of one part."""
        suffix, bound = part
        labels = {**self.series.labels, "le": bound} if bound else self.series.labels
        return Series(self.series.name + suffix, labels, kind)

    def points(self, message: Any) -> Iterator[tuple[Part, int, float]]:
        """Return part, time (ms) and value of everything a Histogram message says. Raises RefusedError."""
        at, count = message.timestamp, message.count_int or message.count_float
        if isnan(message.sum) and not count:
            yield from self._ends(at)
            return
        yield from self._custom(message) if message.schema == _CUSTOM else self._exponential(message)
        yield ("_bucket", "+Inf"), at, count
        yield ("_count", ""), at, count
        yield ("_sum", ""), at, message.sum

    def _ends(self, at: int) -> Iterator[tuple[Part, int, float]]:
        bounds = [*map(le, self.shown.shown), *map(number_text, self.bounds), "+Inf"]
        self.shown.end()
        yield from ((("_bucket", bound), at, STALE_NAN) for bound in bounds)
        yield from (((suffix, ""), at, STALE_NAN) for suffix in ("_count", "_sum"))

    def _exponential(self, message: Any) -> Iterator[tuple[Part, int, float]]:
        shown = self.shown.update(_buckets(message), message.timestamp)
        yield from ((("_bucket", le(edge)), message.timestamp, n) for edge, n in shown.now.items())
        yield from ((("_bucket", le(edge)), shown.before_at, n) for edge, n in shown.before.items())

    def _custom(self, message: Any) -> Iterator[tuple[Part, int, float]]:
        bounds = tuple(message.custom_values)
        if any(not low < high for low, high in pairwise(bounds)):
            raise RefusedError("invalid_histogram")
        counts = dict(_counts(message.positive_spans, message.positive_deltas, message.positive_counts))
        rising = accumulate(counts.get(i, 0) for i in range(len(bounds)))
        ended = {bound: STALE_NAN for bound in self.bounds if bound not in bounds}
        self.bounds = bounds
        found = ended | dict(zip(bounds, rising, strict=True))
        finite = ((bound, n) for bound, n in found.items() if bound != inf)
        return ((("_bucket", number_text(bound)), message.timestamp, n) for bound, n in finite)


def _buckets(message: Any) -> Buckets:
    if message.schema not in _SCALES or not 0 <= message.zero_threshold < inf:
        raise RefusedError("invalid_histogram")
    zero = message.zero_count_int or message.zero_count_float
    positive = _counts(message.positive_spans, message.positive_deltas, message.positive_counts)
    negative = _counts(message.negative_spans, message.negative_deltas, message.negative_counts)
    return on_grid(message.schema, zero, message.zero_threshold, positive, negative)


def _counts(spans: Sequence[Any], deltas: Sequence[int], counts: Sequence[float]) -> list[tuple[int, float]]:
    """Return index and count of every bucket: spans say which there are, deltas or counts how full they are."""
    found = list(counts) or list(accumulate(deltas))
    if sum(span.length for span in spans) != len(found) or any(not n >= 0 for n in found):
        raise RefusedError("invalid_histogram")
    indexes: list[int] = []
    at = 0
    for span in spans:
        at += span.offset
        indexes += range(at, at + span.length)
        at += span.length
    return list(zip(indexes, found, strict=True))
