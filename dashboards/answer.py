"""The page of any analysis: the sentence, findings, figures, every frame as a table, and what all that rests on."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

from dash import html

from analytics.catalog import load
from analytics.result import Finding, Result, Status, distinct, ranked
from dashboards import words
from dashboards.cells import frame_table, pairs
from dashboards.charts.catalog import CHARTS
from dashboards.charts.plate import Chart, Plate
from dashboards.panels import empty, failed, figure, finding_row, link, notes, panel, sentence
from dashboards.source import Answers, Failure, attempt
from dashboards.state import State
from dashboards.theme import Colours, named
from dashboards.verdict import list_title, verdict

if TYPE_CHECKING:
    import polars as pl

    from analytics.result import Frames

LISTED = 30
"""Findings listed; the rest is counted."""

FILL = """# traces: point any OpenTelemetry exporter here
OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318

# metrics: add the engine to scrape_configs in infractl.yaml; infractl doctor says what is missing"""
FILLS = "Requests from OpenTelemetry traces or scraped metrics fill this page:"


def body_of(name: str) -> Callable[[Answers, State, Colours], list[Any]]:
    """Return the body of an analysis' page."""
    return partial(_body, name)


def answer(result: Result, state: State, colours: Colours, frames: "Frames") -> list[Any]:
    """Return everything an analysis says; `frames` declares its columns."""
    end = result.window.end
    findings = ranked(distinct(result.findings))
    lead = _lead(findings, result, end, state)
    if result.status is Status.EMPTY:
        why = "; ".join(result.notes) or FILLS
        return [lead, empty("Nothing to show", why, FILL), rests_on(result)]
    shown = [lead, *_findings(findings, result, state), *_tabs(result, state, colours), *charts(result, state)]
    return [*shown, *tables(result, state, frames), rests_on(result)]


def _lead(findings: Sequence[Finding], result: Result, end: datetime, state: State) -> html.Div:
    """Return the verdict; an analysis without triggers answers a question and finds nothing wrong or right."""
    analysis = load(result.analysis)
    if analysis.triggers or result.status is not Status.OK:
        return verdict(findings, {result.analysis: result}, end, (), state.zone)
    return sentence(None, analysis.title, analysis.doc)


def charts(result: Result, state: State, specs: Sequence[Chart] | None = None) -> list[Any]:
    """Return the figures of a Result for the service in view; one that fails says so in its place."""
    focus = in_view(result, state)
    plate = Plate(
        result,
        {name: _of(frame, focus) for name, frame in result.frames.items()},
        named(state.theme),
        state.zone,
        focus if focus is not None and len(services(result)) > 1 else "",
        lambda trace_id: state.href(f"/trace/{trace_id}"),
    )
    given = CHARTS.get(result.analysis, ()) if specs is None else specs
    shown: list[Any] = []
    for number, spec in enumerate(given):
        drawn = attempt(f"figure {number + 1} of {result.analysis}", partial(spec.draw, plate))
        if isinstance(drawn, Failure):
            shown.append(failed(drawn))
        elif drawn is not None:
            shown.append(figure(drawn, f"{result.analysis}-{number}"))
    return shown


def tables(result: Result, state: State, frames: "Frames") -> list[Any]:
    """Return every frame with rows as a table, and the names of those without in one line."""
    command = f"infractl analyze {result.analysis} --format csv"
    made = [frame_table(name, frame, frames.get(name, ()), state, command) for name, frame in result.frames.items()]
    none = [name.replace("_", " ") for name, frame in result.frames.items() if frame.is_empty()]
    without: list[Any] = [html.P(f"No rows: {', '.join(none)}.", className="quiet")] if none else []
    return [*(section for section in made if section is not None), *without]


