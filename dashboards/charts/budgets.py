"""Objectives: how much of the error budget is left, and how fast it burns against the alerts' thresholds."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.slo import RULES
from dashboards import words
from dashboards.arrays import Array, floats
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, axis, base_layout, label
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

_FAST, _SLOW, _STEADY = (rule.trigger.bound for rule in RULES)
WINDOWS = (
    ("burn_5m", "5 min", _FAST), ("burn_1h", "1 h", _FAST), ("burn_6h", "6 h", _SLOW), ("burn_3d", "3 d", _STEADY),
)  # fmt: skip
"""Burn rates and the thresholds at which to act (Beyer et al. 2018, The Site Reliability Workbook, chapter 5)."""
FLOOR = 0.05


@dataclass(frozen=True, slots=True)
class BurnRates:
    """A row of dots per objective on one log axis: how many times faster than allowed errors come, by window."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the burn rates; None without one."""
        frame = plate.frame("slos", "slo", *(name for name, _, _ in WINDOWS))
        if frame is None:
            return None
        names, height = _names(frame), 150 + 34 * frame.height
        layout = base_layout(plate.theme, height, "burn rates") | {"hovermode": "closest", "showlegend": True}
        top = max(30.0, *(float(np.nanmax(np.append(floats(frame[name]), 0.0))) * 1.5 for name, _, _ in WINDOWS))
        span = [float(np.log10(FLOOR)), float(np.log10(top))]
        layout["xaxis"] = axis(plate.theme, "burn rate (times the allowed), log scale", type="log", range=span, dtick=1)
        layout["yaxis"] = _rows(plate, names)
        layout["legend"] = {"orientation": "h", "y": -80 / max(height - 110, 1), "traceorder": "normal"}
        layout["margin"] |= {"t": 24, "b": 84}
        _thresholds(layout, plate)
        dots = [_dots(plate, frame, i) for i in range(len(WINDOWS))]
        pages = f"page at {_FAST:g} over 1 h and at {_SLOW:g} over 6 h"
        facts = f"dashed: where to act ({pages}, ticket at {_STEADY:g} over 3 d)"
        return Drawn(_burn_title(frame), plate.subtitle(facts), {"data": dots, "layout": layout}, height)


def _names(frame: "pl.DataFrame") -> list[str]:
    labels = [name for name in ("service", "slo") if name in frame.columns]
    return [plain(", ".join(str(row[name]) for name in labels if row[name])) for row in frame.iter_rows(named=True)]


def _rows(plate: Plate, names: list[str]) -> Figure:
    places: Figure = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": names}
    look = axis(plate.theme, range=[len(names) - 0.5, -0.5], **places)
    look["tickfont"] = {"color": plate.theme.ink, "size": 12}
    return look


def _thresholds(layout: Figure, plate: Plate) -> None:
    for level in (_STEADY, _SLOW, _FAST):
        mark = {"type": "line", "x0": level, "x1": level, "y0": 0, "y1": 1, "yref": "paper"}
        layout["shapes"].append(mark | {"line": {"color": plate.theme.mark, "width": 1, "dash": "dash"}})
        at = {"yref": "paper", "yanchor": "bottom"}
        layout["annotations"].append(label(float(np.log10(level)), 1, words.number(level), plate.theme.quiet, **at))


def _dots(plate: Plate, frame: "pl.DataFrame", number: int) -> Figure:
    column, name, level = WINDOWS[number]
    burn: Array = floats(frame[column])
    colours = [plate.theme.mark if value > level else plate.theme.series[number] for value in burn.tolist()]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"over {name}",
        "x": [None if value != value else max(value, FLOOR) for value in burn.tolist()],
        "y": [row + 0.14 * (number - 1.5) for row in range(frame.height)],
        "marker": {
            "size": 10,
            "symbol": ("circle", "square", "diamond", "triangle-up")[number],
            "color": colours,
        },
        "text": [words.number(value) for value in burn.tolist()],
        "hovertemplate": f"%{{text}}× over {name}, act at {level:g}<extra></extra>",
    }


def _burn_title(frame: "pl.DataFrame") -> str:
    over: list[tuple[float, dict[str, Any], str]] = [
        (row[name] / level, row, f"{words.number(row[name])}× over {text}")
        for row in frame.iter_rows(named=True)
        for name, text, level in WINDOWS
        if row[name] is not None and row[name] > level
    ]
    if not over:
        return "No error budget burns faster than its alerts allow"
    _, row, text = max(over, key=lambda item: item[0])
    return f"The budget of {row['slo']} burns {text}"
