"""Cost by quantity of a billing month: the points of the bill and the schedule that passes them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dashboards.arrays import floats, typed
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, Span, axis, base_layout, label
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

KEY = ("item", "unit", "currency")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostByQuantity:
    """The first item with more than one price: dots of the bill, the line of the schedule, limits of its tiers."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the first item of `points`; None without two points."""
        points, model = plate.frame("points", *KEY, "quantity", "cost"), plate.frame("model", *KEY, "model")
        if points is None or model is None:
            return None
        named = points.columns[: points.columns.index(KEY[-1]) + 1]  # the labels, then what the item is
        first = points.select(named).row(0, named=True)
        mine = self._of(points, first).sort("quantity")
        told = self._of(model, first)
        if mine.height < 2 or told.is_empty():
            return None
        q, cost = floats(mine["quantity"]), floats(mine["cost"])
        span = Span(0.0, float(np.nanmax(cost)) * 1.12 or 1.0, log=False)
        layout = base_layout(plate.theme, 320, f"tiers {first['item']}") | {"hovermode": "closest"}
        unit = f" ({plain(first['unit'])})" if first["unit"] else ""
        layout["xaxis"] = axis(plate.theme, f"quantity of the month so far{unit}", range=[0, float(q.max()) * 1.05])
        layout["yaxis"] = span.axis(plate.theme, f"cost of the month so far ({plain(first['currency'])})")
        traces = [
            {
                "type": "scatter",
                "mode": "markers",
                "x": typed(q),
                "y": typed(cost),
                "name": "bill",
                "marker": {"color": plate.theme.quiet, "size": 6},
                "hovertemplate": "%{x:.6~g} cost %{y:.6~g}<extra>bill</extra>",
            }
        ]
        if "scheduled" in mine.columns and mine["scheduled"].drop_nulls().len() > 1:
            traces.append(self._line(plate, mine))
        tiers = plate.frame("tiers", *KEY, "tier", "from_q", "unit_price")
        self._limits(plate, layout, None if tiers is None else self._of(tiers, first))
        title = f"{plain(first['item'])}: {plain(told['model'][0])}, {plain(told['reason'][0])}"
        return Drawn(title, plate.subtitle(f"{mine.height} points"), {"data": traces, "layout": layout}, 320)

    def _of(self, frame: "pl.DataFrame", labels: dict[str, object]) -> "pl.DataFrame":
        for name in [name for name in labels if name in frame.columns]:
            frame = frame.filter(frame[name].eq_missing(labels[name]))
        return frame

    def _line(self, plate: Plate, mine: "pl.DataFrame") -> Figure:
        known = mine.drop_nulls("scheduled")
        return {
            "type": "scatter",
            "mode": "lines",
            "x": typed(floats(known["quantity"])),
            "y": typed(floats(known["scheduled"])),
            "name": "schedule",
            "line": {"color": plate.theme.accent, "width": 1.8},
            "hovertemplate": "%{y:.6~g} by the schedule<extra></extra>",
        }

    def _limits(self, plate: Plate, layout: Figure, tiers: "pl.DataFrame | None") -> None:
        """Mark where a tier begins, with its price."""
        for row in [] if tiers is None else tiers.drop_nulls("unit_price").iter_rows(named=True):
            at = float(row["from_q"])
            if row["tier"] > 1:
                line = {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper"}
                layout["shapes"].append(line | {"line": {"color": plate.theme.mark, "width": 1, "dash": "dash"}})
            text = f"{float(row['unit_price']):.6g} each"
            place = {"yref": "paper", "xanchor": "left", "yanchor": "top", "xshift": 4}
            layout["annotations"].append(label(at, 1, text, plate.theme.ink, **place))
