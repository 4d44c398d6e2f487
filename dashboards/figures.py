"""Figures: frames in, plotly figures (plain dicts) out, each with the finding as its title. No Dash in here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np

from analytics.result import Finding, Result
from dashboards import words
from dashboards.arrays import POINTS, Array, at_ms, epoch_ms, floats, thinned, typed
from dashboards.drawing import (
    Figure,
    Scale,
    Span,
    axis,
    band,
    base_layout,
    hatch,
    label,
    label_ends,
    line,
    time_axis,
    whiskers,
)
from dashboards.theme import Theme
from store.zone import DEFAULT

if TYPE_CHECKING:
    import polars as pl

DIRECT_LABELS = 5
"""Lines labelled at their ends; beyond that a legend below says which is which."""

Colour = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure with its finding (title) and what it stands on (subtitle): window, n, method."""

    title: str
    subtitle: str
    figure: Figure
    height: int


def p99_timeline(
    frame: "pl.DataFrame",
    findings: Sequence[Finding],
    result: Result,
    what: str,
    theme: Theme,
    zone: ZoneInfo = DEFAULT,
) -> Drawn:
    """Draw P99 per window of one service with its expected band, points outside it and the episodes found.

    `frame` has ts, n, p50, p99, baseline, low and high (s); null is a gap. `what` names the quantity ("P99 TTFT").
    """
    x, p99 = epoch_ms(frame["ts"]), floats(frame["p99"])
    low, high, p50 = floats(frame["low"]), floats(frame["high"]), floats(frame["p50"])
    scale = Scale.seconds(p99)
    hover = f"%{{y:.4~g}} {scale.unit}"
    figure: Figure = {
        "data": [
            band(x, low * scale.factor, high * scale.factor, theme),
            line(x, p50 * scale.factor, "P50", theme.quiet, hover, zone, line={"width": 1.2, "dash": "dot"}),
            line(x, p99 * scale.factor, "P99", theme.accent, hover, zone),
            _outside(x, p99, low, high, scale, theme),
        ],
        "layout": base_layout(theme, 320, f"p99 {result.window.span}"),
    }
    span = Span.of(np.concatenate((p99, high, low, p50)) * scale.factor)
    layout = figure["layout"]
    layout["xaxis"] = time_axis(theme, result.window, x, zone)
    layout["yaxis"] = span.axis(theme, f"{what} ({scale.unit})")
    layout["margin"] |= {"r": 88, "t": 24}
    _mark_episodes(layout, findings, theme, zone)
    hatch(figure, x[np.isfinite(p99)], theme)
    labels = (("P99", p99, theme.accent), ("expected", high, theme.accent), ("P50", p50, theme.quiet))
    label_ends(layout, [(name, y * scale.factor, colour) for name, y, colour in labels], span, theme.quiet)
    return Drawn(_p99_title(p99, findings, what, zone), _p99_subtitle(frame, x, result, zone), figure, 320)


def contribution_bars(frame: "pl.DataFrame", fit: str, what: str, theme: Theme) -> Drawn:
    """Draw the share of each driver in the explained part of the P99 with its interval (driver, share, ci_low, …)."""
    frame = frame.sort("share", descending=True, nulls_last=True)
    share, low, high = (floats(frame[name]) * 100 for name in ("share", "ci_low", "ci_high"))
    names = [name.replace(" + ", "<br>+ ") for name in frame["driver"].to_list()]
    top = max(float(np.nanmax(np.concatenate((share, high)))) if np.isfinite(share).any() else 1.0, 1.0)
    height = 72 + 40 * len(names)
    layout = base_layout(theme, height, "contributions")
    layout |= {"hovermode": "closest", "bargap": 0.45}
    layout["xaxis"] = axis(
        theme, "share of the explained part (%)", range=[min(0.0, float(np.nanmin(low, initial=0))), top * 1.75]
    )
    layout["yaxis"] = axis(theme, autorange="reversed", ticklabelstandoff=8)
    layout["yaxis"] |= {"showgrid": False, "tickfont": {"color": theme.ink, "size": 13}}
    layout["annotations"] = [
        label(max(a, c) if c == c else a, name, _share_text(a, b, c), theme.ink, xanchor="left", xshift=8)
        for name, a, b, c in zip(names, share, low, high, strict=True)
        if a == a
    ]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": typed(share),
        "y": names,
        "marker": {"color": theme.accent, "opacity": 0.85},
        "error_x": whiskers(share, low, high, theme),
        "hovertemplate": "%{y}: %{x:.1f} %<extra></extra>",
    }
    return Drawn(_share_title(frame, what), fit, {"data": [bars], "layout": layout}, height)


