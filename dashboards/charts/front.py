"""Configurations over two objectives: the front as a step line, what it beats in grey."""

from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING

import numpy as np

from dashboards import words
from dashboards.arrays import floats, typed
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, Span, base_layout, label
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

WIDE, HIGH = 0.2, 0.05
"""Shares of the axes within which two names would touch."""
NAMED = 8
"""Configurations of the front named in the figure; beyond that the hover and the table do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoFront:
    """The first two objectives of `pareto`; of three, the front is joined by no line, since it is a surface."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw front and beaten configurations; None without two of them."""
        front = plate.frame("front", "first", "second", "configuration", "values")
        volume = plate.frame("hypervolume", "objectives", "hypervolume", "share")
        beaten = plate.frame("dominated", "first", "second", "configuration", "values")
        count = (front.height if front is not None else 0) + (beaten.height if beaten is not None else 0)
        if front is None or volume is None or count < 2:
            return None
        objectives = [text.partition(":") for text in str(volume["objectives"][0]).split(", ")]
        names, less = [name for name, _, _ in objectives], [way == "min" for _, _, way in objectives]
        front = front.sort("first")
        parts = [front] if beaten is None else [front, beaten]
        spans = [Span.of(np.concatenate([floats(part[column]) for part in parts])) for column in ("first", "second")]
        layout = self._layout(plate, names, less, spans)
        layout["annotations"] = self._labels(plate, front, spans)
        traces = [] if beaten is None else [self._dots(beaten, "beaten", plate.theme.quiet, 7)]
        if len(objectives) == 2:
            traces.append(self._steps(plate, front, less[0]))
        traces.append(self._dots(front, "on the front", plate.theme.accent, 10))
        share = volume["share"][0]
        told = [f"hypervolume {words.number(volume['hypervolume'][0])}"]
        told += [f"{words.ratio(share)} of the box to the reference"] if share is not None else []
        drawn = {"data": traces, "layout": layout}
        return Drawn(self._title(front, count), plate.subtitle(*told), drawn, 360)

    def _title(self, front: "pl.DataFrame", count: int) -> str:
        many = f"{front.height} of {count} configurations {'is' if front.height == 1 else 'are'} beaten by no other"
        known = front.drop_nulls("contribution").sort("contribution", descending=True)
        if front.height < 2 or known.is_empty():
            return f"{many}: {plain(front['configuration'][0])}" if front.height == 1 else many
        most = known.row(0, named=True)
        lost = f"{words.ratio(most['contribution'])} of the hypervolume would be lost"
        return f"{many}; without {plain(most['configuration'])} {lost}"

    def _layout(self, plate: Plate, names: list[str], less: list[bool], spans: list[Span]) -> Figure:
        layout = base_layout(plate.theme, 360, "pareto") | {"hovermode": "closest"}
        better = [
            f"{plain(name)} ({'less' if low else 'more'} is better)" for name, low in zip(names, less, strict=True)
        ]
        layout["xaxis"] = spans[0].axis(plate.theme, better[0])
        layout["yaxis"] = spans[1].axis(plate.theme, better[1])
        return layout

    def _labels(self, plate: Plate, front: "pl.DataFrame", spans: list[Span]) -> list[Figure]:
        """Name the first of the front, those beside one that is named already left out."""
        place = {"xref": "x", "yref": "y", "xanchor": "left", "yanchor": "bottom", "xshift": 6, "yshift": 2}
        made: list[Figure] = []
        taken: list[tuple[float, float]] = []
        for x, y, name in front.select("first", "second", "configuration").head(NAMED).iter_rows():
            at = spans[0].height(x), spans[1].height(y)
            if all(abs(at[0] - a) > WIDE or abs(at[1] - b) > HIGH for a, b in taken):
                taken.append(at)
                shown = [log10(v) if span.log else v for v, span in zip((x, y), spans, strict=True)]
                made.append(label(shown[0], shown[1], plain(name), plate.theme.ink, **place))
        return made

    def _steps(self, plate: Plate, front: "pl.DataFrame", less: bool) -> Figure:
        """Join the front by steps: what lies behind it is beaten."""
        style = {"color": plate.theme.accent, "width": 1.8, "shape": "hv" if less else "vh"}
        x, y = floats(front["first"]), floats(front["second"])
        line = {"type": "scatter", "mode": "lines", "x": typed(x), "y": typed(y), "line": style, "hoverinfo": "skip"}
        return line | {"name": "front"}

    def _dots(self, frame: "pl.DataFrame", name: str, colour: str, size: int) -> Figure:
        x, y = (floats(frame[column]) for column in ("first", "second"))
        texts = [f"{plain(c)}<br>{plain(v)}" for c, v in frame.select("configuration", "values").iter_rows()]
        return {
            "type": "scatter",
            "mode": "markers",
            "x": typed(x),
            "y": typed(y),
            "name": name,
            "text": texts,
            "marker": {"color": colour, "size": size},
            "hovertemplate": f"%{{text}}<extra>{name}</extra>",
        }
