"""Pieces of figures: layout, axes, lines that stop at gaps, bands, hatches, labels at the ends of lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log10
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from dashboards.arrays import POINTS, Array, at_ms, broken, gaps, thinned, typed
from dashboards.theme import FONT, Theme
from dashboards.ticks import moments, ticks
from store.window import Window
from store.zone import DEFAULT

Figure = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scale:
    """Unit of an axis: values in base units times `factor` are in `unit`."""

    factor: float
    unit: str

    @classmethod
    def seconds(cls, values: Array) -> "Scale":
        """Choose milliseconds where nothing reaches two seconds, else seconds."""
        top = np.nanmax(values) if np.isfinite(values).any() else 0.0
        return cls(1000.0, "ms") if top < 2 else cls(1.0, "s")


@dataclass(frozen=True, slots=True)
class Span:
    """Range of a value axis, in the unit shown: linear from zero, or logarithmic where one peak would hide the rest."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Array) -> "Span":
        """Choose the range of values; logarithmic where the largest is 20 times the median."""
        known = values[np.isfinite(values)]
        top = float(known.max()) if known.size else 0.0
        above = known[known > 0]
        if above.size and top > 20 * float(np.median(above)):
            return cls(float(above.min()) * 0.8, top * 1.4, log=True)
        return cls(0.0, top * 1.12 if top > 0 else 1.0, log=False)

    def axis(self, theme: Theme, title: str, **more: Any) -> Figure:
        """Return the axis; a logarithmic one says so."""
        if not self.log:
            return axis(theme, title, range=[self.low, self.high], **more)
        ends = [log10(self.low), log10(self.high)]
        return axis(theme, f"{title}<br>log scale", type="log", range=ends, dtick=1, **more)

    def height(self, value: float) -> float:
        """Return where a value stands, 0 at the bottom and 1 at the top."""
        if self.log:
            return log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def base_layout(theme: Theme, height: int, revision: str) -> Figure:
    """Return the layout all figures share. A zoom is kept while `revision` stays the same."""
    return {
        "height": height,
        "margin": {"l": 64, "r": 16, "t": 8, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12, "color": theme.quiet},
        "hoverlabel": {"bgcolor": theme.surface, "bordercolor": theme.grid, "font": {"color": theme.ink}},
        "hovermode": "x unified",
        "showlegend": False,
        "uirevision": revision,
        "shapes": [],
        "annotations": [],
    }


def axis(theme: Theme, title: str = "", **more: Any) -> Figure:
    """Return an axis with its title (quantity and unit) in the theme's colours."""
    style = {"gridcolor": theme.grid, "linecolor": theme.grid, "zeroline": False, "automargin": True}
    named = {"title": {"text": title, "standoff": 8, "font": {"size": 12}}} if title else {}
    return {**style, **named, **more}


def time_axis(theme: Theme, window: Window, x: Array, zone: ZoneInfo = DEFAULT, **more: Any) -> Figure:
    """Return a date axis, labelled on the clock of a zone.

    It spans the window, or the data alone where they fill less than a third of it.
    """
    start, end = at_ms(window.start), at_ms(window.end)
    covered = (float(x.max() - x.min()) if x.size else 0.0) / (end - start)
    if x.size > 1 and covered < 1 / 3:
        pad = 0.02 * float(x.max() - x.min())
        start, end = float(x.min()) - pad, float(x.max()) + pad
    if zone.key != DEFAULT.key:
        shown = Window(*(datetime.fromtimestamp(at / 1000, UTC) for at in (start, end)))
        values, texts = ticks(shown, zone)
        more |= {"tickmode": "array", "tickvals": values, "ticktext": texts, "hoverformat": "%d %b %H:%M:%S UTC"}
    title = f"time ({zone.key})"
    return axis(theme, title, type="date", range=[start, end], showspikes=True, spikethickness=1, **more)


def line(x: Array, y: Array, name: str, colour: str, hover: str, zone: ZoneInfo = DEFAULT, **more: Any) -> Figure:
    """Return a line of at most 2,000 points that stops at gaps; `hover` is the format of y with its unit.

    In a zone other than UTC, which the hover's head is in, each point names its time there.
    """
    x, y = thinned(*broken(x, y))
    if zone.key != DEFAULT.key:
        hover, more["customdata"] = f"{hover} at %{{customdata}}", moments(x.tolist(), zone)
    style = {"color": colour, "width": 1.8, **more.pop("line", {})}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": typed(x),
        "y": typed(y),
        "name": name,
        "line": style,
        "connectgaps": False,
        "hovertemplate": f"{hover}<extra>{name}</extra>",
        **more,
    }


