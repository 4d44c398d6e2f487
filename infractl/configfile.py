"""infractl.yaml: read with the line of every key, checked against what is known."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from collector.otlp.content import MAX_VALUE_BYTES
from store.errors import ConfigError
from store.nearest import nearest

DEFAULT_FILE = "infractl.yaml"
_QUOTED = re.compile(r"\b(alias|anchor|tag|tag handle) '.*?'")
"""Values that YAML repeats because they begin with * & or !; one may be a password without quotes."""


class Content(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What of prompts and completions is kept."""

    store: bool = False
    max_value_bytes: int = MAX_VALUE_BYTES
    hash: bool = False


class Telemetry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Traces of infractl's own work: into its own store, or to an OTLP/HTTP endpoint."""

    traces: bool = True
    endpoint: str | None = None


class Collector(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Something on this machine that is read at an interval; `root` is where the host's file system is mounted."""

    every: str = "15s"
    labels: dict[str, str] = {}
    root: str = "/"


class Prices(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A person's own prices: a file (relative to the configuration's folder) and entries, which go first."""

    file: str | None = None
    entries: list[Any] = []


class AnalysisSchedule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How often `serve` runs an analysis, over how long, with which parameters."""

    every: str | None = None
    since: str | None = None
    params: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A parsed file: plain values and the line of each key path (('serve', 'port') → 4)."""

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict)

    def where(self, *keys: str | int) -> str:
        """'FILE, line N' of the deepest of the keys that the file has."""
        for size in range(len(keys), 0, -1):
            if keys[:size] in self.lines:
                return f"{self.path}, line {self.lines[keys[:size]]}"
        return str(self.path)

    def section(self, name: str, kind: Any) -> Any:
        """Return a top-level section as `kind` (a msgspec type), or None where absent. Raises ConfigError."""
        if name not in self.values:
            return None
        return self._convert((name,), self.values[name], kind)

    def _convert(self, path: tuple[str | int, ...], value: Any, kind: Any) -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise self._explain(path, str(error), kind) from None

    def _explain(self, path: tuple[str | int, ...], text: str, kind: Any) -> ConfigError:
        """Turn msgspec's message ('… - at `$[0].x`') into file, line, key and the nearest known key."""
        fact, _, at = text.partition(" - at `$")
        inner = _path_of(at.rstrip("`"))
        unknown = fact.split("`")[1] if "unknown field" in fact else None
        full = (*path, *inner, *([unknown] if unknown else ()))
        if unknown is None:
            return ConfigError(
                f"{self.where(*full)}: {dotted(full)}: {fact.replace('`', '')}", "see docs/configuration.md"
            )
        return ConfigError(
            f"{self.where(*full)}: unknown key {dotted(full)!r}", nearest_key(unknown, _fields(kind, inner))
        )


def load(path: Path) -> ConfigFile:
    """Read a YAML file. Raises ConfigError naming file and line."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text) or {}
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", "infractl config init writes one") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start})", "save it as UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = _QUOTED.sub(r"\1", getattr(error, "problem", None) or str(error))
        raise ConfigError(
            f"{path}{line}: {problem}", "mend the YAML; put quotes around a value with * & or !"
        ) from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: the top level must be a mapping", "see docs/configuration.md")
    lines: dict[tuple[str | int, ...], int] = {}
    _collect_lines(node, (), lines)
    return ConfigFile(path, values, lines)


def nearest_key(word: str, known: Iterable[str]) -> str:
    """Hint for an unknown key: the nearest known one, else all."""
    names = sorted(known)
    return nearest(word, names, "known keys: " + ", ".join(names))


def dotted(path: Iterable[str | int]) -> str:
    """('scrape_configs', 0, 'x') → 'scrape_configs[0].x'."""
    out = ""
    for key in path:
        out += f"[{key}]" if isinstance(key, int) else f".{key}" if out else key
    return out


def _collect_lines(node: Any, path: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int]) -> None:
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(key.value))
            lines[inner] = key.start_mark.line + 1
            _collect_lines(value, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*path, index)] = value.start_mark.line + 1
            _collect_lines(value, (*path, index), lines)


def _path_of(text: str) -> tuple[str | int, ...]:
    """'[0].static_configs[1]' → (0, 'static_configs', 1); '[...]' (a mapping's values) is left out."""
    parts: list[str | int] = []
    for piece in text.replace("[", ".[").split("."):
        if piece.startswith("[") and piece.strip("[]").isdigit():
            parts.append(int(piece.strip("[]")))
        elif piece and not piece.startswith("[") and piece != "]":
            parts.append(piece)
    return tuple(parts)


def _fields(kind: Any, inner: tuple[str | int, ...]) -> list[str]:
    """Known keys at a path below a msgspec type."""
    info = msgspec.inspect.type_info(kind)
    for key in (*inner, None):
        while not isinstance(info, msgspec.inspect.StructType):
            inside = getattr(info, "item_type", None) or getattr(info, "value_type", None)
            options = [t for t in getattr(info, "types", ()) if not isinstance(t, msgspec.inspect.NoneType)]
            if inside is None and not options:
                return []
            info = inside or options[0]
        if key is None:
            break
        if isinstance(key, int):
            continue
        match = [f for f in info.fields if f.encode_name == key]
        if match:
            info = match[0].type
    assert isinstance(info, msgspec.inspect.StructType)
    return [f.encode_name for f in info.fields]
