"""Relabelling as Prometheus does it: rules over a set of labels, for targets and for scraped series alike."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import md5

from collector.prometheus.config import RelabelConfig
from collector.prometheus.re2 import compile_re2
from store.errors import UsageError

Labels = dict[str, str]
"""Labels while rules run: a label with an empty value is one that is not there."""

_NAME = re.compile(r"[a-zA-Z_]\w*", re.ASCII)
_TARGET = re.compile(r"(?:[a-zA-Z_]|\$\w|\$\{\w+\})(?:\w|\$\w|\$\{\w+\})*", re.ASCII)
_VARIABLE = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})")
_LARGEST = 10**8  # a longer group number is a name


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, checked and compiled."""

    action: str
    sources: tuple[str, ...]
    separator: str
    regex: re.Pattern[str]
    target: str
    replacement: str
    modulus: int

    def value(self, labels: Mapping[str, str]) -> str:
        """Return the values of the source labels, joined."""
        return self.separator.join(labels.get(name, "") for name in self.sources)


def relabel(labels: Mapping[str, str], rules: Iterable[Rule]) -> Labels | None:
    """Return the labels after all rules; None where a rule drops them."""
    found = {name: value for name, value in labels.items() if value}
    for rule in rules:
        if not _ACTIONS[rule.action](rule, found):
            return None
    return found


def compile_rule(config: RelabelConfig) -> Rule:
    """Check a rule as Prometheus does. Raises UsageError."""
    action = config.action.lower()
    if action not in _ACTIONS:
        raise UsageError(f"there is no relabel action {config.action!r}", f"actions: {', '.join(sorted(_ACTIONS))}")
    target, replacement = config.target_label or "", "$1" if config.replacement is None else config.replacement
    _check_keys(action, config)
    if action == "hashmod" and not config.modulus:
        raise UsageError("hashmod needs a modulus above 0", "set modulus to the number of shards")
    if action in _NEED_TARGET:
        valid = _TARGET if action == "replace" and "$" in target else _NAME
        if not valid.fullmatch(target):
            raise UsageError(f"{action} needs a target_label that is a label name, not {target!r}", "set target_label")
    if action == "labelmap" and not _TARGET.fullmatch(replacement):
        raise UsageError(f"labelmap: replacement {replacement!r} makes no label name", "write it like $1")
    return Rule(
        action=action,
        sources=tuple(config.source_labels or ()),
        separator=";" if config.separator is None else config.separator,
        regex=compile_re2("(.*)" if config.regex is None else config.regex),
        target=target,
        replacement=replacement,
        modulus=config.modulus or 1,
    )


def expand(match: re.Match[str], template: str) -> str:
    """Fill `$1`, `${1}`, `$name`, `${name}` and `$$` as Go's regexp does: an unknown group is empty."""
    return _VARIABLE.sub(lambda found: _group(match, found), template)


def _group(match: re.Match[str], found: re.Match[str]) -> str:
    name = found[1] or found[2]
    if name is None:
        return "$"
    if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and int(name) < _LARGEST:
        return (match[int(name)] or "") if int(name) <= match.re.groups else ""
    return (match[name] or "") if name in match.re.groupindex else ""


def _set(labels: Labels, name: str, value: str) -> bool:
    if value:
        labels[name] = value
    else:
        labels.pop(name, None)
    return True


def _replace(rule: Rule, labels: Labels) -> bool:
    match = rule.regex.fullmatch(rule.value(labels))
    if match is None:
        return True
    name = expand(match, rule.target)
    return _set(labels, name, expand(match, rule.replacement)) if _NAME.fullmatch(name) else True


def _hashmod(rule: Rule, labels: Labels) -> bool:
    digest = md5(rule.value(labels).encode(), usedforsecurity=False).digest()
    return _set(labels, rule.target, str(int.from_bytes(digest[8:], "big") % rule.modulus))


def _labelmap(rule: Rule, labels: Labels) -> bool:
    for name, value in list(labels.items()):
        match = rule.regex.fullmatch(name)
        new = expand(match, rule.replacement) if match else ""
        if new:
            labels[new] = value
    return True


def _filter(rule: Rule, labels: Labels, matching: bool) -> bool:
    for name in list(labels):
        if (rule.regex.fullmatch(name) is not None) != matching:
            del labels[name]
    return True


_ACTIONS: dict[str, Callable[[Rule, Labels], bool]] = {
    "replace": _replace,
    "keep": lambda rule, labels: rule.regex.fullmatch(rule.value(labels)) is not None,
    "drop": lambda rule, labels: rule.regex.fullmatch(rule.value(labels)) is None,
    "keepequal": lambda rule, labels: labels.get(rule.target, "") == rule.value(labels),
    "dropequal": lambda rule, labels: labels.get(rule.target, "") != rule.value(labels),
    "hashmod": _hashmod,
    "labelmap": _labelmap,
    "labeldrop": lambda rule, labels: _filter(rule, labels, matching=False),
    "labelkeep": lambda rule, labels: _filter(rule, labels, matching=True),
    "lowercase": lambda rule, labels: _set(labels, rule.target, rule.value(labels).lower()),
    "uppercase": lambda rule, labels: _set(labels, rule.target, rule.value(labels).upper()),
}
_NEED_TARGET = ("replace", "hashmod", "lowercase", "uppercase", "keepequal", "dropequal")
_ONLY = {
    "labeldrop": ("regex",),
    "labelkeep": ("regex",),
    "keepequal": ("source_labels", "target_label"),
    "dropequal": ("source_labels", "target_label"),
    "lowercase": ("source_labels", "target_label", "separator", "regex", "modulus"),
    "uppercase": ("source_labels", "target_label", "separator", "regex", "modulus"),
}
_DEFAULTS = {"separator": ";", "regex": "(.*)", "modulus": 0, "replacement": "$1", "target_label": ""}


def _check_keys(action: str, config: RelabelConfig) -> None:
    if action not in _ONLY:
        return
    for key in ("source_labels", "separator", "regex", "modulus", "target_label", "replacement"):
        value = getattr(config, key)
        if key not in _ONLY[action] and value is not None and value != _DEFAULTS.get(key):
            raise UsageError(f"{action} takes no {key}", f"it takes {' and '.join(_ONLY[action][:2])} only")