def rests_on(result: Result, caveats: bool = True) -> html.Section:
    """Return notes (unless the page has them: `caveats`), parameters, and how to get the same on the command line."""
    given = {name: value for name, value in result.params.items() if value not in (None, "", (), [])}
    known: list[Any] = [html.Div(["parameters ", *pairs(given)], className="drivers")] if given else []
    window = str(result.window)
    command = html.Pre(f"infractl analyze {result.analysis} --window {window}{_options(result)}")
    said: list[Any] = [*notes(result.notes)] or [html.P("No caveats.", className="quiet")]
    said = said if caveats else []
    return panel("What this rests on", f"window {window}", *said, *known, command, name=f"{result.analysis}-notes")


def _options(result: Result) -> str:
    """Return the parameters that are not at their default, as options of the command line."""
    known = load(result.analysis).params()
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in result.params.items()}
    given = {name: value for name, value in plain.items() if value != getattr(known, name, value)}
    where = "".join(f" --where {quote(f'{name}={value}')}" for name, value in given.pop("where", ()))
    texts = {name: ",".join(value) if isinstance(value, (list, tuple)) else str(value) for name, value in given.items()}
    named = (f" --{name.replace('_', '-')} {quote(text or 'none')}" for name, text in texts.items())
    return "".join(named) + where


def services(result: Result) -> list[str]:
    """Return the services that the frames tell apart."""
    names = [frame["service"].drop_nulls().to_list() for frame in result.frames.values() if "service" in frame.columns]
    return sorted({name or words.UNNAMED for part in names for name in part})


def in_view(result: Result, state: State) -> str | None:
    """Return the service whose figures are drawn: the one chosen, that of the worst finding, or the fullest one."""
    known = services(result)
    if not known:
        return None
    worst = [f.labels.get("service") or words.UNNAMED for f in ranked(result.findings)]
    rows = {name: sum(_of(frame, name).height for frame in result.frames.values()) for name in known}
    return next((n for n in (state.focus, *worst) if n in known), max(known, key=lambda name: rows[name]))


def _body(name: str, answers: Answers, state: State, colours: Colours) -> list[Any]:
    result = answers.results.get(name)
    return [] if result is None else answer(result, state, colours, load(name).frames)


def _of(frame: "pl.DataFrame", service: str | None) -> "pl.DataFrame":
    """Return the rows of a service; of a path through services, those of the service it begins in."""
    label = next((name for name in ("entry", "service") if name in frame.columns), None)
    if service is None or label is None:
        return frame
    return frame.filter(frame[label].fill_null("") == ("" if service == words.UNNAMED else service))


def _findings(findings: Sequence[Finding], result: Result, state: State) -> list[html.Section]:
    if not findings:
        return []
    rows = [_finding(finding, result, state) for finding in findings[:LISTED]]
    more = len(findings) - LISTED
    rest = [html.P(f"… and {more} more", className="quiet")] if more > 0 else []
    return [panel(list_title(findings), "", html.Ul(rows, className="findings"), *rest)]


def _finding(finding: Finding, result: Result, state: State) -> html.Li:
    """Return a finding, with what else its evidence says in small facts below."""
    row = finding_row(finding, state.path, state, result.window.end)
    facts = _facts(finding.evidence)
    if facts:
        row.children[1].children.append(html.Div(pairs(facts), className="facts-line"))
    return row


def _facts(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of the evidence is short enough to read: numbers, texts, lists of texts; traces stand elsewhere."""
    return {
        name: value
        for name, value in evidence.items()
        if name != "trace_ids" and value not in (None, "", [], {}) and len(str(value)) <= 160
    }


def _tabs(result: Result, state: State, colours: Colours) -> list[Any]:
    known, focus = services(result), in_view(result, state)
    ours = CHARTS.get(result.analysis, ())
    if len(known) < 2 or all(getattr(spec, "whole", False) for spec in ours):
        return []
    colours.learn(known)
    theme = named(state.theme)
    tabs = [
        link(
            [html.Span(className="dot", style={"background": colours.of(name, theme)}), name],
            state.href(focus=name),
            className="choice on" if name == focus else "choice",
        )
        for name in known
    ]
    return [html.Div(html.Nav(tabs), className="choices")]
