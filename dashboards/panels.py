"""Pieces all pages are made of: the sentence, findings, figures, tables, notes, and what stands where data is not."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from dash import dcc, html

from analytics.result import Finding, Severity
from dashboards import words
from dashboards.figures import Drawn
from dashboards.source import Failure
from dashboards.state import State
from dashboards.theme import WORDS
from store.window import format_time
from store.zone import DEFAULT, local_text

Cell = Any
"""Text or a component."""


def icon(name: str) -> html.Span:
    """Return an icon of assets/dashboard.css; a word always stands beside it."""
    return html.Span(className=f"icon icon-{name}", role="presentation")


def severity_mark(severity: Severity | None, word: str = "") -> html.Span:
    """Return icon and word of a severity, or another word for it; None is OK."""
    return html.Span([icon(str(severity or "ok")), word or WORDS[severity]], className=f"severity {severity or 'ok'}")


def sentence(severity: Severity | None, text: Cell, *details: str) -> html.Div:
    """Return the one sentence a page starts with: what is wrong or that nothing is, then since when, and details."""
    body = html.Div([html.H1(text), *(html.P(line, className="since") for line in details if line)])
    return html.Div([severity_mark(severity), body], className=f"sentence {severity or 'ok'}", role="status")


def panel(title: str, subtitle: str, *children: Cell, wide: int = 12, name: str = "") -> html.Section:
    """Return a box with its finding as the title, `wide` of twelve columns; `#name` leads to it."""
    lines = [html.H2(title), *([html.P(subtitle, className="subtitle")] if subtitle else [])]
    body, look = [html.Div(lines, className="heading"), *children], f"panel span-{wide}"
    return html.Section(body, className=look, id=name) if name else html.Section(body, className=look)


def figure(drawn: Drawn, name: str, wide: int = 12, *more: Cell) -> html.Section:
    """Return a figure under its finding. `name` is unique on the page; a time axis zooms the page's range."""
    graph = dcc.Graph(
        id={"type": "figure", "name": name},
        figure=drawn.figure,
        config={"displaylogo": False, "displayModeBar": False, "responsive": True, "doubleClick": "reset"},
        style={"height": f"{drawn.height}px"},
    )
    return panel(drawn.title, drawn.subtitle, graph, *more, wide=wide)


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]], right: Sequence[int] = ()) -> html.Div:
    """Return a table; columns in `right` hold numbers."""
    side = ["number" if i in right else None for i in range(len(heads))]
    head = html.Thead(html.Tr([html.Th(text, className=c) for text, c in zip(heads, side, strict=True)]))
    body = [html.Tr([html.Td(cell, className=c) for cell, c in zip(row, side, strict=True)]) for row in rows]
    return html.Div(html.Table([head, html.Tbody(body)]), className="table")


def link(text: Cell, href: str, **more: Any) -> dcc.Link:
    """Return a link within the app; it keeps the page loaded and the history honest."""
    return dcc.Link(text, href=href, **more)


def trace_link(trace_id: str, state: State) -> dcc.Link:
    """Return a link to the page of one trace, by the first eight characters of its id."""
    return link(trace_id[:8], state.href(f"/trace/{trace_id}"), className="trace", title=f"trace {trace_id}")


def when(finding: Finding, now: datetime, zone: ZoneInfo = DEFAULT) -> str:
    """Say since when a finding holds and for how long."""
    start = words.moment(finding.since, now, zone)
    if finding.until is None:
        return f"Since {start} {zone.key}, for {words.span(now - words.aware(finding.since))}, still on"
    return f"{start} to {words.moment(finding.until, finding.since, zone)} {zone.key}, over"


def finding_row(finding: Finding, page: str, state: State, now: datetime) -> html.Li:
    """Return a finding: severity, summary, time and the way to its evidence (page, example traces)."""
    href = evidence(finding, page, state)
    go = html.A if href.startswith("#") else link
    traces = [trace_link(str(item), state) for item in finding.evidence.get("trace_ids", ())[:3]]
    examples = [html.Span(["example traces ", *_joined(traces)], className="examples")] if traces else []
    lead, more = (local_text(part, state.zone) for part in said(finding))
    detail = [html.Div(more)] if more else []
    text = html.Div(
        [go(lead, href=href, className="summary"), *detail, html.Div([when(finding, now, state.zone), *examples])]
    )
    proof = go(["Evidence", icon("chevron")], href=href, className="evidence")
    look = "finding" if finding.until is None else "finding over"
    return html.Li([severity_mark(finding.severity), text, proof], className=look)


def evidence(finding: Finding, page: str, state: State) -> str:
    """Return the URL that shows what a finding stands on: its page, its service in view or alone, or its target."""
    service = finding.labels.get("service")
    if page != "/":
        return state.href(page, focus=service)
    if service:
        return state.href("/", services=(service,))
    return "#targets" if "instance" in finding.labels else state.href("/")


def said(finding: Finding) -> tuple[str, str]:
    """Split a summary into its first statement, without the time that stands beside it, and the rest."""
    lead, _, more = finding.summary.partition("; ")
    since, until = format_time(finding.since), finding.until and format_time(finding.until)
    for time in (f"since {since}", f"from {since} to {until}"):
        lead = lead.removesuffix(time).rstrip(" ,")
    return lead, more[:1].upper() + more[1:] + ("." if more else "")


def notes(lines: Sequence[str]) -> list[html.Ul]:
    """Return refusals and caveats of an analysis, word for word."""
    return [html.Ul([html.Li([icon("info"), line]) for line in lines], className="notes")] if lines else []


def empty(title: str, fills: str, line: str) -> html.Section:
    """Return what stands where there is no data: what would fill it and the line to add."""
    return panel(title, "", html.P(fills), html.Pre(line), wide=12)


def failed(failure: Failure, works: str = "") -> html.Section:
    """Return what failed, what to do next, and what still works."""
    lines = [html.P(failure.fact, className="fact")]
    lines += [html.P(["Next step: ", failure.hint])] if failure.hint else []
    lines += [html.P(works, className="subtitle")] if works else []
    head = html.Div(
        [severity_mark(Severity.WARNING), html.H2(f"Could not get {failure.what}")], className="heading row"
    )
    return html.Section([head, *lines], className="panel failed span-12", role="alert")


def skeleton() -> html.Div:
    """Return what stands while a panel loads; after a second it says so in words (assets/dashboard.css)."""
    bones = [html.Div(className=f"bone {size}") for size in ("line", "short", "block")]
    return html.Div([*bones, html.P("Still reading the store …", className="slow")], className="skeleton")


def _joined(items: Sequence[Cell]) -> list[Cell]:
    return [part for item in items for part in (", ", item)][1:]
