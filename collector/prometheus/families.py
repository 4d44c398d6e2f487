"""Rules of OpenMetrics 1.0 about what stands where: families, metadata, labels, label sets, parts of histograms.

No rule here looks at a value or a time, so a page laid out like another breaks the same ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from collector.presets.names import fold
from collector.prometheus.labels import bound, quantile
from collector.prometheus.line import read_metadata
from collector.prometheus.point import HISTOGRAMS, Point
from collector.prometheus.reader import Found

_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "counter": ("_total", "_created"),
    "summary": ("", "_count", "_sum", "_created"),
    "histogram": ("_bucket", "_count", "_sum", "_created"),
    "gaugehistogram": ("_bucket", "_gcount", "_gsum"),
    "info": ("_info",),
}
_UNITLESS = ("info", "stateset")
_Labels = frozenset[tuple[str, str]]


class Violation(NamedTuple):
    """A line (from 1) and the rule it breaks."""

    line: int
    reason: str


@dataclass(slots=True)
class Family:
    """What has been read of a family: `said` holds the texts of its metadata, `groups` the label sets of its samples.

    `names` are those its samples may have.
    """

    name: str
    line: int
    kind: str = "unknown"
    names: tuple[str, ...] = ()
    said: dict[str, str] = field(default_factory=dict)
    sampled: bool = False
    groups: set[_Labels] = field(default_factory=set)
    group: _Labels | None = None

    def __post_init__(self) -> None:
        self.declare(self.kind)

    def declare(self, kind: str) -> None:
        """Take the type."""
        self.kind = kind
        self.names = tuple(self.name + suffix for suffix in _SUFFIXES.get(kind, ("",)))


class Place(NamedTuple):
    """Where a sample stands: its family and suffix, its point, and whether it begins a label set of the family."""

    family: Family
    suffix: str
    point: Point
    new_group: bool


class Families:
    """Follows a page. `faults` grows as rules are broken; a rule on a whole point names the point's first line."""

    def __init__(self) -> None:
        self.faults: list[Violation] = []
        self._owners: dict[str, Family] = {}
        self._family: Family | None = None
        self._point: Point | None = None

    def metadata(self, line: int, keyword: str, name: str, text: str) -> None:
        """Take HELP, TYPE or UNIT of a family."""
        family = self._family
        if family is None or family.name != name:
            family = self._start(line, name)
        if family.sampled:
            self._fault(line, f"{keyword} of {name} stands after its samples")
        elif keyword in family.said:
            self._fault(line, f"a second {keyword} of {name}")
        family.said[keyword] = text
        if keyword == "TYPE":
            family.declare(text.lower())
            self._own(line, family)
        unit = family.said.get("UNIT")
        if unit and keyword != "HELP" and family.kind in _UNITLESS:
            self._fault(line, f"{name} is of type {family.kind} and so can have no unit")
        if unit and keyword == "UNIT" and not name.endswith(f"_{unit}"):
            self._fault(line, f"the name {name} does not end in its unit {unit}")

    def sample(self, line: int, name: str, labels: Mapping[str, str], timed: bool) -> Place:
        """Take a sample; `timed` says that a time follows its value."""
        family = self._family
        if family is None or name not in family.names:
            family = self._of_sample(line, name)
        family.sampled = True
        suffix = name[len(family.name) :]
        pairs = frozenset(labels.items())
        group = _group(family, suffix, pairs)
        new_group = group != family.group
        if new_group and group in family.groups:
            self._fault(line, f"the samples of one label set of {family.name} do not stand together")
        family.group = group
        family.groups.add(group)
        point = self._of_point(line, family, (suffix, pairs), timed, new_group)
        self._own_label(line, family, suffix, labels)
        return Place(family, suffix, point, new_group)

    def end(self) -> None:
        """Take note that a point, or the page, ends."""
        if self._point is not None:
            self._fault(self._point.line, *self._point.faults())
        self._point = None

    def _of_sample(self, line: int, name: str) -> Family:
        """Return the family of a sample that the metadata above do not cover: a new one, of unknown type."""
        above, owner = self._family, self._owners.get(name)
        if owner is None or owner is not above:
            if owner is None and above is not None and fold(name) in map(fold, above.names):
                self._fault(line, f"the metadata above say {above.name}, the sample is called {name}")
            return self._start(line, name)
        self._fault(line, f"a sample of the {above.kind} {name} is called {' or '.join(above.names)}")
        self.end()
        self._family = Family(name, line)
        return self._family

    def _start(self, line: int, name: str) -> Family:
        self.end()
        self._family = Family(name, line)
        self._own(line, self._family)
        return self._family

    def _own(self, line: int, family: Family) -> None:
        """Reserve the names of a family's samples; no other family may have them."""
        for name in {family.name: None} | dict.fromkeys(family.names):
            owner = self._owners.setdefault(name, family)
            if owner is not family:
                self._fault(
                    line, f"the name {name} belongs to the family {owner.name} of line {owner.line}, which has ended"
                )

    def _of_point(self, line: int, family: Family, series: tuple[str, _Labels], timed: bool, new_group: bool) -> Point:
        """Return the point of a sample: that of the sample before it, or a new one."""
        point = self._point
        if point is None or new_group or (timed and point.timed and series in point.series):
            self.end()
            point = self._point = Point(family.name, family.kind, line, timed)
        elif timed != point.timed:
            self._fault(line, f"within one label set of {family.name} some samples have a time and some have none")
        elif series in point.series:
            self._fault(line, f"a second sample of {family.name}{series[0]} with the same labels")
        point.series.add(series)
        point.suffixes.add(series[0])
        return point

    def _own_label(self, line: int, family: Family, suffix: str, labels: Mapping[str, str]) -> None:
        """Judge the label that samples of this type must have."""
        if family.kind == "stateset" and family.name not in labels:
            self._fault(line, f"a sample of the stateset {family.name} needs a label of that name")
        elif family.kind == "summary" and not suffix and quantile(labels.get("quantile")) is None:
            self._fault(line, f"a sample of the summary {family.name} needs a label quantile from 0 to 1")
        elif family.kind in HISTOGRAMS and suffix == "_bucket":
            le = bound(labels.get("le"))
            if le is None:
                self._fault(line, f"a bucket of {family.name} needs a label le, a number, the last one +Inf")
            elif self._point is not None:
                self._fault(line, *self._point.bucket(le))

    def _fault(self, line: int, *reasons: str) -> None:
        self.faults += [Violation(line, reason) for reason in reasons]


def _group(family: Family, suffix: str, pairs: _Labels) -> _Labels:
    """Return what the samples of one label set have in common."""
    kind = family.kind
    if kind == "info":
        return frozenset()
    own = {"stateset": family.name, "summary": "quantile"}.get(kind, "le" if kind in HISTOGRAMS else "")
    has_own = kind == "stateset" or (kind == "summary" and not suffix) or (kind in HISTOGRAMS and suffix == "_bucket")
    return frozenset(pair for pair in pairs if pair[0] != own) if has_own else pairs


def first_fault(lines: Sequence[bytes], found: Iterable[Found]) -> Violation | None:
    """Return the first rule broken by a page whose samples are `found`; None where it breaks none."""
    samples = {at: (series, when is not None) for at, _, series, _, when in found}
    families = Families()
    for at, line in enumerate(lines):
        if at in samples:
            series, timed = samples[at]
            families.sample(at + 1, series.name, series.labels, timed)
        elif comment := read_metadata(line.decode("utf-8", "replace")):
            families.metadata(at + 1, *comment)
        if families.faults:
            break
    else:
        families.end()
    return min(families.faults, default=None)
