"""Findings as alerts for Alertmanager's API, for a site without Prometheus."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from analytics.analysis import Analysis
from analytics.result import Finding, Result
from rules.alert import RuleOptions
from rules.diagnosis import diagnosis
from rules.naming import alert_labels
from rules.own import own_alerts
from rules.pages import page_of, url_at
from store.window import format_time
from store.zone import DEFAULT, local_text

PATH = "/api/v2/alerts"
VALID_FOR = timedelta(minutes=15)
"""An alert that is not pushed again resolves after this: several misses of a job that runs every few minutes."""

AlertPost = Mapping[str, Any]


def alerts(
    results: Iterable[tuple[Analysis[Any], Result]],
    options: RuleOptions,
    now: datetime,
    valid_for: timedelta = VALID_FOR,
    zone: ZoneInfo = DEFAULT,
) -> list[AlertPost]:
    """Return one alert per finding, an ended one with its end, and the dead man's switch.

    Times within a summary are written in `zone`; startsAt and endsAt are UTC.
    """
    found = [
        _alert(analysis, finding, options, now + valid_for, zone) for analysis, r in results for finding in r.findings
    ]
    switch = own_alerts((), options)[0]
    labels = {"alertname": switch.name, **switch.rule_labels(options)}
    notes = {
        "summary": switch.summary,
        "runbook_url": options.runbook(switch.runbook),
        "dashboard_url": url_at(options.dashboard_url, page_of(None)),
    }
    return [*found, _post(labels, notes, now, now + valid_for)]


def deliver(
    posts: Sequence[AlertPost], send: Callable[[Sequence[AlertPost]], str | None]
) -> list[tuple[AlertPost, str]]:
    """Send the alerts; return those refused, each with the reason.

    `send` returns None, or why the whole post was refused: then each half is sent alone, until only the bad ones fail.
    """
    if not posts or (reason := send(posts)) is None:
        return []
    if len(posts) == 1:
        return [(posts[0], reason)]
    middle = len(posts) // 2
    return deliver(posts[:middle], send) + deliver(posts[middle:], send)


def _alert(
    analysis: Analysis[Any], finding: Finding, options: RuleOptions, valid_until: datetime, zone: ZoneInfo
) -> AlertPost:
    runbooks = {trigger.name: trigger.runbook for trigger in analysis.triggers}
    labels = {
        **alert_labels({**finding.labels, **options.labels}),
        "alertname": finding.trigger,
        "severity": str(finding.severity),
        "analysis": analysis.name,
    }
    notes = {
        "summary": local_text(finding.summary, zone),
        "description": local_text(diagnosis(analysis.name, finding, options.dashboard_url), zone),
        "dashboard_url": url_at(options.dashboard_url, page_of(analysis.name), finding.labels.get("service", "")),
    }
    if finding.trigger in runbooks:
        notes["runbook_url"] = options.runbook(runbooks[finding.trigger])
    return _post(labels, notes, finding.since, finding.until or valid_until)


def _post(labels: Mapping[str, str], annotations: Mapping[str, str], start: datetime, end: datetime) -> AlertPost:
    """Body of one alert; an alert cannot start after its end."""
    times = {"startsAt": format_time(min(start, end)), "endsAt": format_time(end)}
    return {"labels": dict(labels), "annotations": dict(annotations), **times}
