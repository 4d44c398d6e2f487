"""A report in one file: every answer with its figures, tables and notes, to attach to an incident.

The pages are those of the dashboard (`dashboards.answer`); plotly is inlined once, compressed, and a policy in the file
forbids it every request.
"""

import gzip
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from dash import html

from analytics.catalog import load
from analytics.result import Finding, Result, Severity, Status, distinct, ranked
from dashboards import words
from dashboards.answer import answer, rests_on
from dashboards.catalog import PAGES
from dashboards.cells import FRAME
from dashboards.panels import failed, finding_row, panel, severity_mark
from dashboards.source import Answers, Failure, attempt
from dashboards.state import State
from dashboards.static import to_html
from dashboards.theme import Colours
from dashboards.verdict import verdict
from store.zone import DEFAULT

ASSETS = Path(__file__).parent / "assets"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What the browser allows the file: nothing from outside, so that a report cannot call home whatever it quotes."""

OWN_PAGE = ("overview", "p99")
"""Analyses whose page is not the one of any analysis."""

WORST = 40
"""Findings listed at the top; each section has its own."""


@dataclass(frozen=True, slots=True)
class Cover:
    """What a report says of itself: where the data come from and what made it."""

    store: str
    version: str
    made: str


def page(results: Sequence[Result], failures: Sequence[Failure], cover: Cover, zone: ZoneInfo = DEFAULT) -> str:
    """Return the whole file. Raises nothing for what an analysis lacks: that is said in its section."""
    state, colours = State(theme="light", zone=zone, offline=True), Colours()
    spoken = [result for result in results if result.status is Status.OK]
    silent = [result for result in results if result.status is not Status.OK]
    title = f"Infrastructure report, {words.moment(_end(results), None, zone)} {zone.key}" if results else "Report"
    parts = [
        _cover(title, results, cover, zone),
        *([_summary(results, failures, state)] if len(results) + len(failures) > 1 else []),
        *[_section(result, state, colours) for result in spoken],
        *([_silent(silent)] if silent else []),
        *[html.Section(failed(failure), className="answer") for failure in failures],
    ]
    body = to_html([html.Main(parts, className="report")])
    return _file(title, body, drawn='class="plot"' in body)


def _end(results: Sequence[Result]) -> Any:
    return max(result.window.end for result in results)


def _cover(title: str, results: Sequence[Result], cover: Cover, zone: ZoneInfo) -> html.Header:
    spans = sorted({str(result.window) for result in results})
    window = spans[0] if len(spans) == 1 else f"{len(spans)} windows, each named in its section" if spans else "none"
    facts = (
        ("window", window),
        ("store", cover.store),
        ("infractl", cover.version),
        ("made", cover.made),
        ("times in", zone.key),
    )
    pairs = [html.Div([html.Dt(name), html.Dd(value)]) for name, value in facts]
    return html.Header([html.H1(title), html.Dl(pairs, className="facts-of")], className="cover")


def _summary(results: Sequence[Result], failures: Sequence[Failure], state: State) -> html.Section:
    """Return the sentence over all analyses, the worst findings, and where each analysis stands."""
    found = [(finding, result) for result in results for finding in distinct(result.findings)]
    source = {id(finding): result for finding, result in found}
    findings = ranked([finding for finding, _ in found])
    lead = (
        [verdict(findings, {r.analysis: r for r in results}, _end(results), [f.what for f in failures], state.zone)]
        if results
        else []
    )
    rows = [_row(finding, source[id(finding)], state) for finding in findings[:WORST]]
    more = len(findings) - len(rows)
    rest = [html.P(f"… and {more} more in the sections", className="quiet")] if more > 0 else []
    listed = [panel("Findings, worst first", "", html.Ul(rows, className="findings"), *rest)] if rows else []
    return html.Section([*lead, *listed, panel("Analyses", "", _contents(results, failures))], className="answer")


def _row(finding: Finding, result: Result, state: State) -> html.Li:
    row = finding_row(finding, f"/{result.analysis}", state, result.window.end)
    row.children[2] = html.A(load(result.analysis).title, href=f"#{result.analysis}", className="evidence")
    return row


def _contents(results: Sequence[Result], failures: Sequence[Failure]) -> html.Ul:
    rows = [
        html.Li([_mark(result), html.A(load(result.analysis).title, href=_anchor(result)), _state(result)])
        for result in results
    ]
    rows += [html.Li([severity_mark(Severity.WARNING, "Failed"), f"{f.what}: {f.fact}"]) for f in failures]
    return html.Ul(rows, className="contents")


def _mark(result: Result) -> html.Span:
    """Return the worst severity; what was not judged is not said to be well."""
    return severity_mark(result.worst) if result.status is Status.OK else severity_mark(Severity.INFO, "Not judged")


def _anchor(result: Result) -> str:
    return f"#{result.analysis}" if result.status is Status.OK else "#silent"


def _state(result: Result) -> html.Span:
    if result.status is not Status.OK:
        return html.Span("; ".join(result.notes) or str(result.status), className="quiet")
    amount = len(distinct(result.findings))
    return html.Span(words.plural(amount, "finding") if amount else "nothing found", className="quiet")


def _section(result: Result, state: State, colours: Colours) -> html.Section:
    analysis = load(result.analysis)
    head = html.Div([html.H2(analysis.title), html.P(analysis.doc, className="quiet")], className="chapter")
    body = _folded([part for part in _body(result, state, colours) if not _is_tabs(part)])
    return html.Section([head, *body], className="answer", id=result.analysis)


def _body(result: Result, state: State, colours: Colours) -> list[Any]:
    """Return what the dashboard's page of the analysis shows; the page of any analysis where it has none or fails."""
    own = [part.body for page in PAGES for part in page.panels if part.needs == (result.analysis,)]
    answers = Answers({result.analysis: result})
    for body in own:
        made = attempt(f"the page of {result.analysis}", partial(body, answers, state, colours))
        if not isinstance(made, Failure):
            return [*made, rests_on(result, caveats=False)] if result.analysis in OWN_PAGE else made
    return answer(result, state, colours, load(result.analysis).frames)


