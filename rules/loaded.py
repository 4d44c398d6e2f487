"""What a Prometheus has loaded, held against a rule file: missing, changed, and no longer made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rules.promql import words
from store.window import parse_duration

PATH = "/api/v1/rules"
Key = tuple[str, str, str]
_LABELS_IN_KEY = ("analysis", "severity")
"""Rules of one name in one group differ in these labels."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One rule that differs; `parts` are what of it has changed."""

    kind: Literal["missing", "changed", "stale"]
    group: str
    rule: str
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say it on one line."""
        told = {
            "missing": "is not loaded",
            "changed": f"is loaded with another {' and '.join(self.parts)}",
            "stale": "is loaded, but no longer made",
        }
        return f"{self.group}: {self.rule} {told[self.kind]}"


def differences(rule_file: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Difference]:
    """Hold a rule file against the answer of GET /api/v1/rules.

    Only groups of the file, and those infractl names (infractl-*, pack-*, sloth-slo-*), are looked at.
    """
    wanted = {key: rule for group in rule_file["groups"] for key, rule in _of_file(group)}
    there = {key: rule for group in answer["data"]["groups"] for key, rule in _of_answer(group)}
    groups = {key[0] for key in wanted}
    missing = [Difference("missing", key[0], key[1]) for key in wanted.keys() - there.keys()]
    stale = [
        Difference("stale", key[0], key[1])
        for key in there.keys() - wanted.keys()
        if key[0] in groups or key[0].startswith(("infractl-", "pack-", "sloth-slo-"))
    ]
    changed = [
        Difference("changed", key[0], key[1], parts)
        for key in wanted.keys() & there.keys()
        if (parts := tuple(part for part in wanted[key] if wanted[key][part] != there[key][part]))
    ]
    return sorted((*missing, *changed, *stale), key=lambda d: (d.group, d.rule, d.kind))


def _of_file(group: Mapping[str, Any]) -> Iterator[tuple[Key, dict[str, Any]]]:
    for rule in group.get("rules", ()):
        labels = dict(rule.get("labels") or {})
        yield (
            (str(group["name"]), str(rule.get("alert") or rule["record"]), _told(labels)),
            {
                "expression": words(str(rule["expr"])),
                "labels": labels,
                "hold": _seconds(rule.get("for")),
                "keep_firing_for": _seconds(rule.get("keep_firing_for")),
                "annotations": dict(rule.get("annotations") or {}),
            },
        )


def _of_answer(group: Mapping[str, Any]) -> Iterator[tuple[Key, dict[str, Any]]]:
    for rule in group["rules"]:
        labels = dict(rule.get("labels") or {})
        yield (
            (str(group["name"]), str(rule["name"]), _told(labels)),
            {
                "expression": words(str(rule["query"])),
                "labels": labels,
                "hold": float(rule.get("duration") or 0),
                "keep_firing_for": float(rule.get("keepFiringFor") or 0),
                "annotations": dict(rule.get("annotations") or {}),
            },
        )


def _told(labels: Mapping[str, str]) -> str:
    return ",".join(labels.get(name, "") for name in _LABELS_IN_KEY)


def _seconds(text: str | None) -> float:
    return parse_duration(text).total_seconds() if text else 0.0
