"""`Recorded`: a canonical metric as a recording rule over the exporters' own names, so that an alert is written once.

The presets say under which names each source sends a metric, at which scale, and what its labels mean; nothing of that
is repeated here. Names follow Prometheus' level:metric:operations.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from collector.presets.catalog import Catalog
from collector.presets.meanings import family
from collector.presets.preset import ANY, Metric, PresetFile
from store.errors import UsageError
from store.window import format_duration

_PLAIN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_HOST = r"\[?([^\]]*?)\]?(?::[0-9]+)?"
"""The machine of an `instance`, where the exporter itself names none."""

KEPT = ("job", "instance", "service", "host")
LEVELS: Mapping[str, tuple[str, ...]] = {
    "gpu": (*KEPT, "gpu", "gpu_uuid", "gpu_model", "pci_bus_id"),
    "engine": (*KEPT, "model"),
    "port": (*KEPT, "device", "port"),
}
"""Labels that a level keeps; everything else is added up."""
SOURCES: Mapping[str, tuple[str, ...]] = {
    "gpu": ("dcgm", "amd", "nvidia_gpu_exporter"),
    "engine": ("vllm", "sglang", "trtllm", "nim", "tgi", "triton"),
    "port": ("node_exporter",),
}
"""Presets of a level. A gateway repeats its engines, so it is none of them."""
_COMBINE = {"sum": "sum", "mean": "avg", "max": "max"}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recording rule. `operation` is last, increase or rate, over `span`; `by` names further labels to keep.

    `where` are labels, in the presets' terms, that a series must have. With the suffix _bucket, `limit` is the bound of
    the one bucket that counts, in the canonical unit.
    """

    level: str
    canonical: str
    operation: str = "last"
    span: timedelta = timedelta(minutes=2)
    by: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""
    limit: float | None = None

    @property
    def name(self) -> str:
        """Name of the recorded series, such as gpu:pcie_replay_total:increase10m."""
        parts = [self.canonical.removeprefix(f"{self.level}_") + self.suffix, *self.where.values()]
        if self.limit is not None:
            parts.append(re.sub(r"[^0-9a-z]", "_", f"le{self.limit:.15g}"))
        operation = self.operation + (format_duration(self.span) if self.operation != "last" else "")
        return f"{self.level}:{'_'.join(parts)}:{operation}"

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the recorded series."""
        return (*LEVELS[self.level], *self.by)

    def wire_names(self, catalog: Catalog) -> list[str]:
        """Names on the wire that this rule reads, newest first per source."""
        return [name for source in SOURCES[self.level] for name, _ in self._metrics(catalog, source)]

    def expr(self, catalog: Catalog) -> str:
        """Return the expression: every source's series in canonical unit and labels, combined per level.

        Of several names of one thing the first that is there counts. Raises UsageError for names that differ in a label
        which is neither kept nor given: one would hide the others.
        """
        combine = "sum" if self.suffix else _COMBINE[catalog.canonical[self.canonical].combine]
        made = []
        for source in SOURCES[self.level]:
            metrics = list(self._metrics(catalog, source))
            if metrics:
                self._check(metrics)
                file = catalog.files[source]
                parts = " or ".join(self._part(file, name, metric) for name, metric in metrics)
                copies = {label: names for metric in metrics for label, names in metric[1].copy.items()}
                whole = self._labelled(parts, {**file.copy, **copies}, file.labels)
                made.append(f"{combine} by ({', '.join(self.labels)}) ({whole})")
        return " or ".join(made)

    def rule(self, catalog: Catalog) -> dict[str, str]:
        """Return the rule as Prometheus' rule file has it."""
        return {"record": self.name, "expr": self.expr(catalog)}

    def _metrics(self, catalog: Catalog, source: str) -> Iterator[tuple[str, Metric]]:
        for name, metrics in catalog.files[source].metrics.items():
            for metric in metrics:
                same = family(metric.to, catalog.canonical) == self.canonical and not metric.yields_to
                if same and all(metric.labels.get(k, v) == v for k, v in self.where.items()):
                    yield from ((spelled, metric) for spelled in (name, *metric.aliases))

    def _check(self, metrics: list[tuple[str, Metric]]) -> None:
        told = {(k, v) for _, metric in metrics for k, v in metric.labels.items() if k not in self.where}
        hidden = {k for k, _ in told if sum(k == other for other, _ in told) > 1} - set(self.labels)
        if hidden:
            raise UsageError(f"{self.name}: series of {self.canonical} differ in {sorted(hidden)}", "keep or give it")

    def _part(self, file: PresetFile, name: str, metric: Metric) -> str:
        """Return one name's series in the canonical unit, without what tells it apart on the wire."""
        matchers = [_matcher(label, values) for label, values in {**file.only, **metric.when}.items()]
        matchers += [f'{label}=~"0|"' for label in file.ranks] + [f'{label}=""' for label in file.parts]
        if self.limit is not None:
            matchers.append(bound_matcher(self.limit / metric.scale))
        function = "last_over_time" if self.operation == "last" else self.operation
        value = f"{function}({_selector(name + self.suffix, file, matchers)}[{format_duration(self.span)}])"
        if self.operation == "last" and (metric.valid or file.blank):
            low, high = metric.valid or (None, min(start for start, _ in file.blank))
            value = f"({value} < {high:.15g})" if low is None else f"({low:g} <= ({value} <= {high:g}))"
        if metric.scale != 1.0 and self.suffix not in ("_count", "_bucket"):
            value = f"{value} * {metric.scale:g}"
        fixed = dict.fromkeys(metric.when, "") | {k: v for k, v in metric.labels.items() if k in self.labels}
        for label, text in fixed.items():
            value = f'label_replace({value}, "{label}", "{text}", "", "")'
        return value

    def _labelled(self, value: str, copies: Mapping[str, tuple[str, ...]], fixed: Mapping[str, str]) -> str:
        value = f'label_replace({value}, "host", "$1", "instance", {_quoted(_HOST)})'
        for label in self.labels:
            for source in reversed(copies.get(label, ())):
                if source != label and _PLAIN.fullmatch(source):
                    value = f'label_replace({value}, "{label}", "$1", "{source}", "(.+)")'
            if label in fixed:
                value = f'label_replace({value}, "{label}", "{fixed[label]}", "", "")'
        return value


