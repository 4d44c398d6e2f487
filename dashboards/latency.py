"""Body of the Latency page: is the P99 unusual, what drives it, how far to trust that, and which requests they were."""

from typing import TYPE_CHECKING, Any

import orjson
from dash import html

from analytics.result import Finding, Result, Severity, Status
from dashboards import words
from dashboards.figures import contribution_bars, p99_timeline, residual_plot
from dashboards.panels import (
    distinct,
    empty,
    figure,
    link,
    notes,
    panel,
    ranked,
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

NAMES = {"ttft_s": "TTFT", "e2e_s": "end-to-end latency", "tpot_s": "time per output token", "queue_s": "queue time"}
FILL = """# any OpenTelemetry exporter; vLLM: --otlp-traces-endpoint
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces"""
FILLS = "Traces of single requests fill this page; drivers of the P99 come from their attributes and from metrics."
STEPS = {
    "s": (1e-3, "1 ms"),
    "ratio": (1e-2, "1 %"),
    "bytes": (2.0**30, "1 GiB"),
    "bytes/s": (1e9, "1 GB/s"),
    "tokens": (1e3, "1,000 tokens"),
    "requests": (1.0, "1 request"),
}
"""Step of a driver that people think in, by its base unit."""

METHODS = {"qr": "quantile regression", "ols": "least squares on windowed P99s"}

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
    what = f"P99 {NAMES.get(str(result.params.get('target')), 'TTFT')}"
    tabs = html.Div([_tabs(services, focus, state, colours), _targets(state)], className="choices")
    return [_sentence(findings, part, result, what, focus), tabs, *_panels(part, findings, result, what, state)]


def _panels(
    part: dict[str, "pl.DataFrame"], findings: list[Finding], result: Result, what: str, state: State
) -> list[Any]:
    theme = named(state.theme)
    shown = []
    if not part["windows"].is_empty():
        shown.append(figure(p99_timeline(part["windows"], findings, result, what, theme), "p99"))
    if not part["contributions"].is_empty():
        shown.append(
            figure(contribution_bars(part["contributions"], _fit_line(part["fit"]), what, theme), "contributions", 5)
        )
    shown += [_coefficients(part["coefficients"], part["vif"], what)] if not part["coefficients"].is_empty() else []
    shown.append(_fit(part, result, state))
    if state.residuals and not part["residuals"].is_empty():
        shown.append(
            figure(residual_plot(part["residuals"], _value(part["fit"], "residual_lag1"), result, theme), "residuals")
        )
    return [*shown, *_tail(part["tail"], what, state)]


def _sentence(
    findings: list[Finding], part: dict[str, "pl.DataFrame"], result: Result, what: str, focus: str
) -> html.Div:
    end = result.window.end
    lasting = [finding for finding in findings if finding.until is None]
    if findings:
        first = (lasting or findings)[0]
        lead, reason = said(first)
        return sentence(first.severity if lasting else None, lead, f"{when(first, end)}.", reason)
    if result.status is Status.REFUSED and part["windows"].is_empty():
        return sentence(Severity.INFO, f"{what} of {focus} cannot be judged", "; ".join(result.notes))
    last = part["windows"].drop_nulls("p99")
    value = words.seconds(last["p99"][-1]) if not last.is_empty() else words.MISSING
    since = (
        f"No episode outside its band since {words.moment(result.window.start, end)} UTC.{_lead(part['contributions'])}"
    )
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


def _coefficients(frame: "pl.DataFrame", vif: "pl.DataFrame", what: str) -> html.Section:
    inflation = dict(vif.select("driver", "vif").iter_rows())
    rows = [
        (
            row["term"],
            _slope(row),
            _with_interval(words.quantity(row.get("effect"), "s"), row.get("effect_low"), row.get("effect_high"), "s"),
            words.number(inflation.get(row["term"])),
        )
        for row in frame.filter(frame["term"] != "(intercept)").iter_rows(named=True)
    ]
    heads = ("driver", "one step more adds", "from its q10 to its q90", "VIF")
    subtitle = "with 95 % intervals; associated with, not proven to cause; a VIF above 10 means: moves with others"
    return panel(f"What moves the {what}", subtitle, table(heads, rows, right=(1, 2, 3)), wide=7)


def _step(row: dict[str, Any]) -> tuple[str, float]:
    """Write a slope per step that is readable, as '720 µs per 1 ms'; also return the step in the driver's unit."""
    size, text = STEPS.get(row["per"] or "", (1.0, f"1 {row['per']}" if row["per"] else ""))
    value = None if row["estimate"] is None else row["estimate"] * size
    return words.quantity(value, "s") + (f" per {text}" if text else ""), size


def _slope(row: dict[str, Any]) -> html.Div:
    text, size = _step(row)
    low, high = (None if row[name] is None else row[name] * size for name in ("ci_low", "ci_high"))
    return _with_interval(text, low, high, "s")


def _with_interval(text: str, low: float | None, high: float | None, unit: str) -> html.Div:
    if low is None or high is None:
        return html.Div(text)
    interval = f"{words.quantity(low, unit)} to {words.quantity(high, unit)}"
    return html.Div([html.B(text), html.Div(interval, className="subtitle")])


def _fit(part: dict[str, "pl.DataFrame"], result: Result, state: State) -> html.Section:
    """Say in words how far the fit can be trusted, and show refusals as they are."""
    fit = part["fit"].row(0, named=True) if not part["fit"].is_empty() else {}
    facts = [html.Li(text) for text in _facts(fit)]
    toggle = "Hide residuals" if state.residuals else "Show residuals"
    shown = (
        []
        if part["residuals"].is_empty()
        else [link(toggle, state.href(residuals=not state.residuals), className="button")]
    )
    verdict = fit.get("verdict") or ""
    title = f"How far to trust it: {verdict}" if verdict else "How far to trust it" if fit else "No fit"
    return panel(title, "", html.Ul(facts, className="facts"), *notes(_own(result, part["windows"])), *shown)


def _own(result: Result, windows: "pl.DataFrame") -> list[str]:
    """Leave out notes on other services; those on one start with its name."""
    others = set(result.frames["windows"]["service"].drop_nulls()) - set(windows["service"].drop_nulls())
    return [line for line in result.notes if not any(line.startswith(f"{name or '(none)'}: ") for name in others)]


def _facts(fit: dict[str, Any]) -> list[str]:
    if fit.get("n_tail") is None:
        return []
    tau, r1, coverage, lag1 = (fit.get(name) for name in ("tau", "r1", "coverage", "residual_lag1"))
    method = METHODS.get(fit["method"], str(fit["method"])).capitalize()
    sizes = f"{words.plural(fit['n'] or 0, 'request')}, {words.count(fit['n_tail'])} of them in the tail"
    independent = f"they amount to {words.count(fit['n_eff'])} independent windows"
    facts = [f"{method} at quantile {words.number(tau)} on {sizes}; {independent}."]
    if r1 is not None:
        low, high = fit.get("r1_low"), fit.get("r1_high")
        interval = f" (95 % interval {words.ratio(low)} to {words.ratio(high)})" if low is not None else ""
        facts.append(f"The drivers explain {words.ratio(r1)} of the quantile's loss, R1{interval}.")
    if coverage is not None and tau is not None:
        fair = "well calibrated" if abs(coverage - tau) <= 0.005 else "not calibrated"
        facts.append(f"{100 * coverage:.2f} % of later requests lie below it, {100 * tau:g} % should: {fair}.")
    if fit.get("dropped"):
        reasons = orjson.loads(fit.get("dropped_reasons") or "{}")
        listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        facts.append(f"{words.plural(fit['dropped'], 'request')} left out: {listed}.")
    if lag1 is not None:
        kind = "little" if abs(lag1) < 0.3 else "some"
        facts.append(f"Residuals have a lag-1 autocorrelation of {lag1:.2f}: {kind} pattern is left.")
    return facts


def _fit_line(frame: "pl.DataFrame") -> str:
    fit = frame.row(0, named=True) if not frame.is_empty() else {}
    if fit.get("n_tail") is None:
        return ""
    sizes = f"{words.plural(fit['n'] or 0, 'request')}, {words.count(fit['n_tail'])} in the tail"
    return f"{METHODS.get(fit['method'], fit['method'])} · {sizes} · 95 % intervals"


def _value(frame: "pl.DataFrame", name: str) -> float | None:
    return None if frame.is_empty() else frame[name][0]


def _tail(frame: "pl.DataFrame", what: str, state: State) -> list[html.Section]:
    if frame.is_empty():
        return []
    worst = frame.sort("value", descending=True, nulls_last=True).head(TAIL)
    rows = [
        (
            trace_link(row["trace_id"], state),
            words.instant(row["ts"]),
            words.seconds(row["value"]),
            words.seconds(row["fitted"]),
            html.Span(_drivers(row["drivers"]), className="drivers"),
        )
        for row in worst.iter_rows(named=True)
    ]
    heads = ("trace", "start (UTC)", what.removeprefix("P99 "), "fitted", "drivers")
    subtitle = f"the slowest {words.plural(worst.height, 'request')}; a trace id opens its spans"
    return [panel("The requests behind the tail", subtitle, table(heads, rows, right=(2, 3)))]


def _drivers(text: str | None) -> list[html.Span]:
    values = orjson.loads(text) if text else {}
    return [html.Span([f"{name} ", html.B(words.number(value))]) for name, value in values.items()]
