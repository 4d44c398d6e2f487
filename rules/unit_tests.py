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
from rules.own import (
    DROPPED,
    LAST_SUCCESS,
    QUEUE,
    QUEUE_LIMIT,
    RECENT,
    STORE_FREE,
    STORE_MIN_FREE,
    UPKEEP_AGE,
    UPKEEP_SUCCESS,
    own_alerts,
)
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
    metric = metric_name(trigger.signal.metric)
    series = _series(metric, {alert.kept[k]: v for k, v in labels.items()})
    yield _fires_and_resolves(series, (beyond, bound), alert, options, Expected(labels, beyond))
    held = _steps(alert.times(options)[0])
    for name, value in (("at its bound", bound), ("within its bound", within)):
        quiet = {series: f"{value!r}+0x{held + 1}"}
        yield _test(f"{alert.name} is quiet {name}", quiet, alert, options, {held + 1: ()})
    if labels:
        bare, name = {metric: f"{beyond!r}+0x{held}"}, f"{alert.name} reads well without labels"
        yield _test(name, bare, alert, options, {held: [Expected({}, beyond)]})


def _fires_and_resolves(
    series: str, values: tuple[float, float], alert: Alert, options: RuleOptions, expected: Expected
) -> dict[str, Any]:
    """Beyond the bound with one failed scrape in between, then back at the bound."""
    hold, keep = (_steps(span) for span in alert.times(options))
    beyond, bound = values
    missed = hold >= 2 and options.gap.total_seconds() > 2 * STEP_S
    text = f"{beyond!r} stale {beyond!r}+0x{hold}" if missed else f"{beyond!r}+0x{hold + 2}"
    back = hold + 3
    checks: dict[int, Sequence[Expected]] = {hold: [expected], back + keep: ()}
    if hold > 0:
        checks[hold - 1] = ()
    if keep > 0:
        checks[back + keep - 1] = [expected]
    return _test(f"{alert.name} fires and resolves", {series: f"{text} {bound!r}+0x{keep}"}, alert, options, checks)


def _own_tests(analyses: Sequence[str], options: RuleOptions) -> Iterable[dict[str, Any]]:
    alerts = {alert.name: alert for alert in own_alerts(analyses[:1], options)}
    longest = max(alert.times(options)[0] for alert in alerts.values())
    late, aged = (_steps(age + longest) + 2 for age in (max(options.stale_after, RECENT), UPKEEP_AGE))
    up, ones, zeros = f'up{{job="{options.job}"}}', f"1+0x{late}", f"0+0x{late}"
    last = [_series(LAST_SUCCESS.name, {"analysis": name}) for name in analyses]
    stale = [Expected({"analysis": name}) for name in analyses]
    job, lost = Expected({"job": options.job}), {"source": "otlp", "reason": "open_end"}
    dropped, sealed = _series(DROPPED.name, lost), _series(UPKEEP_SUCCESS.name, {"task": "seal"})
    cases: tuple[tuple[str, str, Series, Sequence[Expected]], ...] = (
        ("InfractlDeadMansSwitch", "fires always", {}, [Expected()]),
        ("InfractlDown", "fires while scrapes fail", {up: zeros}, [job]),
        ("InfractlDown", "fires without a scrape job", {}, [job]),
        ("InfractlDown", "is quiet while up", {up: ones}, ()),
        ("InfractlAnalysisStale", "fires on age", {up: ones, **dict.fromkeys(last, zeros)}, stale),
        ("InfractlAnalysisStale", "fires when it never succeeded", {up: ones}, stale),
        (
            "InfractlAnalysisStale",
            "is quiet while fresh",
            {up: ones, **dict.fromkeys(last, f"0+{STEP_S}x{late}")},
            (),
        ),
        ("InfractlIngestDropping", "fires while rows are refused", {dropped: f"0+1x{late}"}, [Expected(lost)]),
        ("InfractlIngestDropping", "is quiet while none is", {dropped: f"7+0x{late}"}, ()),
        ("InfractlQueueFull", "fires near the limit", _queue(95, late), [Expected(value=0.95)]),
        ("InfractlQueueFull", "is quiet at its bound", _queue(90, late), ()),
        ("InfractlDiskAlmostFull", "fires while little is free", _free(199, late), [Expected(value=1.99)]),
        ("InfractlDiskAlmostFull", "is quiet at its bound", _free(200, late), ()),
        ("InfractlUpkeepStale", "fires on age", {sealed: f"0+0x{aged}"}, [Expected({"task": "seal"})]),
        ("InfractlUpkeepStale", "is quiet while fresh", {sealed: f"0+{STEP_S}x{aged}"}, ()),
    )
    for name, case, series, expected in cases:
        at = aged if sealed in series else late
        yield _test(f"{name} {case}", series, alerts[name], options, {at: expected})


def _queue(rows: int, steps: int) -> Series:
    return {QUEUE.name: f"{rows}+0x{steps}", QUEUE_LIMIT.name: f"100+0x{steps}"}


def _free(bytes_free: int, steps: int) -> Series:
    return {STORE_FREE.name: f"{bytes_free}+0x{steps}", STORE_MIN_FREE.name: f"100+0x{steps}"}


def _test(
    name: str, series: Series, alert: Alert, options: RuleOptions, checks: Mapping[int, Sequence[Expected]]
) -> dict[str, Any]:
    return {
        "name": name,
        "interval": f"{STEP_S}s",
        "input_series": [{"series": s, "values": values} for s, values in series.items()],
        "alert_rule_test": [
            {
                "eval_time": format_duration(timedelta(seconds=STEP_S * at)),
                "alertname": alert.name,
                "exp_alerts": [_alert(alert, options, e) for e in expected],
            }
            for at, expected in sorted(checks.items())
        ],
    }


def _alert(alert: Alert, options: RuleOptions, expected: Expected) -> dict[str, Any]:
    kept = {alert.kept[field]: value for field, value in expected.labels.items()}
    return {
        "exp_labels": {**alert.rule_labels(options), **kept},
        "exp_annotations": alert.shown(options, expected.labels, expected.value),
    }


def _steps(span: timedelta) -> int:
    return math.ceil(span.total_seconds() / STEP_S)


def _series(metric: str, labels: Mapping[str, str]) -> str:
    inner = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{inner}}}" if inner else metric
