"""Lines over time by bucket, with gaps where nothing was measured."""

from dataclasses import dataclass

import numpy as np

from dashboards import words
from dashboards.arrays import Array, epoch_ms, floats
from dashboards.charts.plate import Plate
from dashboards.drawing import Figure, Scale, Span, base_layout, hatch, label, label_ends, line, time_axis
from dashboards.figures import Drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Columns over time. `columns` names them for the reader; `title` may name {peak} and {at} of the first.

    `mark` is a labelled horizontal line, such as a limit.
    """

    frame: str
    columns: tuple[tuple[str, str], ...]
    axis: str
    title: str
    unit: str = ""
    ts: str = "ts"
    mark: tuple[float, str] | None = None

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the lines; None without a known value."""
        names = [name for name, _ in self.columns]
        frame = plate.frame(self.frame, self.ts, *names)
        if frame is None:
            return None
        frame = frame.sort(self.ts)
        x, values = epoch_ms(frame[self.ts]), [floats(frame[name]) for name in names]
        if x.size < 2 or not np.isfinite(values[0]).any():
            return None
        scale = Scale.seconds(np.concatenate(values)) if self.unit == "s" else Scale(1.0, self.unit)
        scale = Scale(100.0, "%") if self.unit == "ratio" else scale
        figure = self._figure(plate, x, [value * scale.factor for value in values], scale)
        peak = int(np.nanargmax(values[0]))
        at = words.moment(frame[self.ts][peak], None, plate.zone)
        text = words.quantity(float(values[0][peak]), self.unit)
        return Drawn(self.title.format(peak=text, at=at), plate.subtitle(), figure, 260)

    def _figure(self, plate: Plate, x: Array, values: list[Array], scale: Scale) -> Figure:
        theme = plate.theme
        figure: Figure = {"data": [], "layout": base_layout(theme, 260, f"{self.frame} {plate.result.window.span}")}
        layout = figure["layout"]
        layout["xaxis"] = time_axis(theme, plate.result.window, x, plate.zone)
        marked = [np.array([self.mark[0] * scale.factor])] if self.mark else []
        span = Span.of(np.concatenate((*values, *marked)))
        layout["yaxis"] = span.axis(theme, f"{self.axis} ({scale.unit})" if scale.unit else self.axis)
        layout["margin"]["r"] = 128
        hover, colours = f"%{{y:.4~g}} {scale.unit}", (theme.accent, theme.quiet, *theme.series[1:])
        drawn = list(zip([text for _, text in self.columns], values, colours, strict=False))
        figure["data"] = [line(x, y, text, colour, hover, plate.zone) for text, y, colour in drawn]
        label_ends(layout, drawn, span, theme.quiet)
        hatch(figure, x[np.isfinite(values[0])], theme)
        if self.mark:
            level, text = self.mark[0] * scale.factor, self.mark[1]
            place = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": level, "y1": level}
            layout["shapes"].append(place | {"line": {"color": theme.mark, "width": 1, "dash": "dash"}})
            spot = {"xref": "paper", "yref": "y domain", "xanchor": "left", "yanchor": "bottom"}
            layout["annotations"].append(label(0, span.height(level), text, theme.mark, **spot))
        return figure
