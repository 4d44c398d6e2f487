"""Bodies of the Overview page: what is wrong and since when, then every service and every target."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from dash import html

from analytics.result import Result, Severity, Status, distinct, ranked
from dashboards import words
from dashboards.figures import DIRECT_LABELS, service_timeline
from dashboards.panels import (
    empty,
    figure,
    finding_row,
    icon,
    link,
    notes,
    panel,
    sentence,
    severity_mark,
    table,
)
from dashboards.source import Answers
from dashboards.state import State
from dashboards.theme import Colours, named
from dashboards.verdict import list_title, verdict
from store.window import parse_time

if TYPE_CHECKING:
    import polars as pl

EVIDENCE = {"overview": "/", "p99": "/latency", "latency": "/segments"}
"""Pages of findings that are not at the name of their analysis."""

FILL = """# traces: point any OpenTelemetry exporter here
OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318

# metrics: add the engine to infractl.yaml
scrape_configs:
  - job_name: vllm
    static_configs:
      - targets: ["127.0.0.1:8000"]"""
FILLS = "Requests from OpenTelemetry traces or scraped engine metrics fill this page. Either of these starts it:"


def headline(answers: Answers, state: State, _colours: Colours) -> list[Any]:
    """Return the sentence on everything that was analysed, and the findings behind it."""
    results = answers.results
    if not results:
        return [sentence(Severity.WARNING, "Nothing could be analysed", "The panels below say what failed.")]
    now = max(result.window.end for result in results.values())
    found = [(finding, name) for name, result in results.items() for finding in distinct(result.findings)]
    pages = {id(finding): EVIDENCE.get(name, f"/{name}") for finding, name in found}
    findings = ranked([finding for finding, _ in found])
    rows = [finding_row(finding, pages[id(finding)], state, now) for finding in findings]
    listed = [panel(list_title(findings), "", html.Ul(rows, className="findings"))] if rows else []
    failed = tuple(failure.what for failure in answers.failures)
    return [verdict(findings, results, now, failed, state.zone), *listed]


def services(answers: Answers, state: State, colours: Colours) -> list[Any]:
    """Return a tile per service, the timeline and the targets."""
    result = answers.results.get("overview")
    if result is None:
        return []
    frame, targets = result.frames["services"], result.frames["targets"]
    if result.status is Status.EMPTY or frame.is_empty():
        return [empty("No requests in this window", FILLS, FILL), *_targets(targets, result, state.zone)]
    colours.learn(frame["service"].drop_nulls().to_list())
    tiles = html.Div([_tile(row, state, colours) for row in frame.iter_rows(named=True)], className="tiles span-12")
    theme = named(state.theme)
    drawn = service_timeline(result.frames["timeline"], result, lambda name: colours.of(name, theme), theme, state.zone)
    names = frame["service"].drop_nulls().to_list()
    legend = [_keys(names, state, colours)] if len(names) > DIRECT_LABELS else []
    timeline = figure(drawn, "services", 12, *legend)
    return [tiles, timeline, *notes(result.notes), *_targets(targets, result, state.zone)]


def store(answers: Answers, state: State, _colours: Colours) -> list[Any]:
    """Return what is stored, from where and up to when, and what was refused and why."""
    status = answers.status
    if not status:
        return []
    sources, drops = status.get("sources") or [], status.get("drops") or []
    refused = sum(item["rows"] for item in drops)
    title = f"{words.plural(refused, 'row')} refused" if refused else "Every row that came was stored"
    stored = sum((status.get("tables") or {}).values())
    facts = [words.plural(stored, "row") + " stored", words.quantity(status.get("size_bytes"), "bytes") + " on disk"]
    rows = [
        (
            item["source"],
            item["table"],
            words.count(item["rows"]),
            words.count(item["duplicates"]),
            _short(item["last_row"], state.zone),
        )
        for item in sources
    ]
    why = [(item["source"], item["reason"], words.count(item["rows"])) for item in drops]
    tables = [table(("source", "reason refused", "rows"), why, right=(2,))] if why else []
    tables += (
        [table(("source", "table", "rows", "duplicates", f"last row ({state.zone.key})"), rows, right=(2, 3))]
        if rows
        else []
    )
    return [panel(title, " · ".join(facts), *tables)]


def _short(at: str | None, zone: ZoneInfo) -> str:
    return words.MISSING if at is None else words.instant(parse_time(at), zone)[:-4]


def _tile(row: Mapping[str, Any], state: State, colours: Colours) -> html.Div:
    name = row["service"] or words.UNNAMED
    dot = html.Span(className="dot", style={"background": colours.of(name, named(state.theme))})
    head = link([dot, name, icon("chevron")], state.href("/latency", focus=name), className="name")
    facts = (
        ("P99 TTFT", words.seconds(row.get("ttft_p99_s"))),
        ("P50 TTFT", words.seconds(row.get("ttft_p50_s"))),
        ("P99 E2E", words.seconds(row.get("e2e_p99_s"))),
        ("requests/s", words.number(row.get("requests_per_second"))),
        ("errors", words.ratio(row.get("error_ratio"))),
        ("tokens out/s", words.number(row.get("output_tokens_per_second"))),
    )
    pairs = [html.Div([html.Dt(label), html.Dd(value)]) for label, value in facts]
    return html.Div([head, html.Dl(pairs)], className="tile")


def _keys(names: list[str], state: State, colours: Colours) -> html.P:
    theme = named(state.theme)
    keys = [
        html.Span([html.Span(className="key", style={"background": colours.of(n, theme)}), n]) for n in sorted(names)
    ]
    return html.P(keys, className="legend")


def _targets(frame: "pl.DataFrame", result: Result, zone: ZoneInfo) -> list[Any]:
    if frame.is_empty():
        return []
    down, silent = frame.filter(frame["up"] == 0).height, frame["up"].null_count()
    count = words.plural(frame.height, "target")
    title = f"{down} of {count} down" if down else f"All {count} up" if not silent else f"{count}, {silent} not scraped"
    rows = [
        (
            _state(row["up"]),
            row["job"],
            row["instance"],
            words.moment(row["since"], result.window.end, zone),
            words.moment(row["last_ts"], result.window.end, zone),
        )
        for row in frame.sort("up", "job", "instance").iter_rows(named=True)
    ]
    listed = table(("state", "job", "instance", "since", "last sample"), rows)
    return [panel(title, f"scraped targets; times in {zone.key}", listed, name="targets")]


def _state(up: float | None) -> Any:
    if up is None:
        return "not scraped any more"
    return severity_mark(None, "Up") if up else severity_mark(Severity.CRITICAL, "Down")
