"""promtool unit tests of the SLO alerts, over series as exporters send them.

Of each alert: it fires while every request is bad, also when a scrape is missed; it is quiet while all are good, and
while too few requests are there to judge.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from analytics.slo import LEAST_LONG, Rule
from analytics.slo.counters import Ratio, Selector
from collector.presets.catalog import Catalog, catalog
from rules.alert import Alert, RuleOptions
from rules.pack.recorded import Recorded
from rules.slo.groups import EVERY, Objective, groups_of, objectives, slo_alerts
from rules.slo.indicator import FINISHED
from store.window import format_duration

STEP_S = 15
AT = timedelta(minutes=75)
BUSY, THIN = 15_000.0, LEAST_LONG / 2 / (AT.total_seconds() / STEP_S)
"""Requests per scrape: a thousand a second, and half of what a verdict needs."""
TRIED = ("200", "500", "429", "503", "404", "0", "1", "error", "success", "other", "+Inf")


@dataclass(frozen=True, slots=True)
class Example:
    """Series that count requests: `whole` grows with all of them; `part` with bad ones, or with good ones."""

    part: str
    whole: str
    part_is_bad: bool
    nested: bool = False

    def values(self, per_scrape: float, *, bad: bool) -> dict[str, str]:
        """Return the series with their growth; a `nested` part is among the whole, so the rest stands still."""
        steps = int(AT.total_seconds() / STEP_S) + 4
        part = per_scrape if bad == self.part_is_bad else 0.0
        whole = per_scrape - part if self.nested else per_scrape
        return {self.part: f"0+{part!r}x{steps}", self.whole: f"0+{whole!r}x{steps}"}


def slo_tests(options: RuleOptions) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield, per SLO with alerts of its own, a name, its rules, and promtool's test file for them as NAME.yml."""
    for number, one in enumerate(objectives(options.slos), 1):
        found = example(one)
        if found is None or not one.rules:
            continue
        rules = {"groups": groups_of([one], options)}
        tests = [
            test
            for rule, alert in zip(one.rules, slo_alerts(one), strict=True)
            for test in _tests(one, rule, alert, found, options)
        ]
        name = f"slo-{number}"
        order = {"group_eval_order": [group["name"] for group in rules["groups"]]}
        head = {"rule_files": [f"{name}.yml"], "evaluation_interval": format_duration(EVERY)}
        yield name, rules, {**head, **order, "tests": tests}


def _tests(one: Objective, rule: Rule, alert: Alert, found: Example, options: RuleOptions) -> Iterator[dict[str, Any]]:
    shown = {"sloth_slo": one.labels["sloth_slo"], "sloth_service": one.labels["sloth_service"]}
    expected = [
        {
            "exp_labels": {
                **one.labels, "sloth_window": format_duration(rule.long), **alert.rule_labels(options)
            },
            "exp_annotations": alert.shown(options, shown, 1.0 / one.slo.allowed),
        }
    ]  # fmt: skip
    all_bad = found.values(BUSY, bad=True)
    yield _test(alert, "fires", all_bad, expected)
    yield _test(alert, "survives a missed scrape", {name: _missed(v) for name, v in all_bad.items()}, expected)
    yield _test(alert, "is quiet", found.values(BUSY, bad=False), [])
    yield _test(alert, "is quiet with too few requests", found.values(THIN, bad=True), [])


def _test(alert: Alert, case: str, series: Mapping[str, str], expected: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": f"{alert.name} {case}",
        "interval": f"{STEP_S}s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": format_duration(AT), "alertname": alert.name, "exp_alerts": expected}
        ],
    }  # fmt: skip


def _missed(values: str) -> str:
    """Leave one scrape out, a minute before the test looks."""
    start, _, steps = values.partition("x")
    growth, at = float(start.partition("+")[2]), int((AT.total_seconds() - 60) / STEP_S)
    after = f"{growth * (at + 1)!r}+{growth!r}x{int(steps) - at - 1}"
    return f"{start}x{at - 1} _ {after}"


def example(one: Objective) -> Example | None:
    """Return series that an SLO counts; None where it has no alerts or its selectors are too clever to be met."""
    if one.counted is None:
        return None
    if one.slo.counters is not None:
        return _of_counters(one.slo.counters, dict(one.slo.where))
    known, where = catalog(), dict(one.slo.where)
    if not one.slo.limits:
        told = FINISHED.wire_names(known)[0]
        bad, good = (_engine(told, where, finished_reason=reason) for reason in ("error", "stop"))
        return Example(bad, good, part_is_bad=True, nested=True)
    whole, within = one.counted.reads
    bound = f"{one.slo.limits[0][1]:.15g}"
    return Example(
        _engine(_wire(within, known), where, le=bound), _engine(_wire(whole, known), where), part_is_bad=False
    )


def _wire(record: Recorded, known: Catalog) -> str:
    return record.wire_names(known)[0] + record.suffix


def _engine(name: str, where: Mapping[str, str], **more: str) -> str:
    """Series of a vLLM engine with the labels an SLO wants."""
    host = where.get("host", "n1")
    labels = {
        "model_name": where.get("model", "m"), "engine": "0", "job": where.get("job", "vllm"),
        "instance": where.get("instance", f"{host}:8000"), "host": host, "service": where.get("service", "chat"),
    }  # fmt: skip
    return _series(name, {**labels, **more})


def _of_counters(ratio: Ratio, where: Mapping[str, str]) -> Example | None:
    part = _met(ratio.part, where)
    nested = part is not None and ratio.part.name == ratio.whole.name and ratio.whole.matches(part)
    whole = _met(ratio.whole, where, ratio.part if nested else None)
    if part is None or whole is None:
        return None
    made = _series(ratio.part.name, part), _series(ratio.whole.name, whole)
    return Example(*made, part_is_bad=ratio.kind == "bad", nested=nested)


def _met(wanted: Selector, where: Mapping[str, str], other: Selector | None = None) -> dict[str, str] | None:
    """Return labels that `wanted` takes, and `other` does not; None where no simple ones do."""
    labels = dict(where)
    for label, sign, value in wanted.matchers:
        if sign in ("=", "=~"):
            labels[label] = value if sign == "=" else _simple(value)
        else:
            labels.setdefault(label, next((text for text in TRIED if wanted.matches({**labels, label: text})), ""))
    if other is not None and other.matches(labels):
        tries = ({**labels, label: text} for label, _, _ in other.matchers for text in TRIED)
        labels = next((one for one in tries if wanted.matches(one) and not other.matches(one)), {})
        if not labels:
            return None
    return labels if wanted.matches(labels) else None


def _simple(pattern: str) -> str:
    """Return a text that a simple pattern takes: the first branch with its dots as zeros."""
    first = re.sub(r"^\(|\)$", "", pattern).partition("|")[0]
    return re.sub(r"\.[*+]?", "0", first.replace("\\.", "\0")).replace("\0", ".")


def _series(name: str, labels: Mapping[str, str]) -> str:
    inner = ", ".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{inner}}}" if inner else name
