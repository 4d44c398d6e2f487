"""What a page of metrics holds: series, values, times, types, and the lines that could not be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from collector.presets.names import fold


class Sample(NamedTuple):
    """One value: name as on the wire, labels as on the wire, time in ms since 1970 (UTC) where the page states one."""

    name: str
    labels: Mapping[str, str]
    value: float
    ts_ms: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A time series as exposed. Compared by identity, so that a known one costs a look-up."""

    name: str
    labels: Mapping[str, str]
    kind: str


@dataclass(frozen=True, slots=True)
class Exposition:
    """A page that was read. `series`, `values` and `times_ms` are parallel, in page order.

    `times_ms` is None where no line states a time. `types` holds the declared type by family name as declared.
    `rejected` holds (line number, text) of lines that could not be read. `created` counts `_created` series: dates, so
    left out of the samples; `start_s` finds them. `warnings` say what a person should know.
    """

    series: Sequence[Series]
    values: Sequence[float]
    times_ms: Sequence[int | None] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    rejected: tuple[tuple[int, str], ...] = ()
    created: int = 0
    warnings: tuple[str, ...] = ()
    starts: Mapping["StartKey", float] = field(default_factory=dict)

    @property
    def samples(self) -> list[Sample]:
        """The values one by one; for the fast path use the parallel sequences."""
        times = self.times_ms or [None] * len(self.values)
        return [
            Sample(s.name, s.labels, value, at) for s, value, at in zip(self.series, self.values, times, strict=True)
        ]

    def start_s(self, series: Series) -> float | None:
        """When a counter, histogram or summary last began at zero, in seconds since 1970; None where not stated."""
        return self.starts.get(start_key(series)) if self.starts else None


StartKey = tuple[str, frozenset[tuple[str, str]]]
_PARTS = ("_total", "_created", "_bucket", "_sum", "_count")


def start_key(series: Series) -> StartKey:
    """Return what a series has in common with its `_created` series: family, labels but for `le` and `quantile`."""
    family = next((series.name.removesuffix(part) for part in _PARTS if series.name.endswith(part)), series.name)
    return family, frozenset(pair for pair in series.labels.items() if pair[0] not in ("le", "quantile"))


_SUFFIXES = {
    "_total": ("counter",),
    "_bucket": ("histogram", "gaugehistogram"),
    "_sum": ("histogram", "summary"),
    "_count": ("histogram", "summary"),
    "_info": ("info",),
    "_gsum": ("gaugehistogram",),
    "_gcount": ("gaugehistogram",),
}
_HAVE_CREATED = ("counter", "histogram", "summary", "gaugehistogram")


class Types:
    """Declared types, found by sample name."""

    def __init__(self, declared: Mapping[str, str]) -> None:
        self.declared = dict(declared)
        # prometheus_client and SGLang, asked for OpenMetrics, write `TYPE a:b` above samples `a_b`
        self._folded = {fold(name): kind for name, kind in declared.items()}

    def declare(self, family: str, kind: str) -> None:
        """Take one more type; the last one of a family counts."""
        self.declared[family] = self._folded[fold(family)] = kind

    def kind(self, name: str) -> str:
        """Return the type of a sample's family; unknown where none is declared."""
        found = _kind(name, self.declared) or _kind(fold(name), self._folded)
        return "unknown" if found in (None, "untyped") else found or "unknown"

    def is_created(self, name: str) -> bool:
        """Whether a series is the start time of a counter, histogram or summary: a date, no measurement."""
        return name.endswith("_created") and (_is_created(name, self.declared) or _is_created(fold(name), self._folded))


def _kind(name: str, types: Mapping[str, str]) -> str | None:
    if name in types:
        return types[name]
    for suffix, kinds in _SUFFIXES.items():
        if name.endswith(suffix) and types.get(name.removesuffix(suffix)) in kinds:
            return types[name.removesuffix(suffix)]
    return None


def _is_created(name: str, types: Mapping[str, str]) -> bool:
    family = name.removesuffix("_created")
    own = types.get(name, "gauge")
    return own in ("gauge", "unknown", "untyped") and any(
        types.get(base) in _HAVE_CREATED for base in (family, f"{family}_total")
    )
