"""Where in a request the time goes: usual requests and the slowest ones, side by side, parts adding to the whole."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dashboards import words
from dashboards.arrays import Array, floats
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, Scale, axis, base_layout, label
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

WHOLE = "e2e"
"""The segment that is the whole request."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Two stacked bars in seconds: the mean request and the mean of the tail, divided into segments."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw both bars; None without the segments' shares."""
        frame = plate.frame("segments", "segment", "share", "share_of_p99", "mean_s", "tail_s")
        if frame is None:
            return None
        whole = frame.filter(frame["segment"] == WHOLE)
        parts = frame.filter(frame["segment"] != WHOLE).sort("share_of_p99", descending=True, nulls_last=True)
        if whole.is_empty() or whole["mean_s"][0] is None or parts["share"].drop_nulls().is_empty():
            return None
        lengths = np.nan_to_num(np.array([_value(whole, "tail_s"), _value(whole, "mean_s")]))
        scale, row = Scale.seconds(lengths), whole.row(0, named=True)
        tail = f"slowest {words.count(row.get('n_tail'))}"
        usual = f"all {words.count(row.get('n'))}, mean {words.seconds(row['mean_s'])}"
        names = [f"{tail}, mean {words.seconds(row['tail_s'])}", usual]
        layout = _layout(plate, names, float(lengths.max() * scale.factor), scale)
        _share_labels(layout, names, parts, lengths * scale.factor)
        traces = [_segment(plate, part, i, names, lengths * scale.factor, scale) for i, part in
                  enumerate(parts.iter_rows(named=True))]  # fmt: skip
        first = parts.row(0, named=True)
        title = (
            f"{first['segment'].capitalize()} takes {words.ratio(first['share_of_p99'])} of the slowest requests' time"
        )
        share = f"{words.ratio(first['share'])} of all requests'"
        return Drawn(title, plate.subtitle(share, "parts add up"), {"data": traces, "layout": layout}, layout["height"])


def _value(frame: "pl.DataFrame", name: str) -> float:
    return float(floats(frame[name])[0])


def _layout(plate: Plate, names: list[str], top: float, scale: Scale) -> Figure:
    layout = base_layout(plate.theme, 220, "segments") | {"barmode": "stack", "hovermode": "closest", "bargap": 0.35}
    layout["xaxis"] = axis(plate.theme, f"time of a request ({scale.unit})", range=[0, top * 1.02 or 1])
    layout["yaxis"] = axis(plate.theme, categoryorder="array", categoryarray=names[::-1], showgrid=False)
    layout["yaxis"]["tickfont"] = {"color": plate.theme.ink, "size": 12}
    layout |= {"showlegend": True, "legend": {"orientation": "h", "y": -0.32, "traceorder": "normal"}}
    layout["margin"]["b"] = 84
    return layout


def _segment(plate: Plate, row: dict[str, Any], number: int, names: list[str], whole: Array, scale: Scale) -> Figure:
    shares = (row["share_of_p99"] or 0.0, row["share"] or 0.0)
    colours = plate.theme.series
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain(row["segment"]),
        "y": names,
        "x": [share * length for share, length in zip(shares, whole.tolist(), strict=True)],
        "marker": {"color": colours[number % len(colours)], "line": {"width": 1, "color": plate.theme.surface}},
        "hovertemplate": f"{plain(row['segment'])}: %{{x:.4~g}} {scale.unit}, %{{customdata}}<extra></extra>",
        "customdata": [words.ratio(share) for share in shares],
    }


def _share_labels(layout: Figure, names: list[str], parts: "pl.DataFrame", whole: Array) -> None:
    """Write the share into each part that is wide enough for it; dark on every colour of the palette."""
    for place, column in enumerate(("share_of_p99", "share")):
        left = 0.0
        for share in np.nan_to_num(floats(parts[column])).tolist():
            wide = share * float(whole[place])
            if wide > 0.06 * float(whole.max()):
                layout["annotations"].append(label(left + wide / 2, names[place], words.ratio(share), "#10151C"))
            left += wide
