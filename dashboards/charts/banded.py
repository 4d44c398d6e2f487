"""Lines with what is usual around them, one under the other on one time axis, the unusual stretches marked."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dashboards.arrays import Array, at_ms, epoch_ms, floats
from dashboards.charts.episodes import short
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, Scale, Span, axis, band, base_layout, label, line, time_axis
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

PANELS = 6
"""Series drawn; the frame has a few more."""
PANEL = 118
HEAD = 0.2
"""Share of a panel's height above it that its name takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Banded:
    """A panel for each series of a frame (ts, value, low, high, unit); `marks` is the frame of its episodes.

    Both frames have the columns of `key`; `loud` is the column and text of an episode that has the strong colour.
    """

    frame: str
    key: tuple[str, ...]
    marks: str
    title: str
    loud: tuple[str, str] = ("", "")

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the panels in the order of the frame; None without a known value."""
        frame = plate.frame(self.frame, *self.key, "ts", "value", "low", "high", "unit")
        if frame is None:
            return None
        parts = frame.partition_by(*self.key, as_dict=True, maintain_order=True)
        known = [(key, part) for key, part in parts.items() if part["value"].is_not_null().sum() > 1][:PANELS]
        if not known:
            return None
        height = 64 + PANEL * len(known)
        layout = base_layout(plate.theme, height, f"{self.frame} {plate.result.window.span}")
        layout["margin"] |= {"t": 8, "l": 72}
        times = epoch_ms(frame["ts"])
        layout["xaxis"] = time_axis(plate.theme, plate.result.window, times, plate.zone)
        layout["xaxis"] |= {"range": [float(times.min()), float(times.max())], "anchor": f"y{len(known)}"}
        figure: Figure = {"data": [], "layout": layout}
        for place, (key, part) in enumerate(known, 1):
            self._panel(plate, figure, place, len(known), key, part)
        more = f"{len(parts) - len(known)} more in the table" if len(parts) > len(known) else ""
        return Drawn(self.title.format(count=len(known)), plate.subtitle(more), figure, height)

    def _panel(
        self, plate: Plate, figure: Figure, place: int, count: int, key: tuple[object, ...], part: "pl.DataFrame"
    ) -> None:
        theme, name = plate.theme, f"y{place if place > 1 else ''}"
        value, low, high = (floats(part[column]) for column in ("value", "low", "high"))
        unit = str(part["unit"][0] or "")
        scale = Scale.seconds(value) if unit == "s" else Scale(100.0, "%") if unit == "ratio" else Scale(1.0, unit)
        x, value, low, high = epoch_ms(part["ts"]), value * scale.factor, low * scale.factor, high * scale.factor
        span = _span(value, low, high)
        top = 1 - (place - 1) / count
        domain = [max(0.0, top - 1 / count), top - HEAD / count]
        style = axis(theme, scale.unit[:14], range=[span.low, span.high], nticks=4, domain=domain, anchor="x")
        figure["layout"][f"yaxis{place if place > 1 else ''}"] = style
        figure["data"] += [
            band(x, low, high, theme) | {"yaxis": name},
            line(x, value, short(key[0]), theme.accent, f"%{{y:.4~g}} {scale.unit}", plate.zone, yaxis=name),
        ]
        text = ", ".join(plain(shown) for one in key if (shown := short(one)))
        spot = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        figure["layout"]["annotations"].append(label(0, domain[1], text, theme.ink, **spot))
        figure["layout"]["shapes"] += self._marked(plate, key, name, (float(x.min()), float(x.max())))

    def _marked(self, plate: Plate, key: tuple[object, ...], name: str, ends: tuple[float, float]) -> list[Figure]:
        """Shade the episodes of one series, within what is drawn."""
        frame = plate.frame(self.marks, *self.key, "start", "end")
        if frame is None:
            return []
        for column, value in zip(self.key, key, strict=True):
            frame = frame.filter(frame[column].eq_missing(value))
        edge = at_ms(plate.result.window.end)
        start, end = epoch_ms(frame["start"]), np.nan_to_num(epoch_ms(frame["end"]), nan=edge)
        column, text = self.loud
        loud = [row.get(column) == text for row in frame.iter_rows(named=True)]
        shown = zip(start, end, loud, strict=True)
        return [
            {
                "type": "rect", "xref": "x", "yref": f"{name} domain", "x0": max(float(a), ends[0]),
                "x1": min(max(float(b), float(a) + (ends[1] - ends[0]) / 300), ends[1]), "y0": 0, "y1": 1,
                "line": {"width": 0}, "fillcolor": plate.theme.mark if strong else plate.theme.quiet,
                "opacity": 0.22 if strong else 0.12, "layer": "below",
            }
            for a, b, strong in shown
            if b >= ends[0] and a <= ends[1]
        ]  # fmt: skip


def _span(value: Array, low: Array, high: Array) -> Span:
    """Range of all three; down to zero unless all is far above it, so that a temperature's shape can be seen."""
    known = np.concatenate([part[np.isfinite(part)] for part in (value, low, high)])
    least, most = float(known.min()), float(known.max())
    pad = 0.08 * (most - least or abs(most) or 1.0)
    floor = 0.0 if 0 <= least < 0.5 * most else least - pad
    return Span(floor, most + pad, log=False)