def residual_plot(
    frame: "pl.DataFrame", lag1: float | None, result: Result, theme: Theme, zone: ZoneInfo = DEFAULT
) -> Drawn:
    """Draw measured minus fitted P99 per window over time (ts, residual in s), around zero."""
    x, y = epoch_ms(frame["ts"]), floats(frame["residual"])
    scale = Scale.seconds(np.abs(y))
    kept_x, kept_y = thinned(x, y)
    layout = base_layout(theme, 220, f"residuals {result.window.span}")
    layout["margin"]["r"] = 88
    layout["xaxis"] = time_axis(theme, result.window, x, zone)
    layout["yaxis"] = axis(theme, f"measured - fitted ({scale.unit})") | {
        "zeroline": True,
        "zerolinecolor": theme.quiet,
    }
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": typed(kept_x),
        "y": typed(kept_y * scale.factor),
        "marker": {"size": 4, "color": theme.accent, "opacity": 0.7},
        "hovertemplate": f"%{{y:.3~g}} {scale.unit}<extra>residual</extra>",
    }
    title = "What the fit leaves over"
    if lag1 is not None:
        left = "little is left" if abs(lag1) < 0.3 else "a pattern is left"
        title += f": lag-1 autocorrelation {lag1:.2f}, {left}"
    size = f"{words.plural(frame.height, 'request')}{_reduced(frame.height)}"
    return Drawn(title, size, {"data": [dots], "layout": layout}, 220)


def service_timeline(
    frame: "pl.DataFrame", result: Result, colour: Colour, theme: Theme, zone: ZoneInfo = DEFAULT
) -> Drawn:
    """Draw requests, errors and P99 TTFT per service as three small panels on one time axis.

    `frame` has service, ts, requests, error_ratio, ttft_p99_s per window.
    """
    x_all, ttft = epoch_ms(frame["ts"]), floats(frame["ttft_p99_s"])
    scale = Scale.seconds(ttft)
    figure: Figure = {"data": [], "layout": base_layout(theme, 420, f"overview {result.window.span}")}
    layout = figure["layout"]
    layout["xaxis"] = time_axis(theme, result.window, x_all, zone, anchor="y3")
    errors = (100 * frame["error_ratio"]).alias("errors_percent")
    frame = frame.with_columns(errors, (frame["ttft_p99_s"] * scale.factor).alias("ttft")).sort("ts")
    names = frame["service"].unique().drop_nulls().sort().to_list()
    for number, column, title, unit, *domain in (
        ("", "requests", "requests", "requests", 0.72, 1.0),
        ("2", "errors_percent", "errors (%)", "%", 0.40, 0.64),
        ("3", "ttft", f"P99 TTFT ({scale.unit})", scale.unit, 0.0, 0.32),
    ):
        span = Span.of(floats(frame[column]))
        layout[f"yaxis{number}"] = span.axis(theme, title, domain=domain, nticks=4)
        hover = f"%{{y:.4~g}} {unit}"
        lines = [_service_line(frame, name, column, colour(name), hover, f"y{number}", zone) for name in names]
        figure["data"] += lines
        if len(names) <= DIRECT_LABELS:
            ends = [(name, floats(_of(frame, name)[column]), colour(name)) for name in names]
            label_ends(layout, ends, span, theme.quiet, f"y{number}", 0.19)
        hatch(figure, np.unique(x_all), theme, f"y{number}")
    layout["margin"]["r"] = 104
    return Drawn(
        _service_title(frame, zone),
        f"{_range_text(result, x_all, zone)} · per window of {_step_text(x_all)}",
        figure,
        420,
    )


def _of(frame: "pl.DataFrame", service: str) -> "pl.DataFrame":
    return frame.filter(frame["service"] == service)


def _service_line(
    frame: "pl.DataFrame", service: str, column: str, colour: str, hover: str, place: str, zone: ZoneInfo
) -> Figure:
    part = _of(frame, service)
    return line(epoch_ms(part["ts"]), floats(part[column]), service or words.UNNAMED, colour, hover, zone, yaxis=place)


