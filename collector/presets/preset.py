"""`PresetFile`: the data file of a source; `Canonical`: a metric whoever sends it; `Preset`: what one series means."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from collector.presets.identifiers import normal

Semantic = Literal["level", "rate", "cumulative", "last_event", "bitmask", "info"]
Combine = Literal["sum", "mean", "max"]
Interval = tuple[float, float]
Values = tuple[str, ...]
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")
ANY = "*"
"""In `when`: any value but the empty one."""

UNITS = frozenset(
    [
        "", "s", "bytes", "bytes/s", "ratio", "hz", "celsius", "watts", "joules", "tokens", "tokens/s", "requests",
        "requests/s", "preemptions", "items", "blocks", "pages", "packets", "lanes", "GT/s", "flops", "USD",
    ]
)  # fmt: skip
"""Base units, and the names of things that are counted."""


class Canonical(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A canonical metric, declared once.

    `semantic` is what the number is, whatever TYPE an exporter declares: a level, a rate (already per second), a
    cumulative count, the code of the last event, a set of bits, or a 1 whose labels speak. `combine` is how series of
    one entity add up. A histogram has the parts _bucket, _sum and _count.
    """

    semantic: Semantic
    combine: Combine
    unit: str = ""
    histogram: bool = False
    help: str = ""

    def part(self, suffix: str) -> "Canonical":
        """Return a part of this histogram as a metric of its own: cumulative, and only the sum has the unit."""
        return Canonical("cumulative", "sum", self.unit if suffix == "_sum" else "", help=self.help)


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a wire name means: canonical value = raw value x `scale`; `scale` converts the `le` of a histogram too.

    `when` tells tables of one wire name apart by their labels ("" = absent or empty, "*" = any other). `labels` are
    added to the series, and `copy` is read as the file's, for this metric alone and before it. `valid` bounds the raw
    value. `aliases` are older names, newest first. A series of this metric is not canonical beside one of `yields_to`
    on the same target with no other value for a label that both carry.
    """

    to: str
    when: dict[str, Values] = {}
    scale: float = 1.0
    labels: dict[str, str] = {}
    copy: dict[str, Values] = {}
    valid: Interval | None = None
    aliases: Values = ()
    yields_to: Values = ()


class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Wire names that a healthy source shows; what is `lost` without them; the `remedy`, and exact `lines` to add."""

    metrics: Values
    lost: str
    remedy: str
    severity: Literal["info", "warning"] = "warning"
    lines: Values = ()


class PresetFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a source: the data file.

    `names` are prefixes of wire names by which the source is recognised; none = by its metrics. With `prefixes` each
    metric is also found under these prefixes in place of its own ("" = bare). `only`: a series whose label has another
    value is a copy of what another source counts, and is not canonical. `ranks`: of series that differ in these labels
    only, the lowest counts, the others are its copies. `parts`: beside a series without these labels, those with a
    value are parts of it. `blank` lists closed intervals of raw values that mean "not available". `labels` are added to
    every series, and by `copy` one with the first non-empty value of the labels it names (GPU-{uuid}: with that before
    it). `canonical` declares names
    that only this source has; `removed` says what to do about names that are gone. `needs` and `check` (Markdown) are
    the source's page in the documentation: how to get its metrics in, and how to see that they are right.
    """

    title: str
    metrics: dict[str, tuple[Metric, ...]]
    needs: str = ""
    check: str = ""
    names: Values = ()
    prefixes: Values = ()
    only: dict[str, Values] = {}
    ranks: Values = ()
    parts: Values = ()
    blank: tuple[Interval, ...] = ()
    labels: dict[str, str] = {}
    copy: dict[str, Values] = {}
    canonical: dict[str, Canonical] = {}
    removed: dict[str, str] = {}
    expect: tuple[Expect, ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    """One meaning of one metric name. Canonical value = raw value x `scale`, in `unit`.

    `le_scale` converts the bounds of buckets. `bare`: the name is not the source's own, other sources may use it too.
    """

    source: str
    canonical: str
    semantic: Semantic
    combine: Combine
    unit: str = ""
    scale: float = 1.0
    le_scale: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)
    copy: Mapping[str, Values] = field(default_factory=dict)
    valid: Interval | None = None
    blank: tuple[Interval, ...] = ()
    only: Mapping[str, Values] = field(default_factory=dict)
    ranks: Values = ()
    parts: Values = ()
    when: Mapping[str, Values] = field(default_factory=dict)
    yields_to: frozenset[str] = frozenset()
    bare: bool = False

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels has this meaning."""
        return all(_among(labels.get(name, ""), values) for name, values in self.when.items())

    def counts(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels is no copy of what another source counts."""
        return all(_among(labels.get(name, ""), values) for name, values in self.only.items())

    def applies(self, labels: Mapping[str, str], present: Set[str]) -> bool:
        """Whether a series with these labels is the canonical one on a page with these name keys.

        Taken by names alone, for want of the labels of the other series: an older name yields to a newer one wherever
        that is on the page. `Resolver` decides by series.
        """
        return self.yields_to.isdisjoint(present) and self.counts(labels)

    def added_labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the labels this preset adds to, or changes in, a series that has `labels`."""
        copied = {name: next(filter(None, (_read(n, labels) for n in names)), "") for name, names in self.copy.items()}
        added = {name: normal(name, value) for name, value in copied.items() if value} | dict(self.labels)
        if self.le_scale != 1.0 and "le" in labels:
            added["le"] = _scaled(labels["le"], self.le_scale)
        return added

    def means_the_same(self, other: "Preset") -> bool:
        """Whether both read a series alike, whatever source it is from."""
        mine, others = ((p.canonical, p.scale, p.le_scale, dict(p.labels)) for p in (self, other))
        return mine == others


def _read(name: str, labels: Mapping[str, str]) -> str:
    """Return the value of a label; `GPU-{uuid}` is that of uuid after GPU-."""
    prefix, braced, inner = name.partition("{")
    value = labels.get(inner.removesuffix("}") if braced else name, "")
    return prefix + value if braced and value else value


def _among(value: str, wanted: Values) -> bool:
    return value in wanted or (value != "" and ANY in wanted)


def _scaled(bound: str, scale: float) -> str:
    """Return the bound in the canonical unit, the shortest text of it; a text that is no number stays."""
    try:
        number = float(bound) * scale
    except ValueError:
        return bound
    return bound if number in (float("inf"), float("-inf")) else format(number, ".12g")
