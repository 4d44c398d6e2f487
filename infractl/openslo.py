"""Files in OpenSLO v1: kinds SLO and SLI, whose metrics infractl has, as lines of `analyze slo`.

What has no counterpart in the store (queries of other systems, arithmetic) is refused with file, line and a remedy.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infractl import promql
from store.errors import ConfigError, UsageError
from store.window import parse_duration

HINT = "infractl: 'ttft_s<=2' in the indicator's spec says it in infractl's words (docs/methods/slo.md)"
_DAYS = {"w": 7, "M": 30, "Q": 90, "Y": 365}
_METHODS = ("Occurrences", "Timeslices", "RatioTimeslices")
_ABOVE = ("gt", "gte")


@dataclass(frozen=True, slots=True)
class Entry:
    """An objective as it will be read: `where` is its file and line."""

    where: str
    name: str
    sli: str
    target: str
    window: str
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Document:
    """A document with the lines of its keys."""

    path: Path
    node: Any
    content: dict[str, Any]
    spec: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str((self.content.get("metadata") or {}).get("name", ""))

    def at(self, *keys: str | int) -> str:
        """'FILE, line N' of the deepest of the keys that is there."""
        node, line = self.node, self.node.start_mark.line
        for key in keys:
            if isinstance(key, int):
                node = node.value[key] if isinstance(node.value, list) and key < len(node.value) else None
            else:
                pairs = node.value if isinstance(node.value, list) else []
                hit = next(((k, v) for k, v in pairs if k.value == key), None)
                node, line = (hit[1], hit[0].start_mark.line) if hit else (None, line)
            if node is None:
                break
            line = node.start_mark.line if isinstance(key, int) else line
        return f"{self.path}, line {line + 1}"

    def refuse(self, fact: str, *keys: str | int, hint: str = HINT) -> ConfigError:
        return ConfigError(f"{self.at(*keys)}: {fact}", hint)


@dataclass(frozen=True, slots=True)
class _Indicator:
    """Where an indicator's spec stands: in the SLO itself or in a document of kind SLI."""

    document: _Document
    keys: tuple[str, ...]
    spec: Mapping[str, Any]

    def refuse(self, fact: str, *keys: str, hint: str = HINT) -> ConfigError:
        return self.document.refuse(fact, *self.keys, *keys, hint=hint)


def read_openslo(path: Path, where: str) -> list[Entry]:
    """Read the SLOs of a file (kinds other than SLO and SLI are left out). Raises ConfigError for what is not known."""
    documents = list(_documents(path, where))
    known = {one.name: one for one in documents if one.content.get("kind") == "SLI"}
    found = [entry for one in documents if one.content.get("kind") == "SLO" for entry in _entries(one, known)]
    if not found:
        raise ConfigError(f"{path}: no document of kind SLO", HINT)
    return found


