"""Service level objectives of infractl.yaml: section slos, and files in OpenSLO v1 named by openslo."""

import re
from pathlib import Path
from typing import Any

import msgspec

from analytics.slo.objective import Slo, indicator, objective, parse
from infractl.configfile import ConfigFile
from store.errors import ConfigError, UsageError
from store.window import parse_duration

OPENSLO_HINT = (
    "infractl reads kind SLO with an inline indicator whose spec holds infractl: 'ttft_s<=2' (docs/configuration.md)"
)
_DAYS = {"w": 7, "M": 30, "Q": 90, "Y": 365}


class SloEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One objective of the section slos."""

    name: str
    sli: str
    objective: float | str
    window: str = "30d"
    where: dict[str, str] = {}


def slo_texts(config: ConfigFile) -> tuple[str, ...]:
    """Objectives as the lines that `analyze slo --slos` takes. Raises ConfigError naming file and line."""
    entries: list[SloEntry] = config.section("slos", list[SloEntry]) or []
    files: list[str] = config.section("openslo", list[str]) or []
    found = [_of_entry(entry, f"{config.where('slos', i)}: slos[{i}]") for i, entry in enumerate(entries)]
    folder = config.path.parent if config.path else Path()
    for i, name in enumerate(files):
        found += read_openslo(folder / name, f"{config.where('openslo', i)}: openslo[{i}]")
    names = [slo.name for slo in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{config.where('slos')}: two SLOs are named {twice!r}", "give each a name of its own")
    return tuple(slo.text() for slo in found)


def _of_entry(entry: SloEntry, where: str) -> Slo:
    target = entry.objective if isinstance(entry.objective, str) else repr(entry.objective)
    return _made(where, entry.name, entry.sli, target, entry.window, entry.where)


def _made(where: str, name: str, sli: str, target: str, window: str, labels: dict[str, str]) -> Slo:
    try:
        made = Slo(name, indicator(sli), objective(target), parse_duration(window), tuple(labels.items()))
        return parse(made.text())  # what a line cannot say (a colon in the name, a comma) is refused here
    except UsageError as error:
        raise ConfigError(f"{where}: {error}", error.hint) from error


def read_openslo(path: Path, where: str) -> list[Slo]:
    """Read the SLOs of a file in OpenSLO v1 (other kinds are left out). Raises ConfigError for a part not supported."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: cannot read {path}: {error}", "name an OpenSLO file") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(f"{path}{f', line {mark.line + 1}' if mark else ''}: not YAML", "mend the file") from error
    loader = yaml.SafeLoader("")
    found: list[Slo] = []
    for node in documents:
        document = loader.construct_document(node) if node is not None else None
        if isinstance(document, dict) and document.get("kind") == "SLO":
            found += _of_openslo(document, _Lines(path, node))
    if not found:
        raise ConfigError(f"{path}: no document of kind SLO", OPENSLO_HINT)
    return found


class _Lines:
    """File and line of the keys of one document."""

    def __init__(self, path: Path, node: Any) -> None:
        self.path, self.node = path, node

    def at(self, *keys: str | int) -> str:
        """'FILE, line N' of the deepest of the keys that is there."""
        node, line = self.node, self.node.start_mark.line
        for key in keys:
            if isinstance(key, int):
                node = node.value[key] if key < len(node.value) else None
            else:
                pairs = node.value if isinstance(node.value, list) else []
                hit = next(((k, v) for k, v in pairs if k.value == key), None)
                node = hit[1] if hit else None
                line = hit[0].start_mark.line if hit else line
            if node is None:
                break
            line = node.start_mark.line if isinstance(key, int) else line
        return f"{self.path}, line {line + 1}"


def _of_openslo(document: dict[str, Any], lines: _Lines) -> list[Slo]:
    def refuse(fact: str, *keys: str | int) -> ConfigError:
        return ConfigError(f"{lines.at(*keys)}: {fact}", OPENSLO_HINT)

    if document.get("apiVersion") != "openslo/v1":
        raise refuse(f"apiVersion {document.get('apiVersion')!r} is not openslo/v1", "apiVersion")
    spec = document.get("spec") or {}
    if spec.get("indicatorRef") is not None:
        raise refuse("indicatorRef is not supported: give the indicator inline", "spec", "indicatorRef")
    if spec.get("budgetingMethod", "Occurrences") != "Occurrences":
        raise refuse(
            f"budgetingMethod {spec['budgetingMethod']} is not supported: Occurrences", "spec", "budgetingMethod"
        )
    sli = ((spec.get("indicator") or {}).get("spec") or {}).get("infractl")
    if not isinstance(sli, str):
        raise refuse(
            "the indicator has no spec.infractl, and queries of other stores are not read", "spec", "indicator"
        )
    windows = spec.get("timeWindow") or [{"duration": "30d", "isRolling": True}]
    if len(windows) > 1 or not windows[0].get("isRolling", True) or windows[0].get("calendar"):
        raise refuse("only one rolling timeWindow is supported", "spec", "timeWindow")
    labels = {"service": spec["service"]} if spec.get("service") else {}
    name = (document.get("metadata") or {}).get("name", "")
    made = []
    for i, one in enumerate(spec.get("objectives") or []):
        target = one.get("target", one["targetPercent"] / 100 if "targetPercent" in one else None)
        if target is None:
            raise refuse("an objective needs target or targetPercent", "spec", "objectives", i)
        where, number = lines.at("spec", "objectives", i), f"-{i + 1}" if i else ""
        made.append(_made(where, f"{name}{number}", sli, repr(target), _duration(windows[0]["duration"]), labels))
    if not made:
        raise refuse("no objectives", "spec")
    return made


def _duration(text: str) -> str:
    """OpenSLO's duration ('4w', '1M') in days where Prometheus has no such unit."""
    found = re.fullmatch(r"(\d+)([wMQY])", text)
    return f"{int(found[1]) * _DAYS[found[2]]}d" if found else text
