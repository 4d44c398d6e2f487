"""One point of a metric: a value, or all parts of one histogram at one time, and the rules of OpenMetrics on it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, nan

HISTOGRAMS = ("histogram", "gaugehistogram")
_SUM_AND_COUNT = {"histogram": ("_sum", "_count"), "gaugehistogram": ("_gsum", "_gcount")}


@dataclass(slots=True)
class Point:
    """What has been read of a point that begins at `line`; `series` holds suffix and labels of its samples."""

    name: str
    kind: str
    line: int
    timed: bool
    series: set[tuple[str, frozenset[tuple[str, str]]]] = field(default_factory=set)
    suffixes: set[str] = field(default_factory=set)
    last_le: float = nan
    has_negative: bool = False
    values: dict[str, float] = field(default_factory=dict)

    def bucket(self, le: float) -> Iterator[str]:
        """Take the bound of a bucket; yield the rule it breaks."""
        before, self.last_le = self.last_le, le
        self.has_negative = self.has_negative or le < 0
        if le <= before:
            yield f"the buckets of {self.name} do not stand in the order of le"

    def value(self, suffix: str, value: float) -> Iterator[str]:
        """Take the value of a part (of its buckets the last one's is kept); yield the rule it breaks."""
        before = self.values.get(suffix, -inf)
        self.values[suffix] = value
        if suffix == "_bucket" and value < before:
            yield f"a bucket of {self.name} counts less than the one before it"

    def faults(self) -> Iterator[str]:
        """Yield the rules that the complete point breaks, whatever its values."""
        if self.kind not in HISTOGRAMS:
            return
        total, count = _SUM_AND_COUNT[self.kind]
        if self.last_le != inf:
            yield f'a label set of the {self.kind} {self.name} has no last bucket le="+Inf"'
        if (total in self.suffixes) != (count in self.suffixes):
            yield f"of {self.name}{total} and {self.name}{count} one stands without the other"
        if self.kind == "histogram" and self.has_negative and total in self.suffixes:
            yield f"{self.name} has buckets below zero and so can have no {self.name}_sum"

    def value_faults(self) -> Iterator[str]:
        """Yield the rules that the values of the complete point break."""
        if self.kind not in HISTOGRAMS:
            return
        count = self.values.get(_SUM_AND_COUNT[self.kind][1])
        if count is not None and self.last_le == inf and count != self.values["_bucket"]:
            yield f'the count of {self.name} is not that of its bucket le="+Inf"'
        if self.values.get("_gsum", 0) < 0 and not self.has_negative:
            yield f"{self.name}_gsum is below zero without a bucket below zero"
