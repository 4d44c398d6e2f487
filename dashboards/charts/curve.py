"""The difference of two variants by quantile, with its interval: where in the distribution one is slower."""

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
        """Draw the first variant's curve; None without two quantiles."""
        frame = plate.frame(self.frame, self.q, self.value, self.low, self.high)
        if frame is None:
            return None
        if "variant" in frame.columns:
            frame = frame.filter(frame["variant"].eq_missing(frame["variant"][0]))
        frame = frame.drop_nulls(self.value).sort(self.q)
        if frame.height < 2:
            return None
        x, y, low, high = (floats(frame[name]) for name in (self.q, self.value, self.low, self.high))
        scale = Scale.seconds(np.abs(np.concatenate((y, low, high)))) if self.unit == "s" else Scale(1.0, self.unit)
        layout = self._layout(plate, float(x[0]), np.concatenate((y, low, high)) * scale.factor, scale)
        area = band(x, low * scale.factor, high * scale.factor, plate.theme)
        line = {
            "type": "scatter",
            "mode": "lines+markers",
            "x": typed(x),
            "y": typed(y * scale.factor),
            "line": {"color": plate.theme.accent, "width": 2},
            "hovertemplate": f"quantile %{{x:.4~g}}: %{{y:.4~g}} {scale.unit}<extra></extra>",
        }
        title = self._title(plate, frame)
        return Drawn(title, plate.subtitle("band: 95 % interval"), {"data": [area, line], "layout": layout}, 300)

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

    def _title(self, plate: Plate, frame: "pl.DataFrame") -> str:
        told = plate.frame(self.verdicts, "metric", "estimate", "verdict")
        if told is not None:
            rows = told.to_dicts()
            row = next((row for row in rows if str(row["metric"]).startswith("p99")), rows[0])
            what = f"{plain(frame['variant'][0])}, " if "variant" in frame.columns else ""
            return f"{what}{row['metric'].removesuffix('_s').upper()}: {plain(row['verdict'])}"
        worst = frame.row(int(np.nanargmax(np.abs(floats(frame[self.value])))), named=True)
        change = words.quantity(worst[self.value], self.unit)
        return f"The largest difference is {change} at quantile {words.number(worst[self.q])}"
