"""Rules of Prometheus text 0.0.4 beyond what can be read: metadata, labels, escapes, repeated samples, histograms.

Looser than OpenMetrics: blanks, commas, comments and the order of lines are free. Peer: prometheus/common's expfmt.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from collector.prometheus.exposition import Types
from collector.prometheus.families import Violation
from collector.prometheus.labels import bound, number_in_label
from collector.prometheus.line import Line, number

_Series = tuple[str, frozenset[tuple[str, str]]]
_ESCAPE = re.compile(r"\\(.)")


@dataclass(slots=True)
class _Buckets:
    """Buckets of one label set of a histogram: first line, last bound and its count."""

    line: int
    le: float = -inf
    count: float = 0.0


class PlainText:
    """Follows a page. `faults` grows as rules are broken; a rule on a whole histogram names its first bucket."""

    def __init__(self) -> None:
        self.faults: list[Violation] = []
        self._types: dict[str, str] = {}
        self._helped: set[str] = set()
        self._sampled: set[str] = set()
        self._seen: set[tuple[_Series, str | None]] = set()
        self._buckets: dict[_Series, _Buckets] = {}
        self._counts: dict[_Series, tuple[int, float]] = {}

    def metadata(self, line: int, keyword: str, name: str, text: str) -> None:
        """Take HELP, TYPE or UNIT of a family."""
        if keyword == "HELP" and text:
            if name in self._helped:
                self._fault(line, f"a second HELP of {name}")
            self._helped.add(name)
        if keyword == "TYPE":
            self._type(line, name, text.lower())

    def sample(self, line: int, text: str, found: Line) -> None:
        """Take a sample, written as `text`."""
        self._sampled.add(found.name)
        if any(escaped not in '\\"n' for escaped in _ESCAPE.findall(text)):
            self._fault(line, r'a label value escapes something else than \, " and the line feed')
        if found.exemplar is not None:
            self._fault(line, "exemplars belong to OpenMetrics")
        series = found.name, frozenset(found.labels.items())
        if (series, found.time) in self._seen:
            self._fault(line, f"a second sample of {found.name} with the same labels")
        self._seen.add((series, found.time))
        self._typed(line, found)

    def end(self) -> None:
        """Judge the histograms, now that the page ends."""
        for (name, labels), buckets in self._buckets.items():
            if buckets.le != inf:
                self._fault(buckets.line, f'a label set of the histogram {name} has no last bucket le="+Inf"')
                continue
            line, count = self._counts.get((name, labels), (0, buckets.count))
            if count != buckets.count:
                self._fault(line, f'the count of {name} is not that of its bucket le="+Inf"')

    def _type(self, line: int, name: str, kind: str) -> None:
        if name in self._types:
            self._fault(line, f"a second TYPE of {name}")
        self._types[name] = kind
        if any(Types({name: kind}).kind(sampled) == kind != "untyped" for sampled in self._sampled):
            self._fault(line, f"TYPE of {name} stands after its samples")

    def _typed(self, line: int, found: Line) -> None:
        """Judge what the type of a sample demands."""
        if self._types.get(found.name) == "summary" and number_in_label(found.labels.get("quantile")) is None:
            self._fault(line, f"a sample of the summary {found.name} needs a label quantile, a number")
        family, _, part = found.name.rpartition("_")
        if self._types.get(family) != "histogram":
            return
        labels = frozenset(pair for pair in found.labels.items() if pair[0] != "le")
        if part == "bucket":
            self._bucket(line, (family, labels), found.labels, number(found.value.encode()))
        elif part == "count":
            self._counts[family, labels] = line, number(found.value.encode())

    def _bucket(self, line: int, key: _Series, labels: Mapping[str, str], value: float) -> None:
        le = bound(labels.get("le"))
        if le is None:
            self._fault(line, f"a bucket of {key[0]} needs a label le, a number, the last one +Inf")
            return
        buckets = self._buckets.setdefault(key, _Buckets(line))
        if le <= buckets.le:
            self._fault(line, f"the buckets of {key[0]} do not stand in the order of le")
        elif value < buckets.count:
            self._fault(line, f"a bucket of {key[0]} counts less than the one before it")
        buckets.le, buckets.count = max(le, buckets.le), value

    def _fault(self, line: int, reason: str) -> None:
        self.faults.append(Violation(line, reason))