def _documents(path: Path, where: str) -> Iterator[_Document]:
    import yaml

    try:
        nodes = list(yaml.compose_all(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: cannot read {path}: {error}", "name an OpenSLO file") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(f"{path}{f', line {mark.line + 1}' if mark else ''}: not YAML", "mend the file") from error
    loader = yaml.SafeLoader("")
    for whole in nodes:
        for node in whole.value if isinstance(whole, yaml.SequenceNode) else [whole]:  # a list of objects is one too
            content = loader.construct_document(node) if node is not None else None
            if isinstance(content, dict):
                spec = content.get("spec")
                document = _Document(path, node, content, spec if isinstance(spec, dict) else {})
                if content.get("kind") in ("SLO", "SLI") and content.get("apiVersion") != "openslo/v1":
                    raise document.refuse(f"apiVersion {content.get('apiVersion')!r} is not openslo/v1", "apiVersion")
                yield document


def _entries(slo: _Document, known: Mapping[str, _Document]) -> Iterator[Entry]:
    indicator = _indicator(slo, known)
    method = slo.spec.get("budgetingMethod", "Occurrences")
    if method not in _METHODS:
        raise slo.refuse(
            f"budgetingMethod {method} is not known", "spec", "budgetingMethod", hint=f"one of {', '.join(_METHODS)}"
        )
    window = _window(slo)
    objectives = slo.spec.get("objectives") or []
    if not objectives:
        raise slo.refuse("no objectives", "spec")
    for i, one in enumerate(objectives):
        target = one.get("target", one["targetPercent"] / 100 if "targetPercent" in one else None)
        if target is None:
            raise slo.refuse("an objective needs target or targetPercent", "spec", "objectives", i)
        try:
            sli, own = _sli(indicator, one, method, slo, i)
        except UsageError as error:
            raise slo.refuse(str(error), "spec", "objectives", i, hint=error.hint or HINT) from error
        labels = {"service": slo.spec["service"]} if slo.spec.get("service") and own else {}
        number = f"-{i + 1}" if i else ""
        yield Entry(slo.at("spec", "objectives", i), f"{slo.name}{number}", sli, repr(target), window, labels)


def _indicator(slo: _Document, known: Mapping[str, _Document]) -> _Indicator:
    named = slo.spec.get("indicatorRef")
    if named is None:
        inline = (slo.spec.get("indicator") or {}).get("spec") or {}
        return _Indicator(slo, ("spec", "indicator", "spec"), inline)
    if named not in known:
        raise slo.refuse(
            f"indicatorRef {named!r}: no document of kind SLI has this name", "spec", "indicatorRef",
            hint=f"put the SLI into the same file; it has {', '.join(known) or 'none'}",
        )  # fmt: skip
    return _Indicator(known[named], ("spec",), known[named].spec)


def _sli(of: _Indicator, one: Mapping[str, Any], method: str, slo: _Document, i: int) -> tuple[str, bool]:
    """Write the indicator as text, and say whether it is of requests (which the SLO's service narrows)."""
    own = of.spec.get("infractl")
    if isinstance(own, str):
        return own + _slices(one, method, slo, i), True
    if "ratioMetric" in of.spec:
        return _ratio(of) + _slices(one, method, slo, i), False
    if "thresholdMetric" in of.spec:
        return _threshold(of, one, method, slo, i), False
    raise of.refuse("the indicator has none of infractl, ratioMetric and thresholdMetric")


def _slices(one: Mapping[str, Any], method: str, slo: _Document, i: int) -> str:
    if method == "Occurrences":
        return ""
    width = str(one.get("timeSliceWindow", "5m"))
    width = f"{width}m" if width.isdigit() else width
    if parse_duration(width).total_seconds() % 300:
        raise slo.refuse(
            f"timeSliceWindow {width} is not counted", "spec", "objectives", i, "timeSliceWindow",
            hint="requests are counted in 5m: give a multiple of that",
        )  # fmt: skip
    if method == "RatioTimeslices":
        return f" per {width}"
    share = one.get("timeSliceTarget")
    if share is None:
        raise slo.refuse("an objective of Timeslices needs timeSliceTarget", "spec", "objectives", i)
    return f" in {share!r} of requests per {width}"


def _ratio(of: _Indicator) -> str:
    metric = of.spec["ratioMetric"] or {}
    role = next((name for name in ("good", "bad") if metric.get(name)), None)
    if role is None or not metric.get("total"):
        raise of.refuse("ratioMetric needs total and good or bad; raw ratios are not read", "ratioMetric")
    part, whole = (_counter(of, metric, name) for name in (role, "total"))
    return f"{role} {part} / {whole}"


def _counter(of: _Indicator, metric: Mapping[str, Any], role: str) -> str:
    query = _query(of, metric.get(role), "ratioMetric", role)
    read = promql.counter(query)
    if read is None:
        raise of.refuse(
            f"query {query!r} is no single counter", "ratioMetric", role,
            hint="infractl reads sum(rate(NAME{…}[5m])), sum(NAME{…}) and NAME{…}, of metrics that it stores",
        )  # fmt: skip
    if not read.grown and metric.get("counter") is not True:
        raise of.refuse(
            f"query {query!r} has neither rate() nor counter: true", "ratioMetric", role,
            hint="write counter: true where it only rises",
        )  # fmt: skip
    return read.selector


def _threshold(of: _Indicator, one: Mapping[str, Any], method: str, slo: _Document, i: int) -> str:
    """Write a quantile of a histogram held against a value as a share of requests in every slice of time.

    P99 <= 2 s holds exactly where at least 99 % take no longer, so no quantile is interpolated.
    """
    query = _query(of, of.spec["thresholdMetric"], "thresholdMetric")
    read = promql.quantile(query)
    if read is None:
        raise of.refuse(
            f"query {query!r} is no quantile of a histogram", "thresholdMetric",
            hint="infractl reads histogram_quantile(0.99, sum by (le) (rate(NAME_bucket{…}[5m])))",
        )  # fmt: skip
    operator, value = one.get("op"), one.get("value")
    if operator not in ("lte", "lt", *_ABOVE) or value is None:
        raise slo.refuse("an objective of a thresholdMetric needs op and value", "spec", "objectives", i)
    if operator in _ABOVE:
        raise slo.refuse(
            f"op {operator}: a latency is good below its limit", "spec", "objectives", i, "op", hint="op: lte"
        )
    width = _slices({"timeSliceTarget": 0.5} | dict(one), method, slo, i).split(" per ")[-1] or "5m"
    part = promql.with_label(read.selector, "_bucket", f'le="{float(value):g}"')
    whole = promql.with_label(read.selector, "_count")
    return f"good {part} / {whole} in {read.tau!r} of requests per {width}"


def _query(of: _Indicator, holder: Any, *keys: str) -> str:
    source = (holder or {}).get("metricSource") or {}
    kind, query = source.get("type"), (source.get("spec") or {}).get("query")
    if kind is not None and str(kind).lower() not in ("prometheus", "infractl"):
        raise of.refuse(
            f"metricSource of type {kind} is not read", *keys,
            hint="infractl reads metrics that it stores (type Prometheus), or infractl: 'errors' in the spec",
        )  # fmt: skip
    if not isinstance(query, str) or not query.strip():
        raise of.refuse("the metricSource has no spec.query", *keys)
    return " ".join(query.split())


def _window(slo: _Document) -> str:
    windows = slo.spec.get("timeWindow") or [{"duration": "30d", "isRolling": True}]
    if len(windows) > 1 or not windows[0].get("isRolling", True) or windows[0].get("calendar"):
        raise slo.refuse(
            "only one rolling timeWindow is known", "spec", "timeWindow",
            hint="write isRolling: true and no calendar, such as duration: 30d",
        )  # fmt: skip
    found = re.fullmatch(r"(\d+)([wMQY])", str(windows[0]["duration"]))
    return f"{int(found[1]) * _DAYS[found[2]]}d" if found else str(windows[0]["duration"])
