"""`PresetFile`: the data file of a source; `Preset`: what it says of one metric name."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from collector.presets.names import key

Semantic = Literal["level", "rate", "cumulative", "last_event"]
Combine = Literal["sum", "mean", "max"]
Interval = tuple[float, float]
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of a data file, under the newest name of its metric.

    `semantic` is what the number is, whatever TYPE the exporter declares: a level, a rate (already per second), a
    cumulative count, or the code of the last event. `labels` are added to the series. `valid` bounds the raw value.
    `aliases` are older names, newest first. On a page that also has one of `yields_to` this metric is not canonical.
    """

    canonical: str
    semantic: Semantic
    combine: Combine
    unit: str = ""
    scale: float = 1.0
    histogram: bool = False
    labels: dict[str, str] = {}
    valid: Interval | None = None
    aliases: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()


class PresetFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Metrics of a source. `copy` adds a label with the first non-empty value of the labels it names.

    `blank` lists closed intervals of raw values that mean "not available". A series that carries one of the labels
    `foreign` on the wire is another program's copy of the metric and is not canonical: adding it would count twice.
    """

    title: str
    metrics: dict[str, Metric]
    copy: dict[str, tuple[str, ...]] = {}
    blank: tuple[Interval, ...] = ()
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    """What is known of one metric name. Canonical value = raw value x `scale`, in `unit`."""

    source: str
    canonical: str
    semantic: Semantic
    combine: Combine
    unit: str = ""
    scale: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)
    copy: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    valid: Interval | None = None
    blank: tuple[Interval, ...] = ()
    foreign: tuple[str, ...] = ()
    yields_to: frozenset[str] = frozenset()

    def applies(self, labels: Mapping[str, str], present: Set[str]) -> bool:
        """Whether a series with these labels is the canonical one on a page with these name keys."""
        return self.yields_to.isdisjoint(present) and not any(name in labels for name in self.foreign)

    def added_labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the labels this preset adds to a series that has `labels`."""
        copied = {name: next((labels[n] for n in names if labels.get(n)), "") for name, names in self.copy.items()}
        return {name: value for name, value in copied.items() if value} | dict(self.labels)


def presets_of(source: str, file: PresetFile) -> dict[str, Preset]:
    """Presets of a data file by name key. A name yields to those listed before it that mean the same."""
    found: dict[str, Preset] = {}
    meanings: dict[tuple[str, str], list[str]] = {}
    for name, metric in file.metrics.items():
        for spelling in (name, *metric.aliases):
            for part in HISTOGRAM_PARTS if metric.histogram else ("",):
                same = meanings.setdefault((metric.canonical + part, repr(sorted(metric.labels.items()))), [])
                newer = frozenset((*same, *(key(other + part) for other in metric.yields_to)))
                found[key(spelling + part)] = _preset(source, file, metric, part, newer)
                same.append(key(spelling + part))
    return found


def _preset(source: str, file: PresetFile, metric: Metric, part: str, newer: frozenset[str]) -> Preset:
    counts = part in ("_bucket", "_count")
    return Preset(
        source=source,
        canonical=metric.canonical + part,
        semantic="cumulative" if part else metric.semantic,
        combine="sum" if part else metric.combine,
        unit="" if counts else metric.unit,
        scale=1.0 if counts else metric.scale,
        labels=metric.labels,
        copy=file.copy,
        valid=metric.valid,
        blank=file.blank,
        foreign=file.foreign,
        yields_to=newer,
    )
