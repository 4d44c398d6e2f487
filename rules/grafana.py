"""A Grafana dashboard of every signal: a row per analysis, a panel per signal, bounds of triggers as lines.

Grafana's classic JSON model, which every version imports.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from analytics.analysis import Analysis
from analytics.result import Severity, Signal, Trigger
from rules.alert import RuleOptions
from rules.naming import label_names, metric_name
from rules.pages import page_of, url_at
from store.window import format_duration

SCHEMA = 41
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {
    "s": "s", "seconds": "s", "ratio": "percentunit", "share": "percentunit", "bytes": "bytes", "per_s": "reqps",
    "rps": "reqps", "percent": "percent",
}  # fmt: skip
"""Grafana's names of units; others are shown as plain numbers."""
COLOURS = {Severity.INFO: "blue", Severity.WARNING: "orange", Severity.CRITICAL: "red"}
WIDTH, HEIGHT, COLUMNS = 8, 7, 3

Panel = dict[str, Any]


def to_json(analyses: Sequence[Analysis[Any]], options: RuleOptions | None = None) -> str:
    """Write the dashboard as a file that Grafana imports or provisions."""
    return json.dumps(dashboard(analyses, options or RuleOptions()), indent=1, ensure_ascii=False) + "\n"


def dashboard(analyses: Sequence[Analysis[Any]], options: RuleOptions) -> dict[str, Any]:
    """Return the dashboard as plain values."""
    panels = list(_alerts(options))
    top = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    for number, analysis in enumerate(one for one in analyses if one.signals):
        panels.append(_row(analysis, options, top + number))
    for number, panel in enumerate(inner for one in panels for inner in (one, *one.get("panels", ()))):
        panel["id"] = number + 1
    return {
        "uid": "infractl-signals",
        "title": "infractl: signals",
        "description": "What infractl publishes about your services; made by infractl rules build --grafana.",
        "tags": ["infractl"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "timezone": "browser",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": _variables(analyses)},
        "annotations": {"list": [_firing()]},
        "links": [_link("infractl", url_at(options.dashboard_url, "/"))],
        "panels": panels,
    }


def _variables(analyses: Sequence[Analysis[Any]]) -> list[dict[str, Any]]:
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1}
    named = sorted(metric_name(s.metric) for one in analyses for s in one.signals if "service" in s.labels)
    if not named:
        return [source]
    query = f'label_values({{__name__=~"{"|".join(named)}"}}, service)'
    service = {
        "name": "service", "label": "Service", "type": "query", "datasource": SOURCE, "refresh": 2, "sort": 1,
        "query": {"query": query, "refId": "services"}, "definition": query, "multi": True, "includeAll": True,
        "allValue": ".*", "current": {"text": "All", "value": "$__all"},
    }  # fmt: skip
    return [source, service]


def _firing() -> dict[str, Any]:
    expr = 'ALERTS{alertstate="firing", severity="critical"}'
    return {
        "name": "Critical alerts", "datasource": SOURCE, "enable": True, "iconColor": "red", "expr": expr,
        "titleFormat": "{{alertname}}", "textFormat": "{{service}} {{host}}", "step": "60s",
    }  # fmt: skip


def _alerts(options: RuleOptions) -> Iterator[Panel]:
    yield {
        "type": "alertlist", "title": "Alerts", "datasource": SOURCE, "gridPos": {"x": 0, "y": 0, "w": 12, "h": HEIGHT},
        "options": {
            "viewMode": "list", "groupMode": "default", "groupBy": [], "maxItems": 20, "sortOrder": 3,
            "dashboardAlerts": False, "alertName": "", "alertInstanceLabelFilter": "", "datasource": "${datasource}",
            "folder": "",
            "stateFilter": {"firing": True, "pending": True, "noData": False, "normal": False, "error": True},
        },
        "links": [_link("Runbooks", options.runbook(""))],
    }  # fmt: skip
    expr = 'count by (alertname, severity) (ALERTS{alertstate="firing", severity!="none"})'
    panel = _panel("timeseries", "Firing alerts", "How many alerts fire, by name.", expr, "{{alertname}} {{severity}}")
    yield panel | {"gridPos": {"x": 12, "y": 0, "w": 12, "h": HEIGHT}}


def _row(analysis: Analysis[Any], options: RuleOptions, y: int) -> Panel:
    """Return a collapsed row: Grafana asks for its panels when it is opened."""
    inside = [_signal(analysis, signal, options) for signal in analysis.signals]
    for number, panel in enumerate(inside):
        down, across = divmod(number, COLUMNS)
        panel["gridPos"] = {"x": across * WIDTH, "y": y + 1 + down * HEIGHT, "w": WIDTH, "h": HEIGHT}
    return {
        "type": "row", "title": analysis.title, "collapsed": True, "panels": inside,
        "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
    }  # fmt: skip


def _signal(analysis: Analysis[Any], signal: Signal, options: RuleOptions) -> Panel:
    kept = label_names(signal.labels)
    only = '{service=~"$service"}' if kept.get("service") == "service" else ""
    expr = f"last_over_time({metric_name(signal.metric)}{only}[{format_duration(options.gap)}])"
    legend = " ".join(f"{{{{{name}}}}}" for name in kept.values()) or signal.name
    kind = "timeseries" if signal.labels else "stat"
    triggers = [trigger for trigger in analysis.triggers if trigger.signal == signal]
    title = signal.name.replace("_", " ").capitalize()
    panel = _panel(kind, title, signal.doc, expr, legend, UNITS.get(signal.unit, "short"))
    panel["links"] = [_link("Open in infractl", url_at(options.dashboard_url, page_of(analysis.name)))]
    panel["links"] += [_link(f"Runbook: {trigger.name}", options.runbook(trigger.runbook)) for trigger in triggers]
    panel["fieldConfig"]["defaults"] |= _bounds(triggers)
    return panel


def _bounds(triggers: Sequence[Trigger]) -> dict[str, Any]:
    """Draw the bounds as lines; of a trigger on low values the step ends at its bound."""
    if not triggers:
        return {}
    marks: list[dict[str, Any]] = [{"value": None, "color": "green"}]
    for trigger in sorted(triggers, key=lambda one: one.bound):
        marks.append({"value": trigger.bound, "color": COLOURS[trigger.severity] if trigger.above else "green"})
        if not trigger.above:
            marks[-2]["color"] = COLOURS[trigger.severity]
    return {
        "thresholds": {"mode": "absolute", "steps": marks},
        "custom": {"thresholdsStyle": {"mode": "dashed"}, "showPoints": "never", "spanNulls": False},
    }


def _panel(kind: str, title: str, description: str, expr: str, legend: str, unit: str = "short") -> Panel:
    options: dict[str, dict[str, Any]] = {
        "timeseries": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "graphMode": "area", "colorMode": "value"},
    }
    return {
        "type": kind, "title": title, "description": description, "datasource": SOURCE, "options": options[kind],
        "targets": [{"refId": "A", "datasource": SOURCE, "expr": expr, "legendFormat": legend}],
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
    }  # fmt: skip


def _link(title: str, url: str) -> dict[str, Any]:
    return {"title": title, "type": "link", "url": url, "targetBlank": True}
