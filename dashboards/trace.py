"""Body of the Trace page: one request as a waterfall, every span with its attributes a click away."""

from typing import Any
from zoneinfo import ZoneInfo

import orjson
from dash import html

from analytics.result import Severity
from dashboards import words
from dashboards.panels import empty, panel, sentence, severity_mark, table
from dashboards.source import Answers
from dashboards.spans import Row, rows
from dashboards.state import State
from dashboards.theme import Colours, named
from store.tables import SPANS

FIRST = (
    "trace_id",
    "span_id",
    "parent_span_id",
    "ts",
    "duration_s",
    "name",
    "attributes",
    "resource",
    "events",
    "links",
)
"""Fields shown elsewhere or in their own block of the attribute table."""


def body(answers: Answers, state: State, colours: Colours) -> list[Any]:
    """Return the waterfall of the trace in the URL."""
    trace_id = state.path.rpartition("/")[2]
    lines = rows(answers.spans) if answers.spans is not None else []
    if not lines:
        fills = "The store holds no span of this trace: it may be older than the retention or was never sent here."
        return [
            sentence(Severity.INFO, f"No trace {trace_id}"),
            empty("Nothing to draw", fills, 'infractl sql "select max(ts) from spans"'),
        ]
    total = max((line.end_s or line.start_s) for line in lines) or 1e-9
    colours.learn(line.span["service"] or words.MISSING for line in lines)
    head = html.Div([html.Span("span"), _ruler(total), html.Span("time", className="number")], className="span head")
    bars = [_line(line, total, state, colours, alone=len(lines) == 1) for line in lines]
    start = f"starts {words.instant(lines[0].span['ts'], state.zone)} {state.zone.key}"
    subtitle = f"trace {trace_id} · {words.plural(len(lines), 'span')} · {start} · critical path in bold"
    title = "Where the time went, span by span"
    return [
        _sentence(lines, total),
        panel(title, subtitle, html.Div([head, *bars], className="waterfall"), _legend(lines)),
    ]


def _sentence(lines: list[Row], total: float) -> html.Div:
    broken = [line for line in lines if line.span["status"] == "error"]
    root = lines[0].span
    ttft = next((line.span["ttft_s"] for line in lines if line.span.get("ttft_s") is not None), None)
    first = f", first token after {words.seconds(ttft)}" if ttft is not None else ""
    text = f"{root['name']} took {words.seconds(total)}{first}"
    if broken:
        worst = broken[-1].span
        why = worst["error_code"] or worst["status_message"] or "no reason given"
        return sentence(Severity.WARNING, f"{text} and failed in {worst['name']}: {why}", _longest(lines))
    return sentence(None, text, _longest(lines))


def _longest(lines: list[Row]) -> str:
    parts = [(name, length) for line in lines if line.critical for name, length in line.segments]
    if not parts:
        return ""
    name, length = max(parts, key=lambda part: part[1])
    return f"The longest part of its requests is {name}, {words.seconds(length)}."


def _line(line: Row, total: float, state: State, colours: Colours, *, alone: bool) -> html.Details:
    span = line.span
    service = span["service"] or words.MISSING
    colour = colours.of(service, named(state.theme))
    marks = [html.Span(className="dot", style={"background": colour}), html.Span(span["name"] or words.MISSING)]
    marks += [severity_mark(Severity.WARNING, "Error")] if span["status"] == "error" else []
    marks += [html.Span("parent not stored", className="quiet")] if line.orphan else []
    label = html.Div(
        [*marks, html.Span(service, className="quiet")], className="name", style={"paddingLeft": f"{line.depth * 16}px"}
    )
    length = "open" if line.end_s is None else words.seconds(line.end_s - line.start_s)
    summary = [label, html.Div(_bar(line, total, colour), className="lane"), html.Span(length, className="number")]
    kind = "span critical" if line.critical else "span"
    return html.Details([html.Summary(summary, className=kind), _attributes(span, state.zone)], open=alone)


def _bar(line: Row, total: float, colour: str) -> list[html.Div]:
    """Bar of the span; its reported parts are drawn inside with falling strength, the first token as a tick."""
    end = total if line.end_s is None else line.end_s
    length = max(end - line.start_s, 1e-9)
    parts, at = [], 0.0
    for name, size in line.segments:
        share = min(size, length - at) / length
        parts.append(
            html.Div(className=f"part {name}", style={"width": f"{share:.4%}"}, title=f"{name} {words.seconds(size)}")
        )
        at += share * length
    place = {"left": f"{line.start_s / total:.4%}", "width": f"{length / total:.4%}", "background": colour}
    bars = [html.Div(parts, className="stretch" if line.end_s is not None else "stretch open", style=place)]
    ttft = line.span.get("ttft_s")
    if ttft is not None:
        tick = {"left": f"{min((line.start_s + ttft) / total, 1):.4%}"}
        bars.append(html.Div(className="tick", style=tick, title=f"first token after {words.seconds(ttft)}"))
    return bars


def _ruler(total: float) -> html.Div:
    ticks = [html.Span(words.seconds(total * i / 4), style={"left": f"{25 * i}%"}) for i in range(5)]
    return html.Div(ticks, className="lane ruler")


def _legend(lines: list[Row]) -> html.P:
    names = {name for line in lines for name, _ in line.segments}
    order = [name for name in ("queue", "prefill", "decode") if name in names]
    keys = [html.Span([html.Span(className=f"key {name}"), name]) for name in order]
    ticks = any(line.span.get("ttft_s") is not None for line in lines)
    keys += [html.Span([html.Span(className="key tick"), "first token"])] if ticks else []
    return html.P(keys, className="legend")


def _attributes(span: dict[str, Any], zone: ZoneInfo) -> html.Div:
    """Every field that has a value, with its unit; the rest of the attributes as they came."""
    units = {column.name: column.unit for column in SPANS.columns}
    known = [(k, _value(v, units.get(k, ""))) for k, v in span.items() if v is not None and k not in FIRST]
    more = [(k, _plain(v)) for source in ("attributes", "resource") for k, v in _object(span.get(source)).items()]
    ids = [
        ("span_id", span["span_id"]),
        ("parent_span_id", span["parent_span_id"] or "none"),
        (f"start ({zone.key})", words.instant(span["ts"], zone)),
    ]
    events = [
        (f"event {item.get('name', '')}", _plain(item.get("attributes", {}))) for item in _list(span.get("events"))
    ]
    rest = [("field", ids + known), ("attribute", more), ("event", events)]
    return html.Div([table((name, "value"), pairs) for name, pairs in rest if pairs], className="attributes")


def _value(value: Any, unit: str) -> str:
    if isinstance(value, float):
        return words.quantity(value, unit)
    return f"{value:,} {unit}" if isinstance(value, int) and unit else str(value)


def _object(text: str | None) -> dict[str, Any]:
    value = _read(text)
    return value if isinstance(value, dict) else {}


def _list(text: str | None) -> list[dict[str, Any]]:
    value = _read(text)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _read(text: str | None) -> Any:
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return {"unreadable": text}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
