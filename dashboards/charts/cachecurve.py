"""Hit ratio of a cache of every size, with the size where the curve bends."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dashboards import words
from dashboards.arrays import floats, typed
from dashboards.charts.plate import Plate
from dashboards.drawing import Figure, axis, base_layout, label
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

HEIGHT = 280


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCurve:
    """The curve over blocks on a logarithmic axis; the bend is a labelled line."""

    frame: str = "curve"

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the first group's curve; None without two sizes."""
        frame = plate.frame(self.frame, "blocks", "hit_ratio", "gain_doubling", "bend")
        if frame is None:
            return None
        frame = _first_group(frame).drop_nulls(["blocks", "hit_ratio"]).sort("blocks")
        if frame.height < 2:
            return None
        x, y = floats(frame["blocks"]), floats(frame["hit_ratio"]) * 100
        bend = next((row for row in frame.to_dicts() if row["bend"]), None)
        trace = {
            "type": "scatter",
            "mode": "lines+markers",
            "x": typed(x),
            "y": typed(y),
            "line": {"color": plate.theme.accent, "width": 2},
            "hovertemplate": "%{x:,} blocks: %{y:.3~g} %<extra></extra>",
        }
        layout = base_layout(plate.theme, HEIGHT, "cache curve") | {"hovermode": "closest"}
        low, high = float(np.log10(max(x[0], 1))), float(np.log10(x[-1]))
        ends = [low - 0.03 * (high - low), high + 0.03 * (high - low)]
        layout["xaxis"] = axis(plate.theme, "blocks (log scale)", type="log", range=ends, dtick=1)
        layout["yaxis"] = axis(plate.theme, "lookups found (%)", range=[0, max(float(y.max()) * 1.12, 1.0)])
        if bend is not None:
            _mark(plate, layout, bend)
        return Drawn(_title(bend, frame), plate.subtitle("LRU model"), {"data": [trace], "layout": layout}, HEIGHT)


def _first_group(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Keep the rows of the first labels: one curve a figure."""
    labels = frame.columns[: frame.columns.index("blocks")]
    return frame.join(frame.select(labels).head(1), on=labels, how="semi", nulls_equal=True) if labels else frame


def _mark(plate: Plate, layout: Figure, bend: dict[str, Any]) -> None:
    size = float(bend["blocks"])
    place = {"type": "line", "x0": size, "x1": size, "y0": 0, "y1": 1, "yref": "paper"}
    layout["shapes"].append(place | {"line": {"color": plate.theme.mark, "width": 1, "dash": "dash"}})
    text = f"bends at {bend['blocks']:,} blocks"
    spot = {"yref": "paper", "xanchor": "right", "yanchor": "bottom", "xshift": -4}
    layout["annotations"].append(label(float(np.log10(size)), 0.02, text, plate.theme.mark, **spot))


def _title(bend: dict[str, Any] | None, frame: "pl.DataFrame") -> str:
    if bend is None:
        most = frame.row(-1, named=True)
        return f"A cache of {most['blocks']:,} blocks finds {words.ratio(most['hit_ratio'])} of the lookups"
    found, more = words.ratio(bend["hit_ratio"]), words.ratio(bend["gain_doubling"])
    return f"{bend['blocks']:,} blocks find {found} of the lookups; twice as many add {more}"
