"""The difference of two variants by quantile, with its interval: where in the distribution one is slower."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dashboards import words
from dashboards.arrays import Array, floats, typed
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, Scale, axis, band, base_layout, label
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

MOST = 6
"""Curves in one figure; more cannot be told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileDifference:
    """Estimate and interval over quantiles, around zero; the verdict of `verdicts` stands in the title."""

    frame: str
    q: str = "q"
    value: str = "estimate"
    low: str = "ci_low"
    high: str = "ci_high"
    unit: str = "s"
    verdicts: str = "difference"

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw each variant's curve, the first MOST of them; None where none has two quantiles."""
        frame = plate.frame(self.frame, self.q, self.value, self.low, self.high)
        if frame is None:
            return None
        frame = frame.drop_nulls(self.value).sort(self.q)
        curves = [(name, part) for name, part in _curves(frame) if part.height > 1]
        if not curves:
            return None
        known = np.concatenate([floats(part[name]) for _, part in curves for name in (self.value, self.low, self.high)])
        scale = Scale.seconds(np.abs(known)) if self.unit == "s" else Scale(1.0, self.unit)
        start = min(float(floats(part[self.q])[0]) for _, part in curves)
        layout = self._layout(plate, start, known * scale.factor, scale)
        data = self._one(plate, curves[0][1], scale) if len(curves) == 1 else []
        shown = curves[:MOST]
        if len(curves) > 1:
            colours = (plate.theme.accent, *plate.theme.series[1:])
            data = [self._line(part, scale, colour, name) for (name, part), colour in zip(shown, colours, strict=False)]
            layout |= {"showlegend": True, "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}}
        subtitle = "band: 95 % interval" if len(curves) == 1 else "bars: 95 % intervals, each against the baseline"
        if len(curves) > MOST:
            subtitle += f"; the first {MOST} of {len(curves)} variants"
        return Drawn(self._title(plate, shown), plate.subtitle(subtitle), {"data": data, "layout": layout}, 300)

    def _one(self, plate: Plate, part: "pl.DataFrame", scale: Scale) -> list[Figure]:
        x, low, high = (floats(part[name]) for name in (self.q, self.low, self.high))
        area = band(x, low * scale.factor, high * scale.factor, plate.theme)
        line = self._line(part, scale, plate.theme.accent, "")
        del line["error_y"]
        return [area, line]

    def _line(self, part: "pl.DataFrame", scale: Scale, colour: str, name: str) -> Figure:
        x, y, low, high = (floats(part[column]) for column in (self.q, self.value, self.low, self.high))
        said = f"{name}, " if name else ""
        bars = {"array": typed((high - y) * scale.factor), "arrayminus": typed((y - low) * scale.factor)}
        return {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": typed(x),
            "y": typed(y * scale.factor),
            "line": {"color": colour, "width": 2},
            "error_y": bars | {"type": "data", "symmetric": False, "color": colour, "thickness": 1, "width": 3},
            "hovertemplate": f"{said}quantile %{{x:.4~g}}: %{{y:.4~g}} {scale.unit}<extra></extra>",
        }

    def _layout(self, plate: Plate, start: float, known: Array, scale: Scale) -> Figure:
        layout = base_layout(plate.theme, 300, "quantile difference") | {"hovermode": "closest"}
        layout["xaxis"] = axis(plate.theme, "quantile", range=[start - 0.02, 1.01])
        known = known[np.isfinite(known)]
        room = 0.08 * float(known.max() - known.min() or 1)
        ends = [min(0.0, float(known.min())) - room, max(0.0, float(known.max())) + room]
        layout["yaxis"] = axis(plate.theme, f"difference ({scale.unit})", range=ends)
        zero = {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": 0, "y1": 0}
        layout["shapes"].append(zero | {"line": {"color": plate.theme.quiet, "width": 1, "dash": "dot"}})
        at = {"xref": "paper", "xanchor": "left", "yanchor": "bottom"}
        layout["annotations"].append(label(0, 0, "no difference", plate.theme.quiet, **at))
        return layout

    def _title(self, plate: Plate, curves: Sequence[tuple[str, "pl.DataFrame"]]) -> str:
        told = plate.frame(self.verdicts, "metric", "estimate", "verdict")
        if told is not None:
            rows = told.to_dicts()
            tail = [row for row in rows if str(row["metric"]).startswith("p99")] or rows[:1]
            row = max(tail, key=lambda one: -np.inf if one["estimate"] is None else one["estimate"])
            name = row.get("variant", curves[0][0])
            what = f"{plain(name)}, " if name else ""
            return f"{what}{row['metric'].removesuffix('_s').upper()}: {plain(row['verdict'])}"
        frame = curves[0][1]
        worst = frame.row(int(np.nanargmax(np.abs(floats(frame[self.value])))), named=True)
        change = words.quantity(worst[self.value], self.unit)
        return f"The largest difference is {change} at quantile {words.number(worst[self.q])}"


def _curves(frame: "pl.DataFrame") -> list[tuple[str, "pl.DataFrame"]]:
    """Split by the text columns (labels and variant), in the order of their rows."""
    keys = [name for name, kind in frame.schema.items() if kind.base_type().__name__ == "String"]
    if not keys:
        return [("", frame)]
    parts = frame.group_by(keys, maintain_order=True)
    named = [(", ".join(plain(value) for value in key if value is not None), part) for key, part in parts]
    return sorted(named, key=lambda one: one[0])
