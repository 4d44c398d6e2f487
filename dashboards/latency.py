"""Body of the Latency page: is the P99 unusual, what drives it, how far to trust that, and which requests they were."""

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import orjson
from dash import html

from analytics.p99.words import name_of_target
from analytics.result import Finding, Result, Severity, Status, distinct, ranked
from dashboards import words
from dashboards.figures import contribution_bars, p99_timeline, residual_plot
from dashboards.fit import basis, coefficients, trust
from dashboards.panels import (
    empty,
    figure,
    finding_row,
    link,
    panel,
    said,
    sentence,
    table,
    trace_link,
    when,
)
from dashboards.source import Answers
from dashboards.state import State
from dashboards.theme import Colours, named

if TYPE_CHECKING:
    import polars as pl

FILL = """# any OpenTelemetry exporter; vLLM: --otlp-traces-endpoint
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces"""
FILLS = "Traces of single requests fill this page; drivers of the P99 come from their attributes and from metrics."
TAIL = 20
"""Requests listed: the worst ones; more would be searched, not read."""


def body(answers: Answers, state: State, colours: Colours) -> list[Any]:
    """Return the P99 of the service in view, its drivers, the fit and the requests behind the tail."""
    result = answers.results.get("p99")
    if result is None:
        return []
    windows = result.frames["windows"]
    if result.status is Status.EMPTY or (windows.is_empty() and not result.notes):
        return [
            sentence(Severity.INFO, "No latency to judge in this window", "; ".join(result.notes)),
            _targets(state),
            empty("No request with a measured latency", FILLS, FILL),
        ]
    services = sorted({name or words.UNNAMED for name in windows["service"]})
    colours.learn(services)
    focus = state.focus if state.focus and state.focus in services else _worst(result, services)
    part = {name: _of(frame, focus) for name, frame in result.frames.items()}
    findings = distinct([f for f in result.findings if (f.labels.get("service") or words.UNNAMED) == focus])
    what = f"P99 {name_of_target(str(result.params.get('target', 'ttft_s')))}"
    tabs = html.Div([_tabs(services, focus, state, colours), _targets(state)], className="choices")
    return [
        _sentence(findings, part, result, what, focus, state.zone),
        tabs,
        *_panels(part, findings, result, what, state),
    ]


def _panels(
    part: dict[str, "pl.DataFrame"], findings: list[Finding], result: Result, what: str, state: State
) -> list[Any]:
    theme = named(state.theme)
    fitted = _at_fitted_quantile(what, part["fit"])
    shown = []
    if not part["windows"].is_empty():
        shown.append(figure(p99_timeline(part["windows"], findings, result, what, theme, state.zone), "p99"))
    if not part["contributions"].is_empty():
        shown.append(
            figure(contribution_bars(part["contributions"], basis(part["fit"]), fitted, theme), "contributions", 5)
        )
    shown += [coefficients(part, fitted)] if not part["coefficients"].is_empty() else []
    shown += _episodes(findings, state, result)
    shown.append(trust(part, result, state))
    if state.residuals and not part["residuals"].is_empty():
        shown.append(
            figure(
                residual_plot(part["residuals"], _value(part["fit"], "residual_lag1"), result, theme, state.zone),
                "residuals",
            )
        )
    return [*shown, *_tail(part["tail"], what, state)]


def _sentence(
    findings: list[Finding], part: dict[str, "pl.DataFrame"], result: Result, what: str, focus: str, zone: ZoneInfo
) -> html.Div:
    end = result.window.end
    lasting = [finding for finding in findings if finding.until is None]
    if findings:
        first = (lasting or findings)[0]
        lead, reason = said(first)
        text = lead if lasting else f"Over since {words.moment(first.until, end, zone)} {zone.key}: {lead}"
        return sentence(first.severity if lasting else None, text, f"{when(first, end, zone)}.", reason)
    if result.status is Status.REFUSED and part["windows"].is_empty():
        return sentence(Severity.INFO, f"{what} of {focus} cannot be judged", "; ".join(result.notes))
    last = part["windows"].drop_nulls("p99")
    value = words.seconds(last["p99"][-1]) if not last.is_empty() else words.MISSING
    start = words.moment(result.window.start, end, zone)
    since = f"No episode outside its band since {start} {zone.key}.{_lead(part['contributions'])}"
    return sentence(None, f"{what} of {focus} is {value}, as usual", since, _lead(part["contributions"]))


