"""Checks that promtool does not make: dropped labels, metrics and buckets that nobody exposes, divisions by zero."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from analytics.analysis import Analysis
from collector.presets.catalog import catalog
from rules.naming import label_names, metric_name
from rules.own import METRICS
from rules.pack.build import PREFIX
from rules.promql import Expression, read
from rules.slo import PREFIX as SLO_PREFIX
from rules.slo import SHARED
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
_BUCKET = re.compile(r'^([a-zA-Z_:][\w:]*_bucket)\{[^}\n]*\ble="([^"]+)"', re.MULTILINE)
_TYPE = re.compile(r'^#\s+TYPE\s+"?([^\s"]+)"?\s+(\w+)\s*$', re.MULTILINE)
_ENDS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count"), "counter": ("", "_total")}
"""Series that a family of a type has, though no label set may have shown up yet."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a rule, and the next step."""

    rule: str
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """What targets expose: names of metrics, and the finite bounds (le) of each histogram's buckets."""

    names: frozenset[str]
    bounds: Mapping[str, frozenset[float]] = field(default_factory=dict)


def known_metrics(analyses: Iterable[Analysis[Any]]) -> dict[str, frozenset[str]]:
    """Return metric → labels for every signal, for infractl's own metrics and for those Prometheus makes."""
    known = dict.fromkeys(SYNTHETIC, TARGET_LABELS)
    known |= {m.name: TARGET_LABELS | set(m.labels) for m in METRICS}
    for signal in (s for a in analyses for s in a.signals):
        known[metric_name(signal.metric)] = TARGET_LABELS | set(label_names(signal.labels).values())
    return known


def read_pages(texts: Iterable[str]) -> Page:
    """Read several exposition pages as one. Raises UsageError for one without a metric."""
    pages = [read_page(text) for text in texts]
    bounds: dict[str, frozenset[float]] = {}
    for page in pages:
        for name, found in page.bounds.items():
            bounds[name] = bounds.get(name, frozenset()) | found
    return Page(frozenset(name for page in pages for name in page.names), bounds)


def read_page(text: str) -> Page:
    """Read an exposition page: metrics with samples, what a TYPE line promises, and bounds of buckets.

    Raises UsageError for a page without any: a login page must not make every rule look unable to fire.
    """
    names = {m[1] or m[2] for m in _SAMPLE.finditer(text)}
    promised = {family + end for family, kind in _TYPE.findall(text) for end in _ENDS.get(kind, ("",))}
    if not names | promised:
        raise UsageError("the page holds no metric", "give the address or a copy of a /metrics page")
    bounds: dict[str, set[float]] = {}
    for metric, le in _BUCKET.findall(text):
        if math.isfinite(bound := _number(le)):
            bounds.setdefault(metric, set()).add(bound)
    return Page(frozenset(names | promised), {name: frozenset(found) for name, found in bounds.items()})


def lint(
    rule_file: Mapping[str, Any],
    known: Mapping[str, frozenset[str]],
    *,
    exposed: Page | None = None,
    runbooks: Path | None = None,
) -> list[Problem]:
    """Return the problems of a rule file.

    `known` gives labels of metrics; with `exposed` a rule that needs a metric or a bucket which is not there is a
    problem, but for the pack (see `silent`); with `runbooks` (a folder) an alert without its page there is one.
    """
    problems: dict[Problem, None] = {}
    for rules, page in _parts(rule_file, exposed):
        found = (problem for one in _read(rules, known, page) for problem in _problems(*one, page, runbooks))
        problems |= dict.fromkeys(found)
    return list(problems)


def _parts(rule_file: Mapping[str, Any], exposed: Page | None) -> Iterator[tuple[list[Mapping[str, Any]], Page | None]]:
    """Yield rules that are read together, and the page they are held against.

    SLOs record series of the same names, each for itself, so each is read with what all share.
    """
    groups = [(str(group.get("name", "")), list(group.get("rules", ()))) for group in rule_file["groups"]]
    yield [rule for name, rules in groups if not name.startswith((PREFIX, SLO_PREFIX)) for rule in rules], exposed
    yield [rule for name, rules in groups if name.startswith(PREFIX) for rule in rules], None
    shared = [rule for name, rules in groups if name == SHARED for rule in rules]
    own: dict[str, list[Mapping[str, Any]]] = {}
    for name, rules in groups:
        if name.startswith(SLO_PREFIX) and name != SHARED:
            for rule in rules:
                own.setdefault(str((rule.get("labels") or {}).get("sloth_id")), []).append(rule)
    yield from (([*shared, *rules], exposed) for rules in own.values())


