"""How smooth streams are: the gaps of the worst ones, and how jitter is distributed by model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dashboards import words
from dashboards.arrays import Array, floats, thinned, typed
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, Scale, axis, base_layout, label
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

STREAMS = 5
GROUPS = 6
"""Models, or services, whose jitter is drawn: the ones with the most streams."""


@dataclass(frozen=True, slots=True)
class WorstGaps:
    """One row per stream: a stem at each arrival, as high as the wait before it."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the streams with the longest gaps; None without gaps."""
        frame = plate.frame("worst_gaps", "trace_id", "at_s", "gap_s")
        if frame is None or frame["gap_s"].drop_nulls().is_empty():
            return None
        traces = frame["trace_id"].unique(maintain_order=True).head(STREAMS).to_list()
        gap = floats(frame["gap_s"])
        scale, height = Scale.seconds(gap), 64 + 92 * len(traces)
        layout = base_layout(plate.theme, height, "worst gaps") | {"hovermode": "closest"}
        last = f"y{len(traces)}" if len(traces) > 1 else "y"
        layout["xaxis"] = axis(plate.theme, "time since the request began (s)", anchor=last)
        layout["margin"] |= {"r": 24, "t": 24}
        at = floats(frame["at_s"])
        wide = max(float(np.nanmax(at) - np.nanmin(at)) / 400, 0.001)
        drawn = [self._stem(plate, frame, traces, i, scale, layout) | {"width": wide} for i in range(len(traces))]
        title = f"The longest wait within a stream was {words.seconds(float(np.nanmax(gap)))}"
        facts = f"the {words.plural(len(traces), 'stream')} with the longest gaps · click: the trace"
        return Drawn(title, plate.subtitle(facts), {"data": drawn, "layout": layout}, height)

    def _stem(
        self, plate: Plate, frame: "pl.DataFrame", traces: list[str], number: int, scale: Scale, layout: Figure
    ) -> Figure:
        part = frame.filter(frame["trace_id"] == traces[number]).sort("at_s")
        x, y = thinned(floats(part["at_s"]), floats(part["gap_s"]) * scale.factor, 800)
        name, share = "" if number == 0 else str(number + 1), 1 / len(traces)
        domain = [1 - share * (number + 1) + 0.25 * share, 1 - share * number]
        layout[f"yaxis{name}"] = axis(plate.theme, f"gap ({scale.unit})", domain=domain, rangemode="tozero", nticks=3)
        at = {"xref": "paper", "yref": f"y{name} domain", "xanchor": "left", "yanchor": "bottom"}
        layout["annotations"].append(label(0, 1, f"trace {traces[number][:8]}", plate.theme.quiet, **at))
        return {
            "type": "bar",
            "x": typed(x),
            "y": typed(y),
            "yaxis": f"y{name}",
            "marker": {"color": plate.theme.accent},
            "customdata": [plate.trace(traces[number])] * x.size,
            "hovertemplate": f"%{{y:.4~g}} {scale.unit}, %{{x:.3~f}} s after the start<extra></extra>",
        }


@dataclass(frozen=True, slots=True)
class Jitter:
    """Cumulative shares of streams by jitter index, a line per model or service."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the shares; None where no stream had enough gaps for a jitter index."""
        frame = plate.frame("requests", "ji")
        if frame is None or frame["ji"].drop_nulls().is_empty():
            return None
        by = next((name for name in ("model", "service") if name in frame.columns), "")
        known = frame.drop_nulls("ji").sort("ji")
        names = known[by].value_counts(sort=True)[by].head(GROUPS).to_list() if by else [""]
        parts = [(name, floats((known.filter(known[by].eq_missing(name)) if by else known)["ji"])) for name in names]
        layout = base_layout(plate.theme, 300, "jitter") | {"hovermode": "closest"}
        jitter = floats(known["ji"])
        ends = [max(float(jitter[0]), 0.01), float(jitter[-1]) * 1.1 + 0.01]
        layout["xaxis"] = axis(
            plate.theme, "jitter index (spread of gaps over their mean), log scale", type="log",
            range=[float(np.log10(end)) for end in ends],
        )  # fmt: skip
        layout["yaxis"] = axis(plate.theme, "streams with at most that (%)", range=[0, 102])
        layout |= {"showlegend": len(parts) > 1, "legend": {"orientation": "h", "y": -0.3}}
        lines = [_cumulative(plate, name, values, i) for i, (name, values) in enumerate(parts)]
        title = f"Half of the streams have a jitter index of at most {words.number(float(np.median(jitter)))}"
        count = words.plural(known.height, "stream")
        return Drawn(title, plate.subtitle(f"{count} with three gaps or more"), {"data": lines, "layout": layout}, 300)


def _cumulative(plate: Plate, name: str | None, values: Array, number: int) -> Figure:
    share = 100 * (np.arange(values.size) + 1) / values.size
    keep = np.unique(np.linspace(0, values.size - 1, min(values.size, 400)).astype(np.int64))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{plain(name)} ({values.size:,})" if name else f"{values.size:,} streams",
        "x": typed(np.maximum(values[keep], 0.01)),
        "y": typed(share[keep]),
        "line": {"color": plate.theme.series[number] if name else plate.theme.accent, "width": 1.8, "shape": "hv"},
        "hovertemplate": "%{y:.3~g} % have at most %{x:.3~g}<extra>%{fullData.name}</extra>",
    }
