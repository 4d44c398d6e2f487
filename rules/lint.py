"""Checks that promtool does not make: labels that a template uses and the expression drops, metrics nobody exposes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from analytics.analysis import Analysis
from rules.naming import label_names, metric_name
from rules.own import METRICS
from rules.promql import Expression, read
from store.errors import UsageError

SYNTHETIC = frozenset(
    (
        "up",
        "scrape_duration_seconds",
        "scrape_samples_scraped",
        "scrape_samples_post_metric_relabeling",
        "scrape_series_added",
        "ALERTS",
        "ALERTS_FOR_STATE",
    )
)
"""Metrics that Prometheus makes itself: no page shows them."""

TARGET_LABELS = frozenset(("job", "instance"))
_LABEL = re.compile(r"\$labels\.(\w+)")
_SAMPLE = re.compile(
    r"""^(?:([a-zA-Z_:][\w:]*)[ \t]*(?:\{.*\})?|\{"([^"]+)".*\})[ \t]*
    (?<=[ \t}])[-+]?(?:\d[\d.eE+-]*|\.\d+|[Ii]nf|[Nn]a[Nn])(?:[ \t].*)?\r?$""",
    re.MULTILINE | re.VERBOSE,
)
_TYPE = re.compile(r'^#\s+TYPE\s+"?([^\s"]+)"?\s+(\w+)\s*$', re.MULTILINE)
_ENDS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count"), "counter": ("", "_total")}
"""Series that a family of a type has, though no label set may have shown up yet."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a rule, and the next step."""

    rule: str
    text: str
    hint: str = ""


def known_metrics(analyses: Iterable[Analysis[Any]]) -> dict[str, frozenset[str]]:
    """Return metric → labels for every signal, for infractl's own metrics and for those Prometheus makes."""
    known = dict.fromkeys(SYNTHETIC, TARGET_LABELS)
    known |= {m.name: TARGET_LABELS | set(m.labels) for m in METRICS}
    for signal in (s for a in analyses for s in a.signals):
        known[metric_name(signal.metric)] = TARGET_LABELS | set(label_names(signal.labels).values())
    return known


def page_metrics(text: str) -> frozenset[str]:
    """Return the metric names of an exposition page: those with samples, and what a TYPE line promises.

    Raises UsageError for a page without any: a login page must not make every rule look unable to fire.
    """
    names = {m[1] or m[2] for m in _SAMPLE.finditer(text)}
    promised = {family + end for family, kind in _TYPE.findall(text) for end in _ENDS.get(kind, ("",))}
    if not names | promised:
        raise UsageError("the page holds no metric", "give the address or a copy of a /metrics page")
    return frozenset(names | promised)


def lint(
    rule_file: Mapping[str, Any],
    known: Mapping[str, frozenset[str]],
    *,
    exposed: frozenset[str] | None = None,
    runbooks: Path | None = None,
) -> list[Problem]:
    """Return the problems of a rule file.

    `known` gives labels of metrics; with `exposed` a rule on a metric that is not exposed is a problem; with
    `runbooks` (a folder) an alert without its page there is one.
    """
    rules = [rule for group in rule_file["groups"] for rule in group.get("rules", ())]
    recorded = {str(rule["record"]) for rule in rules if "record" in rule}
    there = None if exposed is None else exposed | SYNTHETIC | recorded
    return [problem for rule in rules for problem in _lint_rule(rule, known, there, runbooks)]


def _lint_rule(
    rule: Mapping[str, Any], known: Mapping[str, frozenset[str]], exposed: frozenset[str] | None, runbooks: Path | None
) -> list[Problem]:
    name = str(rule.get("alert", rule.get("record", "a rule without a name")))
    try:
        expression = read(str(rule.get("expr", "")), known)
    except UsageError as error:
        return [Problem(name, str(error), "promtool check rules says more")]
    problems = _dropped_labels(name, rule, expression)
    if exposed is not None:
        problems += _never_fires(name, expression, sorted(exposed))
    if runbooks is not None and "alert" in rule:
        problems += _no_runbook(name, rule, runbooks)
    return problems


def _dropped_labels(name: str, rule: Mapping[str, Any], expression: Expression) -> list[Problem]:
    if expression.labels is None:
        return []
    texts = [*(rule.get("annotations") or {}).values(), *(rule.get("labels") or {}).values()]
    used = {label for text in texts for label in _LABEL.findall(str(text))}
    kept = ", ".join(sorted(expression.labels)) or "none"
    return [
        Problem(name, f"uses $labels.{label}, which its expression does not keep", f"labels it keeps: {kept}")
        for label in sorted(used - expression.labels)
    ]


def _never_fires(name: str, expression: Expression, exposed: Sequence[str]) -> list[Problem]:
    problems = []
    for metric in sorted(expression.metrics - set(exposed)):
        near = get_close_matches(metric, exposed, 1)
        hint = f"nearest: {near[0]}" if near else "no exposed name is near"
        problems.append(Problem(name, f"can never fire: no metric {metric}", hint))
    return problems


def _no_runbook(name: str, rule: Mapping[str, Any], runbooks: Path) -> list[Problem]:
    url = str((rule.get("annotations") or {}).get("runbook_url", ""))
    slug = url.rstrip("/").rpartition("/")[2].removesuffix(".md")
    if slug and (runbooks / f"{slug}.md").is_file():
        return []
    return [Problem(name, f"has no runbook {slug or '(no runbook_url)'}", f"write {runbooks / (slug or 'SLUG')}.md")]