def band(x: Array, low: Array, high: Array, theme: Theme) -> Figure:
    """Return the area between two edges: one polygon for each stretch in which both are known."""
    at, upper = broken(x, high)
    _, lower = broken(x, low)
    keep = (
        np.linspace(0, at.size - 1, min(at.size, POINTS // 2 - 1)).astype(np.int64)
        if at.size
        else np.array([], np.int64)
    )
    at, lower, upper = at[keep], lower[keep], upper[keep]
    known = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper))
    stretches = [s for s in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1) if s.size]
    xs = [np.concatenate([at[s], at[s[::-1]], [np.nan]]) for s in stretches]
    ys = [np.concatenate([lower[s], upper[s[::-1]], [np.nan]]) for s in stretches]
    empty = np.array([], np.float64)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": typed(np.concatenate(xs) if xs else empty),
        "y": typed(np.concatenate(ys) if ys else empty),
        "name": "band",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": theme.band,
        "hoverinfo": "skip",
    }


def hatch(figure: Figure, x: Array, theme: Theme, over: str = "y") -> None:
    """Hatch the stretches without data over one y axis, on an invisible 0..1 axis of its own."""
    holes = gaps(np.sort(x), *figure["layout"]["xaxis"]["range"])
    if not holes:
        return
    number = 10 + int(over[1:] or 1)
    hidden = {"overlaying": over, "range": [0, 1], "visible": False, "fixedrange": True}
    figure["layout"][f"yaxis{number}"] = hidden
    starts, ends = np.array(holes).T
    figure["data"].append(
        {
            "type": "bar",
            "x": typed((starts + ends) / 2),
            "y": typed(np.ones(len(holes))),
            "width": typed(ends - starts),
            "yaxis": f"y{number}",
            "name": "no data",
            "marker": {"color": "rgba(0,0,0,0)", "pattern": {"shape": "/", "fgcolor": theme.grid, "size": 8}},
            "hovertemplate": "no data<extra></extra>",
        }
    )


def label_ends(
    layout: Figure, lines: Sequence[tuple[str, Array, str]], span: Span, ink: str, place: str = "y", apart: float = 0.07
) -> None:
    """Write each line's name at its last point, moved apart where two would touch (`apart`, as a share of the axis).

    The text is in `ink`, beside a dot in the line's colour: not all colours of lines are readable as text.
    """
    last = [(span.height(float(y[np.isfinite(y)][-1])), name, c) for name, y, c in lines if np.isfinite(y).any()]
    last.sort()
    for height, (_, name, colour) in zip(_spread([item[0] for item in last], apart), last, strict=True):
        dotted = f'<span style="color:{colour}">●</span> {name}'
        at = {"xref": "paper", "yref": f"{place} domain", "xanchor": "left", "yanchor": "middle"}
        layout["annotations"].append(label(1, height, dotted, ink, xshift=6, **at))


def _spread(heights: Sequence[float], apart: float) -> list[float]:
    """Move rising heights up until they are `apart`, then down again where the last would leave the plot."""
    risen, floor = [], -1.0
    for height in heights:
        floor = max(height, floor + apart)
        risen.append(floor)
    return [min(height, 1.0 - apart * left) for left, height in zip(range(len(risen) - 1, -1, -1), risen, strict=True)]


def label(x: Any, y: Any, text: str, colour: str, **more: Any) -> Figure:
    """Return a text without an arrow at a place of the plot."""
    return {"x": x, "y": y, "text": text, "showarrow": False, "font": {"color": colour, "size": 12}, **more}


def whiskers(value: Array, low: Array, high: Array, theme: Theme) -> Figure:
    """Return error bars from `low` to `high`; none where an end is NaN."""
    style = {"type": "data", "symmetric": False, "color": theme.ink, "thickness": 1.4, "width": 5}
    return {**style, "array": typed(np.nan_to_num(high - value)), "arrayminus": typed(np.nan_to_num(value - low))}