def _lead(shares: "pl.DataFrame") -> str:
    known = shares.drop_nulls("share").sort("share", descending=True)
    return (
        f"Most associated with {known['driver'][0]} ({words.ratio(known['share'][0])})." if not known.is_empty() else ""
    )


def _worst(result: Result, services: list[str]) -> str:
    """Return the service of the worst finding, else the one with the highest P99."""
    with_findings = [f.labels.get("service") or words.UNNAMED for f in ranked(result.findings)]
    known = [name for name in with_findings if name in services]
    if known or not services:
        return known[0] if known else words.UNNAMED
    return result.frames["windows"].sort("p99", nulls_last=False)["service"][-1] or words.UNNAMED


def _of(frame: "pl.DataFrame", service: str) -> "pl.DataFrame":
    return frame.filter(frame["service"].fill_null("") == ("" if service == words.UNNAMED else service))


def _tabs(services: list[str], focus: str, state: State, colours: Colours) -> html.Nav:
    theme = named(state.theme)
    tabs = [
        link(
            [html.Span(className="dot", style={"background": colours.of(name, theme)}), name],
            state.href(focus=name),
            className="choice on" if name == focus else "choice",
        )
        for name in services
    ]
    return html.Nav(tabs)


def _targets(state: State) -> html.Nav:
    options = ((None, "TTFT"), ("e2e_s", "End to end"), ("tpot_s", "Time per output token"))
    picked = [
        link(text, state.href(target=target), className="preset on" if target == state.target else "preset")
        for target, text in options
    ]
    return html.Nav(picked, className="presets")


def _episodes(findings: list[Finding], state: State, result: Result) -> list[html.Section]:
    if len(findings) < 2:
        return []
    rows = [finding_row(finding, "/latency", state, result.window.end) for finding in findings]
    return [panel(f"{len(findings)} episodes in this window", "", html.Ul(rows, className="findings"))]


def _value(frame: "pl.DataFrame", name: str) -> float | None:
    return None if frame.is_empty() else frame[name][0]


def _at_fitted_quantile(what: str, fit: "pl.DataFrame") -> str:
    """Name the quantile that was fitted, which is lower than P99 where the tail is too thin."""
    tau = _value(fit, "tau")
    return what if tau is None else what.replace("P99", f"P{100 * tau:g}", 1)


def _tail(frame: "pl.DataFrame", what: str, state: State) -> list[html.Section]:
    if frame.is_empty():
        return []
    worst = frame.sort("value", descending=True, nulls_last=True).head(TAIL)
    rows = [
        (
            trace_link(row["trace_id"], state),
            html.Span(words.instant(row["ts"], state.zone), className="at"),
            words.seconds(row["value"]),
            words.seconds(row["fitted"]),
            html.Span(_drivers(row["drivers"]), className="drivers"),
        )
        for row in worst.iter_rows(named=True)
    ]
    heads = ("trace", f"start ({state.zone.key})", what.removeprefix("P99 "), "fitted", "drivers")
    subtitle = f"the slowest {words.plural(worst.height, 'request')}; a trace id opens its spans"
    return [panel("The requests behind the tail", subtitle, table(heads, rows, right=(2, 3)))]


def _drivers(text: str | None) -> list[html.Span]:
    values = orjson.loads(text) if text else {}
    return [html.Span([f"{name} ", html.B(words.number(value))]) for name, value in values.items()]