def _folded(parts: list[Any]) -> list[Any]:
    """Put the frames into one fold: they are for looking up, figures and notes for reading."""
    frames = [part for part in parts if FRAME in str(getattr(part, "className", "")).split()]
    rest = [part for part in parts if part not in frames]
    if not frames:
        return rest
    face = html.Summary(f"{words.plural(len(frames), 'table')} with all numbers", className="button")
    fold = html.Details([face, html.Div(frames, className="fold")])
    last = [rest.pop()] if str(getattr(rest[-1], "id", "")).endswith("-notes") else []
    return [*rest, fold, *last]


def _is_tabs(part: Any) -> bool:
    return getattr(part, "className", "") == "choices"


def _silent(results: Sequence[Result]) -> html.Section:
    rows = [
        html.Li([html.B(load(result.analysis).title), f" ({result.status}): ", "; ".join(result.notes) or "no data"])
        for result in results
    ]
    body = panel("What could not be said", "no data, or not enough of it", html.Ul(rows, className="facts"))
    return html.Section(body, className="answer", id="silent")


def _file(title: str, body: str, drawn: bool) -> str:
    styles = "".join((ASSETS / name).read_text(encoding="utf-8") for name in ("dashboard.css", "icons.css"))
    tables = (ASSETS / "tables.js").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en" data-theme="light">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{styles}{STYLE}</style>\n</head>\n<body>\n{body}\n"
        f"<script>{tables}</script>\n{_plotly() if drawn else ''}</body>\n</html>\n"
    )


def _plotly() -> str:
    """Return plotly, compressed to a third, and the lines that unpack it and draw."""
    from plotly.offline import get_plotlyjs

    packed = b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()
    return f'<script type="application/gzip" id="plotly">{packed}</script>\n<script>{DRAW}</script>\n'


STYLE = """
.report { max-width: 1240px; margin: 0 auto; padding: 32px 24px 64px; }
.answer { display: grid; grid-template-columns: minmax(0, 1fr); gap: 16px; margin-top: 40px; }
.answer > * { grid-column: 1 / -1 !important; }
.cover h1 { font-size: 26px; letter-spacing: -0.02em; }
.facts-of { display: flex; gap: 8px 32px; flex-wrap: wrap; margin-top: 12px; }
.facts-of dt { color: var(--quiet); font-size: 12px; }
.chapter { border-top: 2px solid var(--line); padding-top: 24px; }
.chapter h2 { font-size: 20px; }
.contents li { display: grid; grid-template-columns: 104px 200px 1fr; gap: 12px; align-items: baseline; }
.contents li + li { margin-top: 8px; }
.contents .severity { justify-self: start; }
.fold { display: grid; grid-template-columns: minmax(0, 1fr); gap: 16px; margin-top: 16px; }
.plot .lost { color: var(--quiet); padding: 24px 0; }
@media print {
  .panel { break-inside: avoid; } .turner { display: none; } body { background: #fff; }
}
"""

DRAW = """
(async () => {
  const places = [...document.querySelectorAll(".plot")];
  try {
    const packed = document.getElementById("plotly").textContent;
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    const config = { displayModeBar: false, displaylogo: false, responsive: true };
    for (const place of places) {
      const figure = JSON.parse(place.querySelector("script").textContent);
      await Plotly.newPlot(place, figure.data, figure.layout, config);
    }
  } catch (error) {
    for (const place of places) {
      if (place.querySelector(".main-svg")) continue;
      const lost = document.createElement("p");
      lost.className = "lost";
      lost.textContent = "This browser could not draw the figure; the tables below have its numbers.";
      place.append(lost);
    }
  }
  document.documentElement.dataset.drawn = "true";
})();
"""
