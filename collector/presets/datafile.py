"""Data files as they stand on disk: `canonical.toml`, and a file for each source."""

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

import msgspec

from collector.presets.meanings import check_canonical
from collector.presets.preset import Canonical, Metric, PresetFile
from store.errors import ConfigError

T = TypeVar("T")

CANONICAL = "canonical"
"""Name of the data file that declares canonical metrics, and the source of series that come under such a name."""


def read_files(directories: Iterable[Traversable]) -> tuple[dict[str, PresetFile], dict[str, Canonical]]:
    """Return the data files by source name, and all canonical metrics, those that files declare among them.

    Raises ConfigError naming file and key.
    """
    paths = sorted((path for directory in directories for path in directory.iterdir()), key=lambda path: path.name)
    raw = {path.name.removesuffix(".toml"): _toml(path) for path in paths if path.name.endswith(".toml")}
    known = _declared(CANONICAL, raw.pop(CANONICAL))
    found = {source: _file(source, table) for source, table in raw.items()}
    for source, file in found.items():
        for name, metric in file.canonical.items():
            if name in known:
                raise ConfigError(f"preset {source}.toml: canonical.{name} is declared elsewhere", "refer to it")
            known[name] = metric
    return found, known


def _toml(path: Traversable) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"preset {path.name}: {error}", "correct the file") from error


def _file(source: str, table: Mapping[str, Any]) -> PresetFile:
    rest = {name: value for name, value in table.items() if name not in ("metrics", "canonical")}
    head = _convert(source, "", {**rest, "metrics": {}}, PresetFile)
    metrics = {
        name: tuple(_convert(source, f"metrics.{name}", entry, Metric) for entry in _entries(value))
        for name, value in table.get("metrics", {}).items()
    }
    return msgspec.structs.replace(head, metrics=metrics, canonical=_declared(source, table.get("canonical", {})))


def _declared(source: str, table: Mapping[str, Any]) -> dict[str, Canonical]:
    found = {name: _convert(source, f"canonical.{name}", value, Canonical) for name, value in table.items()}
    for name, metric in found.items():
        check_canonical(f"preset {source}.toml", name, metric)
    return found


def _entries(value: Any) -> list[Any]:
    """Return a metric as tables: the short form is a canonical name."""
    listed = value if isinstance(value, list) else [value]
    return [{"to": entry} if isinstance(entry, str) else entry for entry in listed]


def _convert(source: str, where: str, value: Any, to: type[T]) -> T:
    try:
        return msgspec.convert(value, to)
    except msgspec.ValidationError as error:
        said = f"{where}: {error}" if where else str(error)
        raise ConfigError(f"preset {source}.toml: {said}", "correct the file") from error
