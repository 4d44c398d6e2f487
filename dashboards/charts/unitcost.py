"""Cost of a thousand requests against the concurrency of the hour, and where it is least."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dashboards import words
from dashboards.arrays import floats, typed
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, Span, axis, base_layout, label
from dashboards.figures import Drawn

KEY = ("service", "currency")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCost:
    """Hours as dots, the fit as a line, the cheapest concurrency with its limits marked; of the first service."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the hours of the first service and currency; None without two of them."""
        hours = plate.frame("unit_costs", "concurrency", "unit_cost", "fitted", "currency")
        told = plate.frame("cheapest", "verdict", "currency")
        if hours is None or told is None:
            return None
        named = [name for name in KEY if name in hours.columns and name in told.columns]
        first = told.row(0, named=True)
        for name in named:
            hours = hours.filter(hours[name].eq_missing(first[name]))
        hours = hours.sort("concurrency")
        if hours.height < 2:
            return None
        x, y = floats(hours["concurrency"]), floats(hours["unit_cost"])
        layout = base_layout(plate.theme, 320, f"unit cost {first.get('service', '')}") | {"hovermode": "closest"}
        layout["xaxis"] = axis(plate.theme, "requests in progress, mean of the hour", range=[0, float(x.max()) * 1.05])
        top = Span(0.0, float(np.nanmax(y)) * 1.12 or 1.0, log=False)
        layout["yaxis"] = top.axis(plate.theme, f"cost of 1,000 requests ({plain(first['currency'])})")
        dots = {
            "type": "scatter", "mode": "markers", "x": typed(x), "y": typed(y), "name": "hour",
            "marker": {"color": plate.theme.quiet, "size": 5},
            "hovertemplate": "%{x:.4~g} in progress: %{y:.4~g}<extra></extra>",
        }  # fmt: skip
        traces: list[Figure] = [dots]
        known = hours.drop_nulls("fitted")
        if known.height > 1:
            traces.append(
                {
                    "type": "scatter", "mode": "lines", "x": typed(floats(known["concurrency"])),
                    "y": typed(floats(known["fitted"])), "name": "fit", "hoverinfo": "skip",
                    "line": {"color": plate.theme.accent, "width": 1.8},
                }
            )  # fmt: skip
        self._mark(plate, layout, first)
        what = f"{plain(first['service'])}: " if first.get("service") else ""
        title = what + self._title(first)
        return Drawn(title, plate.subtitle(f"{hours.height} hours"), {"data": traces, "layout": layout}, 320)

    def _title(self, first: dict[str, Any]) -> str:
        if first.get("concurrency") is None:
            return plain(first["verdict"])
        at, growth = words.number(first["concurrency"]), words.ratio(first["growth"])
        return f"a request is cheapest at {at} in progress; at most seen it costs {growth} more"

    def _mark(self, plate: Plate, layout: Figure, first: dict[str, Any]) -> None:
        if first.get("concurrency") is None:
            return
        low, at, high = (float(first[name]) for name in ("low", "concurrency", "high"))
        place = {"y0": 0, "y1": 1, "yref": "paper"}
        shade = {"type": "rect", "x0": low, "x1": high, "line": {"width": 0}, "fillcolor": plate.theme.mark}
        layout["shapes"].append(place | shade | {"opacity": 0.12})
        line = {"type": "line", "x0": at, "x1": at, "line": {"color": plate.theme.mark, "width": 1, "dash": "dash"}}
        layout["shapes"].append(place | line)
        spot = {"yref": "paper", "xanchor": "left", "yanchor": "top", "xshift": 4}
        layout["annotations"].append(label(at, 1, "cheapest, with its 95 % limits", plate.theme.ink, **spot))
