"""Groups of targets, the form in which files, servers and the configuration list them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from store.errors import SourceError

_FORM = 'a list of {"targets": ["host:port", …], "labels": {"name": "value", …}}'


@dataclass(frozen=True, slots=True)
class Group:
    """Targets (each its own labels, `__address__` among them) and the labels they share."""

    targets: tuple[Mapping[str, str], ...]
    labels: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Any:
        """Give the labels of each target: its own win over the shared ones."""
        return ({**self.labels, **target} for target in self.targets)


def read_json(text: str, name: str, labels: Mapping[str, str] | None = None) -> tuple[Group, ...]:
    """Read groups written as JSON; `labels` are added. Raises SourceError naming `name` and the line."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(f"{name}, line {error.lineno}: {error.msg}", f"JSON: {_FORM}") from None
    return _Reader(name, text).groups(values, labels or {})


def read_yaml(text: str, name: str, labels: Mapping[str, str] | None = None) -> tuple[Group, ...]:
    """Read groups written as YAML, every scalar as text. Raises SourceError naming `name` and the line."""
    import yaml

    try:
        values = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - builds text, lists and mappings only
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise SourceError(f"{name}{line}: {getattr(error, 'problem', None) or error}", f"YAML: {_FORM}") from None
    return _Reader(name, text).groups([] if values in (None, "") else values, labels or {})


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks the form; finds the line of a value only when it is wrong (JSON is YAML enough for that)."""

    name: str
    text: str

    def groups(self, values: object, labels: Mapping[str, str]) -> tuple[Group, ...]:
        if not isinstance(values, list):
            self._refuse((), "the top level is no list")
        return tuple(self._group(value, index, labels) for index, value in enumerate(values))

    def _group(self, value: object, index: int, labels: Mapping[str, str]) -> Group:
        if not isinstance(value, dict):
            self._refuse((index,), "an element is no group of targets")
        for key in value:
            if key not in ("targets", "labels"):
                self._refuse((index, key), f"unknown key {key!r}")
        targets, own = value.get("targets") or [], value.get("labels") or {}
        if not isinstance(targets, list):
            self._refuse((index, "targets"), "targets is no list")
        if not isinstance(own, dict):
            self._refuse((index, "labels"), "labels is no mapping")
        for at, target in enumerate(targets):
            if not isinstance(target, str):
                self._refuse((index, "targets", at), f"target {target!r} is no text")
        for key, text in own.items():
            if not isinstance(text, str):
                self._refuse((index, "labels", key), f"label {key} is no text: {text!r}")
        return Group(tuple({"__address__": target} for target in targets), {**own, **labels})

    def _refuse(self, path: tuple[str | int, ...], fact: str) -> NoReturn:
        line = _line(self.text, path)
        raise SourceError(f"{self.name}{f', line {line}' if line else ''}: {fact}", f"the form is {_FORM}")


def _line(text: str, path: tuple[str | int, ...]) -> int | None:
    import yaml

    try:
        node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    for key in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for name, value in node.value if name.value == key), node)
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            node = node.value[key]
    return None if node is None else int(node.start_mark.line) + 1
