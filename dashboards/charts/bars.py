"""Bars and dots by label, with their intervals: which one is how large, and how sure is that."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dashboards import words
from dashboards.arrays import Array, floats, typed
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, Scale, axis, base_layout, label, whiskers
from dashboards.figures import Drawn
from dashboards.theme import Theme

if TYPE_CHECKING:
    import polars as pl

MOST = 20
"""Bars drawn; the table below has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Bars, or dots, of a column by label, the largest first (the smallest where not `largest`).

    `title` may name {label} and {value} of the first, `axis` says what is drawn. Dots lie around `centre`, which a
    line marks; bars start at zero. `only` and `drop` choose rows by the text of a column; a `whole` chart compares the
    services instead of showing the one in view.
    """

    frame: str
    label: tuple[str, ...]
    value: str
    axis: str
    title: str
    unit: str = ""
    low: str = ""
    high: str = ""
    centre: float | None = None
    largest: bool = True
    only: tuple[str, str] = ("", "")
    drop: tuple[str, str] = ("", "")
    whole: bool = False

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the values with their intervals; None without a value."""
        plate = replace(plate, frames=plate.result.frames, what="") if self.whole else plate
        limits = [name for name in (self.low, self.high) if name]
        frame = plate.frame(self.frame, self.value, *self.label, *limits)
        if frame is None:
            return None
        frame = self._kept(frame)
        if frame.is_empty() or not (frame[self.value] != 0).any():
            return None
        scale, names = self._scale(frame), self._names(frame)
        value = floats(frame[self.value]) * scale.factor
        nothing = np.full(value.size, np.nan)
        low, high = (floats(frame[name]) * scale.factor if name else nothing for name in (self.low, self.high))
        layout = self._layout(plate, names, np.concatenate((value, low, high)), scale)
        layout["annotations"] = [
            label(
                max(v, h) if h == h else v, i, self._text(v / scale.factor), plate.theme.ink, xanchor="left", xshift=8
            )
            for i, (v, h) in enumerate(zip(value, high, strict=True))
        ]
        trace = self._trace(value, low, high, scale, plate.theme)
        first = {"label": ", ".join(self._parts(frame, 0)), "value": self._text(value[0] / scale.factor)}
        title = self.title.format(**first)
        shown = f"{len(names)} of {plate.frames[self.frame].height} shown" if len(names) == MOST else ""
        return Drawn(title, plate.subtitle(shown), {"data": [trace], "layout": layout}, layout["height"])

    def _kept(self, frame: "pl.DataFrame") -> "pl.DataFrame":
        frame = frame.drop_nulls(self.value)
        frame = frame.filter(frame[self.only[0]] == self.only[1]) if self.only[0] else frame
        frame = frame.filter(frame[self.drop[0]] != self.drop[1]) if self.drop[0] else frame
        return frame.sort(self.value, descending=self.largest).head(MOST)

    def _parts(self, frame: "pl.DataFrame", row: int) -> list[str]:
        return [str(text) for name in self.label if (text := frame[name][row]) not in (None, "")] or [words.UNNAMED]

    def _names(self, frame: "pl.DataFrame") -> list[str]:
        return [plain(", ".join(self._parts(frame, row))) for row in range(frame.height)]

    def _scale(self, frame: "pl.DataFrame") -> Scale:
        if self.unit == "s":
            return Scale.seconds(np.abs(floats(frame[self.value])))
        return Scale(100.0, "%") if self.unit == "ratio" else Scale(1.0, self.unit)

    def _text(self, value: float) -> str:
        return words.quantity(value, self.unit) if self.unit in ("s", "ratio", "bytes", "USD") else words.number(value)

    def _layout(self, plate: Plate, names: list[str], known: Array, scale: Scale) -> Figure:
        height = 72 + 32 * len(names)
        layout = base_layout(plate.theme, height, f"{self.frame} {self.value}")
        layout |= {"hovermode": "closest", "bargap": 0.4}
        zero = 0.0 if self.centre is None else self.centre
        ends = (min(zero, float(np.nanmin(known))), max(zero, float(np.nanmax(known))))
        room = (ends[1] - ends[0]) or 1.0
        title = f"{self.axis} ({scale.unit})" if scale.unit else self.axis
        below = ends[0] - 0.04 * room if ends[0] < zero else ends[0]
        layout["xaxis"] = axis(plate.theme, title, range=[below, ends[1] + 0.3 * room])
        places: Figure = {
            "tickmode": "array",
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "showgrid": False,
        }
        layout["yaxis"] = axis(plate.theme, range=[len(names) - 0.5, -0.5], ticklabelstandoff=8, **places)
        layout["yaxis"]["tickfont"] = {"color": plate.theme.ink, "size": 12}
        if self.centre is not None:
            mark = {"type": "line", "x0": self.centre, "x1": self.centre, "y0": 0, "y1": 1, "yref": "paper"}
            layout["shapes"].append(mark | {"line": {"color": plate.theme.quiet, "width": 1, "dash": "dot"}})
        return layout

    def _trace(self, value: Array, low: Array, high: Array, scale: Scale, theme: Theme) -> Figure:
        shared = {
            "x": typed(value),
            "y": typed(np.arange(value.size, dtype=np.float64)),
            "error_x": whiskers(value, low, high, theme),
            "hovertemplate": f"%{{x:.4~g}} {scale.unit}<extra></extra>",
        }
        if self.centre is None:
            return {"type": "bar", "orientation": "h", "marker": {"color": theme.accent, "opacity": 0.85}, **shared}
        return {"type": "scatter", "mode": "markers", "marker": {"color": theme.accent, "size": 9}, **shared}
