"""Rules of OpenMetrics 1.0 about values, times and exemplars of samples."""

from collections.abc import Iterator
from math import isnan

from collector.prometheus.families import Family, Place
from collector.prometheus.line import Line, number
from collector.prometheus.point import HISTOGRAMS, Point

_COUNTING = {
    "counter": ("_total",),
    "summary": ("_sum", "_count"),
    "histogram": ("_sum", "_count", "_bucket"),
    "gaugehistogram": ("_gcount", "_bucket"),
}
_WHOLE = ("_count", "_gcount", "_bucket")


class Measured:
    """Follows the samples of a page after `Families` has placed them; yields the rules each breaks."""

    def __init__(self) -> None:
        self._point: Point | None = None
        self._time: float | None = None

    def sample(self, place: Place, line: Line) -> Iterator[tuple[int | None, str]]:
        """Judge a sample: (line, reason), the line None for its own."""
        value = number(line.value.encode())
        if place.point is not self._point:
            yield from self.end()
            self._point = place.point
        yield from ((None, reason) for reason in _value_faults(place, value))
        yield from ((None, reason) for reason in place.point.value(place.suffix, value))
        yield from ((None, reason) for reason in self._time_faults(place, line.time))
        if line.exemplar is not None and not _may_have_exemplar(place.family, place.suffix):
            yield None, "only buckets and counters have exemplars"

    def end(self) -> Iterator[tuple[int, str]]:
        """Judge the point that ends."""
        if self._point is not None:
            yield from ((self._point.line, reason) for reason in self._point.value_faults())

    def _time_faults(self, place: Place, text: str | None) -> Iterator[str]:
        before, self._time = self._time, None if text is None else float(text)
        if place.new_group or before is None or self._time is None or place.family.kind == "info":
            return
        if self._time < before:
            yield f"the time of {place.family.name} goes back"


def _value_faults(place: Place, value: float) -> Iterator[str]:
    kind, name = place.family.kind, place.family.name + place.suffix
    if kind == "stateset" and value not in (0, 1):
        yield f"a state of {name} is 0 or 1"
    elif kind == "info" and value != 1:
        yield f"the value of {name} is 1"
    elif kind == "summary" and not place.suffix and value < 0:
        yield f"a quantile of {name} is below zero"
    elif place.suffix in _COUNTING.get(kind, ()) and not value >= 0:
        yield f"{name} counts and so is neither below zero nor NaN"
    elif kind == "gaugehistogram" and isnan(value):
        yield f"{name} is NaN"
    elif kind in (*HISTOGRAMS, "summary") and place.suffix in _WHOLE and not value.is_integer():
        yield f"{name} counts in whole numbers"


def _may_have_exemplar(family: Family, suffix: str) -> bool:
    return suffix == "_bucket" if family.kind in HISTOGRAMS else (family.kind, suffix) == ("counter", "_total")
