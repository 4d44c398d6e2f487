"""Lines over time by bucket, with gaps where nothing was measured."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dashboards import words
from dashboards.arrays import Array, epoch_ms, floats
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, Scale, Span, base_layout, hatch, label, label_ends, line, time_axis
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

MOST = 5
"""Lines drawn of one figure; the table has all."""

Series = tuple[str, Array, Array]
"""Name, times and values of a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Columns over time. `columns` names them for the reader; `title` may name {peak} and {at} of the first.

    `mark` is a labelled horizontal line, such as a limit. With `by` the first column has a line for each of its texts.
    """

    frame: str
    columns: tuple[tuple[str, str], ...]
    axis: str
    title: str
    unit: str = ""
    ts: str = "ts"
    mark: tuple[float, str] | None = None
    by: str = ""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the lines; None without a known value."""
        names = [name for name, _ in self.columns]
        frame = plate.frame(self.frame, self.ts, *names, *([self.by] if self.by else []))
        if frame is None:
            return None
        frame = frame.sort(self.ts)
        x, values = epoch_ms(frame[self.ts]), [floats(frame[name]) for name in names]
        if x.size < 2 or not np.isfinite(values[0]).any():
            return None
        scale = Scale.seconds(np.concatenate(values)) if self.unit == "s" else Scale(1.0, self.unit)
        scale = Scale(100.0, "%") if self.unit == "ratio" else scale
        figure = self._figure(plate, x, self._series(frame, scale), scale)
        peak = int(np.nanargmax(values[0]))
        at = words.moment(frame[self.ts][peak], None, plate.zone)
        text = words.quantity(float(values[0][peak]), self.unit)
        return Drawn(self.title.format(peak=text, at=at), plate.subtitle(), figure, 260)

    def _series(self, frame: "pl.DataFrame", scale: Scale) -> list[Series]:
        if not self.by:
            x = epoch_ms(frame[self.ts])
            return [(text, x, floats(frame[name]) * scale.factor) for name, text in self.columns]
        names = frame[self.by].unique(maintain_order=True).to_list()[:MOST]
        parts = [(plain(name), frame.filter(frame[self.by].eq_missing(name))) for name in names]
        column = self.columns[0][0]
        return [(name, epoch_ms(part[self.ts]), floats(part[column]) * scale.factor) for name, part in parts]

    def _figure(self, plate: Plate, x: Array, series: list[Series], scale: Scale) -> Figure:
        theme = plate.theme
        figure: Figure = {"data": [], "layout": base_layout(theme, 260, f"{self.frame} {plate.result.window.span}")}
        layout = figure["layout"]
        layout["xaxis"] = time_axis(theme, plate.result.window, x, plate.zone)
        marked = [np.array([self.mark[0] * scale.factor])] if self.mark else []
        span = Span.of(np.concatenate((*(y for _, _, y in series), *marked)))
        lowest = float(np.nanmin(np.concatenate([y for _, _, y in series])))
        if lowest < 0:  # as far below zero as above: one that is far gone would flatten the rest
            span = Span(max(lowest * 1.1, -span.high), span.high, log=False)
        layout["yaxis"] = span.axis(theme, f"{self.axis} ({scale.unit})" if scale.unit else self.axis)
        layout["margin"]["r"] = 128
        hover, colours = f"%{{y:.4~g}} {scale.unit}", (theme.accent, theme.quiet, *theme.series[1:])
        drawn = list(zip(series, colours, strict=False))
        figure["data"] = [line(at, y, text, colour, hover, plate.zone) for (text, at, y), colour in drawn]
        label_ends(layout, [(text, y, colour) for (text, _, y), colour in drawn], span, theme.quiet)
        hatch(figure, np.unique(np.concatenate([at[np.isfinite(y)] for _, at, y in series])), theme)
        if self.mark:
            level, text = self.mark[0] * scale.factor, self.mark[1]
            place = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": level, "y1": level}
            layout["shapes"].append(place | {"line": {"color": theme.mark, "width": 1, "dash": "dash"}})
            spot = {"xref": "paper", "yref": "y domain", "xanchor": "left", "yanchor": "bottom"}
            layout["annotations"].append(label(0, span.height(level), text, theme.mark, **spot))
        return figure
