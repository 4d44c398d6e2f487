"""promtool unit tests for a rule file: each trigger fires past its bound, not at it, and resolves."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from analytics.analysis import Analysis
from analytics.result import Trigger
from rules.alert import Alert, RuleOptions
from rules.build import trigger_alert
from rules.naming import metric_name
from rules.own import DROPPED, LAST_SUCCESS, QUEUE, QUEUE_LIMIT, own_alerts
from rules.template import expand
from store.window import format_duration

STEP_S = 15
"""Scrape and evaluation interval of the tests, seconds; holds are met at the first step at or after them."""

HEADER = "# Made by `infractl rules test --output DIR`; run with: promtool test rules FILE\n"

Series = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Expected:
    """An alert that fires: the labels its expression keeps (by field of the summary) and the value."""

    labels: Mapping[str, str] = field(default_factory=dict)
    value: float = 0.0


def unit_tests(analyses: Sequence[Analysis[Any]], options: RuleOptions, rule_file: str) -> dict[str, Any]:
    """Return promtool's test file for `rule_groups(analyses, options)` stored as `rule_file` beside it."""
    tests: list[dict[str, Any]] = []
    for analysis in analyses:
        for trigger in analysis.triggers:
            tests += _trigger_tests(trigger, trigger_alert(analysis.name, trigger, options), options)
    tests += _own_tests([a.name for a in analyses], options)
    return {"rule_files": [rule_file], "evaluation_interval": f"{STEP_S}s", "tests": tests}


def _trigger_tests(trigger: Trigger, alert: Alert, options: RuleOptions) -> Iterable[dict[str, Any]]:
    bound = float(trigger.bound)
    outward = math.inf if trigger.above else -math.inf
    beyond, within = math.nextafter(bound, outward), math.nextafter(bound, -outward)
    labels = {name: f"{name}-1" for name in trigger.signal.labels}
    series = _series(metric_name(trigger.signal.metric), {alert.kept[k]: v for k, v in labels.items()})
    yield _fires_and_resolves(series, (beyond, bound), alert, options, Expected(labels, beyond))
    for name, value in (("at its bound", bound), ("within its bound", within)):
        steps = _steps(alert.times(options)[0]) + 40
        yield _test(f"{alert.name} is quiet {name}", {series: f"{value!r}+0x{steps}"}, alert, options, {steps: None})
    if labels:
        bare = _series(metric_name(trigger.signal.metric), {})
        at = _steps(alert.times(options)[0])
        name = f"{alert.name} reads well without labels"
        yield _test(name, {bare: f"{beyond!r}+0x{at}"}, alert, options, {at: Expected({}, beyond)})


def _fires_and_resolves(
    series: str, values: tuple[float, float], alert: Alert, options: RuleOptions, expected: Expected
) -> dict[str, Any]:
    """Beyond the bound with one failed scrape in between, then back at the bound."""
    hold, keep = (_steps(span) for span in alert.times(options))
    beyond, bound = values
    missed = hold >= 2 and options.gap.total_seconds() > 2 * STEP_S
    text = f"{beyond!r} stale {beyond!r}+0x{hold}" if missed else f"{beyond!r}+0x{hold + 2}"
    back = hold + 3
    checks: dict[int, Expected | None] = {hold: expected, back + keep: None}
    if hold > 0:
        checks[hold - 1] = None
    if keep > 0:
        checks[back + keep - 1] = expected
    return _test(
        f"{alert.name} fires and resolves", {series: f"{text} {bound!r}+0x{keep + 40}"}, alert, options, checks
    )


def _own_tests(analyses: Sequence[str], options: RuleOptions) -> Iterable[dict[str, Any]]:
    alerts = {(a.name, a.labels.get("analysis", "")): a for a in own_alerts(analyses, options)}
    up = f'up{{job="{options.job}"}}'
    yield _own("always fires", {}, alerts["InfractlDeadMansSwitch", ""], options, Expected())
    job = Expected({"job": options.job})
    yield _own("fires while scrapes fail", {up: "0+0x400"}, alerts["InfractlDown", ""], options, job)
    yield _own("fires without a scrape job", {}, alerts["InfractlDown", ""], options, job)
    yield _own("is quiet while up", {up: "1+0x400"}, alerts["InfractlDown", ""], options, None)
    for name in analyses:
        alert, expected = alerts["InfractlAnalysisStale", name], Expected({"analysis": name})
        last = _series(LAST_SUCCESS.name, {"analysis": name})
        yield _own("fires on age", {up: "1+0x400", last: "0+0x400"}, alert, options, expected)
        yield _own("fires when it never succeeded", {up: "1+0x400"}, alert, options, expected)
        yield _own("is quiet while fresh", {up: "1+0x400", last: f"0+{STEP_S}x400"}, alert, options, None)
    lost = {"source": "otlp", "reason": "open_end"}
    dropped = _series(DROPPED.name, lost)
    yield _own("fires", {dropped: "0+1x400"}, alerts["InfractlIngestDropping", ""], options, Expected(lost))
    yield _own("is quiet", {dropped: "7+0x400"}, alerts["InfractlIngestDropping", ""], options, None)
    for rows, expect in (("95", Expected(value=0.95)), ("90", None)):
        queue = {QUEUE.name: f"{rows}+0x400", QUEUE_LIMIT.name: "100+0x400"}
        yield _own(f"at {rows} of 100 rows", queue, alerts["InfractlQueueFull", ""], options, expect)


def _own(name: str, series: Series, alert: Alert, options: RuleOptions, expected: Expected | None) -> dict[str, Any]:
    """Check after an hour or so, when every hold and the age that counts as stale have passed."""
    late = 200 + _steps(alert.times(options)[0] + options.stale_after)
    return _test(f"{alert.name} {name}", series, alert, options, {late: expected})


def _test(
    name: str, series: Series, alert: Alert, options: RuleOptions, checks: Mapping[int, Expected | None]
) -> dict[str, Any]:
    return {
        "name": name,
        "interval": f"{STEP_S}s",
        "input_series": [{"series": s, "values": values} for s, values in series.items()],
        "alert_rule_test": [
            {
                "eval_time": format_duration(timedelta(seconds=STEP_S * at)),
                "alertname": alert.name,
                "exp_alerts": [] if expected is None else [_alert(alert, options, expected)],
            }
            for at, expected in sorted(checks.items())
        ],
    }


def _alert(alert: Alert, options: RuleOptions, expected: Expected) -> dict[str, Any]:
    kept = {alert.kept[field]: value for field, value in expected.labels.items()}
    return {
        "exp_labels": {**kept, **alert.rule_labels(options)},
        "exp_annotations": {
            "summary": expand(alert.summary, expected.labels, expected.value),
            "description": alert.description,
            "runbook_url": options.runbook(alert.runbook),
        },
    }


def _steps(span: timedelta) -> int:
    return math.ceil(span.total_seconds() / STEP_S)


def _series(metric: str, labels: Mapping[str, str]) -> str:
    inner = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{inner}}}" if inner else metric
