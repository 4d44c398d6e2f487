"""The fit of a P99 in words and tables: slopes with units, how far to trust them, refusals as they are."""

from typing import TYPE_CHECKING, Any

import orjson
from dash import html

from analytics.result import Result
from dashboards import words
from dashboards.panels import link, notes, panel, table
from dashboards.state import State

if TYPE_CHECKING:
    import polars as pl

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


def coefficients(part: dict[str, "pl.DataFrame"], what: str) -> html.Section:
    """Return what each driver does to the P99: per step and from low to high, with intervals."""
    frame, wide = part["coefficients"], 12 if part["contributions"].is_empty() else 7
    inflation = dict(part["vif"].select("driver", "vif").iter_rows())
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
    return panel(f"What moves the {what}", subtitle, table(heads, rows, right=(1, 2, 3)), wide=wide)


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


def trust(part: dict[str, "pl.DataFrame"], result: Result, state: State) -> html.Section:
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
    mine = windows["service"][0] or words.UNNAMED if not windows.is_empty() else ""
    kept = [line for line in result.notes if not any(line.startswith(f"{name or words.UNNAMED}: ") for name in others)]
    return [line.removeprefix(f"{mine}: ") for line in kept]


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
        fair = "not calibrated" if "not calibrated" in str(fit.get("verdict")) else "calibrated"
        facts.append(f"{100 * coverage:.2f} % of later requests lie below it, {100 * tau:g} % should: {fair}.")
    if fit.get("dropped"):
        reasons = orjson.loads(fit.get("dropped_reasons") or "{}")
        listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        facts.append(f"{words.plural(fit['dropped'], 'request')} left out: {listed}.")
    if lag1 is not None:
        kind = "little" if abs(lag1) < 0.3 else "some"
        facts.append(f"Residuals have a lag-1 autocorrelation of {lag1:.2f}: {kind} pattern is left.")
    return facts


def basis(frame: "pl.DataFrame") -> str:
    """Write what the fit rests on, in one line; empty where there is none."""
    fit = frame.row(0, named=True) if not frame.is_empty() else {}
    if fit.get("n_tail") is None:
        return ""
    sizes = f"{words.plural(fit['n'] or 0, 'request')}, {words.count(fit['n_tail'])} in the tail"
    return f"{METHODS.get(fit['method'], fit['method'])} · {sizes} · 95 % intervals"