def _outside(x: Array, y: Array, low: Array, high: Array, scale: Scale, theme: Theme) -> Figure:
    out = np.flatnonzero((y > high) | (y < low))
    kept_x, kept_y = thinned(x[out], y[out])
    return {
        "type": "scatter",
        "mode": "markers",
        "x": typed(kept_x),
        "y": typed(kept_y * scale.factor),
        "name": "outside the band",
        "marker": {"size": 7, "color": theme.mark, "symbol": "circle-open", "line": {"width": 1.6}},
        "hoverinfo": "skip",
    }


def _mark_episodes(layout: Figure, findings: Sequence[Finding], theme: Theme, zone: ZoneInfo) -> None:
    start, end = layout["xaxis"]["range"]
    for finding in findings:
        left = max(at_ms(finding.since), start)
        right = min(end if finding.until is None else at_ms(finding.until), end)
        if right <= left:
            continue
        box = {"type": "rect", "x0": left, "x1": right, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
        layout["shapes"].append(box | {"fillcolor": theme.episode, "line": {"width": 0}})
        layout["annotations"].append(
            label(left, 1, f"{finding.severity} {words.moment(finding.since, finding.since, zone)}", theme.mark)
            | {"yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        )


def _share_text(share: float, low: float, high: float) -> str:
    interval = f"  [{low:.0f}-{high:.0f}]" if low == low and high == high else ""
    return f"<b>{share:.0f} %</b>{interval}"


def _share_title(frame: "pl.DataFrame", what: str) -> str:
    if frame.is_empty() or frame["share"][0] is None:
        return f"No driver of the {what} could be identified"
    return f"{frame['driver'][0]} carries {words.ratio(frame['share'][0])} of what the drivers explain of the {what}"


def _p99_title(p99: Array, findings: Sequence[Finding], what: str, zone: ZoneInfo) -> str:
    lasting = [f for f in findings if f.until is None] or list(findings)
    if lasting:
        worst = max(lasting, key=lambda f: (f.severity.rank, f.since))
        reached, base = worst.evidence.get("p99"), worst.evidence.get("baseline")
        times = f", {words.number(reached / base)}× its baseline" if reached and base else ""
        until = "" if worst.until is None else f" to {words.moment(worst.until, worst.since, zone)}"
        since = f"{'' if until else 'since '}{words.moment(worst.since, None, zone)}{until} {zone.key}"
        return f"{what} {words.seconds(reached)}{times}, {since}"
    known = p99[np.isfinite(p99)]
    return f"{what} {words.seconds(float(known[-1]))}, inside its band" if known.size else f"No {what} in this window"


def _p99_subtitle(frame: "pl.DataFrame", x: Array, result: Result, zone: ZoneInfo) -> str:
    requests = words.plural(int(frame["n"].fill_null(0).sum()), "request")
    return f"{_range_text(result, x, zone)} · {requests} · raw, one point per {_step_text(x)}{_reduced(x.size)}"


def _service_title(frame: "pl.DataFrame", zone: ZoneInfo) -> str:
    known = frame.drop_nulls("ttft_p99_s")
    if known.is_empty():
        return "Requests and errors by service; no TTFT was measured"
    row = known.row(int(known["ttft_p99_s"].arg_max() or 0), named=True)
    at = words.moment(row["ts"], None, zone)
    return f"P99 TTFT peaked at {words.seconds(row['ttft_p99_s'])} ({row['service']}, {at})"


def _range_text(result: Result, x: Array, zone: ZoneInfo) -> str:
    end = result.window.end
    text = (
        f"{words.moment(result.window.start, None, zone)} to {words.moment(end, result.window.start, zone)} {zone.key}"
    )
    if x.size < 2 or (x.max() - x.min()) * 3 >= result.window.span.total_seconds() * 1000:
        return text
    first, last = (datetime.fromtimestamp(float(at) / 1000, tz=end.tzinfo) for at in (x.min(), x.max()))
    return f"{text} · data only {words.moment(first, None, zone)} to {words.moment(last, first, zone)}"


def _step_text(x: Array) -> str:
    distinct = np.unique(x)
    return words.seconds(float(np.median(np.diff(distinct))) / 1000) if distinct.size > 1 else "one window"


def _reduced(size: int) -> str:
    return f" · drawn with {POINTS:,} of {size:,} points, extremes kept" if size > POINTS else ""