@dataclass(frozen=True, slots=True)
class Derived:
    """A recording rule over recorded series: a sum, a share, a count."""

    name: str
    formula: str
    labels: tuple[str, ...]

    def wire_names(self, catalog: Catalog) -> list[str]:
        """Return none: it reads recorded series alone."""
        del catalog
        return []

    def rule(self, catalog: Catalog) -> dict[str, str]:
        """Return the rule as Prometheus' rule file has it."""
        del catalog
        return {"record": self.name, "expr": self.formula}


def _selector(name: str, file: PresetFile, matchers: list[str]) -> str:
    """Select a name; one with a colon also as Prometheus and Ray spell it, a counter also without its suffix."""
    if ":" not in name and not file.prefixes:
        return name + ("{" + ", ".join(matchers) + "}" if matchers else "")
    folded = re.sub(r"[^a-zA-Z0-9_]", "[:_]", name)
    bare = re.sub(r"_total$", "(_total)?", folded)
    return "{" + ", ".join([f'__name__=~"(ray_)?{bare}"', *matchers]) + "}"


def bound_matcher(bound: float) -> str:
    """Match a bucket by its bound as exporters spell it: 2 and 2.0 are one."""
    spelled = dict.fromkeys((f"{bound:.15g}", repr(float(f"{bound:.15g}"))))
    return f"le=~{_quoted('|'.join(map(re.escape, spelled)))}" if len(spelled) > 1 else f'le="{next(iter(spelled))}"'


def _matcher(label: str, values: tuple[str, ...]) -> str:
    if values == (ANY,):
        return f'{label}!=""'
    return f'{label}="{values[0]}"' if len(values) == 1 else f'{label}=~"{"|".join(map(re.escape, values))}"'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\") + '"'
