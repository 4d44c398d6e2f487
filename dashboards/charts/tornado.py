"""What a year's cost is sensitive to: a bar per input, from 10 % less of it to 10 % more."""

from dataclasses import dataclass

import numpy as np

from dashboards import words
from dashboards.arrays import Array, floats, typed
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, axis, base_layout
from dashboards.figures import Drawn

MOST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Tornado:
    """Both changes of the frame `sensitivity` around zero, the largest at the top."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the inputs; None without one that changes anything."""
        frame = plate.frame("sensitivity", "input", "less", "more", "elasticity", "currency")
        if frame is None:
            return None
        frame = frame.head(MOST)
        less, more = floats(frame["less"]), floats(frame["more"])
        ends = np.concatenate([less, more])
        if not np.isfinite(ends).any() or not np.nanmax(np.abs(ends)) > 0:
            return None
        names = [plain(str(name).replace("_", " ")) for name in frame["input"]]
        height = 84 + 28 * len(names)
        layout = base_layout(plate.theme, height, "tornado") | {"barmode": "overlay", "bargap": 0.35}
        layout["hovermode"] = "closest"
        room = 1.1 * float(np.nanmax(np.abs(ends)))
        title = f"change of the yearly cost ({plain(frame['currency'][0])})"
        layout["xaxis"] = axis(plate.theme, title, range=[-room, room])
        ticks: Figure = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": names}
        layout["yaxis"] = axis(
            plate.theme, range=[len(names) - 0.5, -0.5], showgrid=False, ticklabelstandoff=8, **ticks
        )
        zero = {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper"}
        layout["shapes"].append(zero | {"line": {"color": plate.theme.quiet, "width": 1}})
        sides = (("10 % less of it", less, plate.theme.quiet), ("10 % more of it", more, plate.theme.accent))
        traces = [self._bars(name, values, colour) for name, values, colour in sides]
        of = words.number(frame["elasticity"][0])
        headline = f"{names[0].capitalize()} matters most: one percent of it is {of} % of the yearly cost"
        told = plate.subtitle("grey: 10 % less, coloured: 10 % more")
        return Drawn(headline, told, {"data": traces, "layout": layout}, height)

    def _bars(self, name: str, values: Array, colour: str) -> Figure:
        return {
            "type": "bar",
            "orientation": "h",
            "x": typed(values),
            "y": typed(np.arange(values.size, dtype=np.float64)),
            "name": name,
            "marker": {"color": colour, "opacity": 0.85},
            "hovertemplate": f"{name}: %{{x:,.4~g}}<extra></extra>",
        }