def silent(rule_file: Mapping[str, Any], exposed: Page) -> list[str]:
    """Return the alerts of the pack that need metrics which are not exposed: what they watch is not there."""
    rules = [rule for group in rule_file["groups"] for rule in group.get("rules", ()) if _optional(group)]
    return [str(rule["alert"]) for rule, _, missing in _read(rules, {}, exposed) if missing and "alert" in rule]


def _optional(group: Mapping[str, Any]) -> bool:
    return str(group.get("name", "")).startswith(PREFIX)


_Read = tuple[Mapping[str, Any], Expression | UsageError, frozenset[str]]


def _read(
    rules: Iterable[Mapping[str, Any]], known: Mapping[str, frozenset[str]], exposed: Page | None
) -> Iterator[_Read]:
    """Read the rules in order: each with its expression and the metrics that are missing for it.

    A recorded series is there where what it reads is; else what it lacks is missing for all who read it.
    """
    labels = dict(known)
    there = set(SYNTHETIC) | (exposed.names if exposed else set())
    lacking: dict[str, frozenset[str]] = {}
    for rule in rules:
        try:
            expression = read(str(rule.get("expr", "")), labels)
        except UsageError as error:
            yield rule, error, frozenset()
            continue
        missing = expression.missing(there | lacking.keys()) if exposed else frozenset()
        hidden = frozenset(name for other in expression.metrics for name in lacking.get(other, ()))
        name = str(rule.get("record", ""))
        if name and expression.labels is not None:
            labels[name] = expression.labels | frozenset(rule.get("labels") or {})
        if name and (missing or hidden):
            lacking[name] = missing | hidden
        elif name:
            there.add(name)
        yield rule, expression, missing | (hidden if expression.missing(there) else frozenset())


def _problems(
    rule: Mapping[str, Any],
    expression: Expression | UsageError,
    missing: frozenset[str],
    exposed: Page | None,
    runbooks: Path | None,
) -> list[Problem]:
    name = str(rule.get("alert", rule.get("record", "a rule without a name")))
    name += f" ({slo})" if (slo := (rule.get("labels") or {}).get("sloth_slo")) else ""
    if isinstance(expression, UsageError):
        return [Problem(name, str(expression), "promtool check rules says more")]
    problems = _dropped_labels(name, rule, expression)
    if expression.unguarded:
        problems.append(
            Problem(name, "divides by what may be 0, and Inf is above every bound", "write it like a / (b > 0)")
        )
    if exposed is not None:
        problems += _unmeasurable(name, expression, exposed)
    if "alert" not in rule:
        return problems
    if exposed is not None:
        problems += [_never_fires(name, metric, exposed.names) for metric in sorted(missing)]
    if runbooks is not None:
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


def _never_fires(name: str, metric: str, there: Iterable[str]) -> Problem:
    new = catalog().renamed(re.sub(r"_(bucket|sum|count)$", "", metric))
    near = get_close_matches(metric.removeprefix("~"), sorted(there), 1)
    hint = f"nearest: {near[0]}" if near else f"its newest name: {new}" if new else "no exposed name is near"
    return Problem(name, f"can never fire: no metric {metric.removeprefix('~')}", hint)


def _unmeasurable(name: str, expression: Expression, exposed: Page) -> list[Problem]:
    """Find bounds that the buckets of a histogram cannot tell."""
    problems = []
    for metric, le in ((one, le) for named, le in expression.buckets for one in _named(named, exposed.bounds)):
        bounds = exposed.bounds.get(metric)
        if bounds and le != "+Inf" and _number(le) not in bounds:
            near = min(bounds, key=lambda bound: abs(bound - _number(le)))
            problems.append(Problem(name, f"{metric} has no bucket le={le}", f"nearest: {near:g}"))
    for metric, bound in expression.measured:
        bounds = exposed.bounds.get(metric)
        if bounds and bound >= max(bounds):
            text = f"can never fire: the last finite bucket of {metric} ends at {max(bounds):g}"
            problems.append(Problem(name, text, "no quantile is above it"))
    return problems


def _named(name: str, there: Iterable[str]) -> list[str]:
    """Return the names that a ~pattern of them stands for, in order; a plain name stands for itself."""
    return sorted(filter(re.compile(name[1:]).fullmatch, there)) if name.startswith("~") else [name]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _no_runbook(name: str, rule: Mapping[str, Any], runbooks: Path) -> list[Problem]:
    url = str((rule.get("annotations") or {}).get("runbook_url", ""))
    slug = url.rstrip("/").rpartition("/")[2].removesuffix(".md")
    if slug and (runbooks / f"{slug}.md").is_file():
        return []
    return [Problem(name, f"has no runbook {slug or '(no runbook_url)'}", f"write {runbooks / (slug or 'SLUG')}.md")]
