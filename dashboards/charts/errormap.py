"""The heatmap of errors: place and code by time; colour is the shrunk ratio, an outline what stands out."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dashboards import words
from dashboards.arrays import epoch_ms
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, axis, base_layout, label, time_axis
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

ROWS = 24
"""Rows drawn: those that stand out first, then those with the most errors."""
OUTLINES = 400
DARKEST = 3.0
"""log2 of the ratio at which the colour is full: eight times the expected."""

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ErrorMap:
    """Errors over expected by cloud, region and code, and by time; a click opens an example trace."""

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the cells; None without any."""
        needs = ("cloud", "region", "code", "bucket", "errors", "shrunk_ratio", "significant")
        cells = plate.frame("cells", *needs)
        if cells is None:
            return None
        keys = _rows(cells)
        times = np.unique(epoch_ms(cells["bucket"]))
        step = float(min((b - a for a, b in pairwise(times)), default=300_000.0))
        height = 96 + 30 * len(keys)
        layout = base_layout(plate.theme, height, f"errors {plate.result.window.span}") | {"hovermode": "closest"}
        layout["xaxis"] = time_axis(plate.theme, plate.result.window, np.append(times, times[-1] + step), plate.zone)
        layout["xaxis"] |= {"showgrid": False, "showspikes": False}
        names: Figure = {
            "tickmode": "array",
            "tickvals": list(range(len(keys))),
            "ticktext": [_name(key) for key in keys],
        }
        layout["yaxis"] = axis(plate.theme, range=[len(keys) - 0.5, -0.5], showgrid=False, fixedrange=True, **names)
        layout["yaxis"]["tickfont"] = {"color": plate.theme.ink, "size": 12}
        layout["margin"] |= {"r": 132, "t": 24}
        heat = _Grid(plate, cells, keys, step).trace(layout)
        title = _title(cells)
        facts = "colour: errors over expected, shrunk (1 is usual) · outlined: stands out · click: an example trace"
        return Drawn(title, plate.subtitle(facts), {"data": [heat], "layout": layout}, height)


class _Grid:
    """The matrix behind the map."""

    def __init__(self, plate: Plate, cells: "pl.DataFrame", keys: list[Key], step: float) -> None:
        self.plate, self.keys, self.step = plate, keys, step
        row_of = {key: i for i, key in enumerate(keys)}
        self.rows = [
            (row_of[_key(row)], at, row)
            for at, row in zip(epoch_ms(cells["bucket"]).tolist(), cells.iter_rows(named=True), strict=True)
            if _key(row) in row_of
        ]
        start, end = min(at for _, at, _ in self.rows), max(at for _, at, _ in self.rows)
        self.columns = np.arange(start, end + step / 2, step)[:2000]

    def trace(self, layout: Figure) -> Figure:
        """Return the heatmap, and put outlines and totals into the layout."""
        shape = (len(self.keys), self.columns.size)
        z: list[list[float | None]] = [[None] * shape[1] for _ in range(shape[0])]
        text = [[""] * shape[1] for _ in range(shape[0])]
        link: list[list[str | None]] = [[None] * shape[1] for _ in range(shape[0])]
        traces = self._examples()
        totals = [0] * shape[0]
        for i, at, row in self.rows:
            j = min(round((at - self.columns[0]) / self.step), shape[1] - 1)
            ratio = row["shrunk_ratio"]
            z[i][j] = None if not ratio or ratio <= 0 else float(np.clip(np.log2(ratio), -DARKEST, DARKEST))
            text[i][j], totals[i] = self._hover(row), totals[i] + (row["errors"] or 0)
            link[i][j] = traces.get((*_key(row), at))
            if row["significant"] and len(layout["shapes"]) < OUTLINES:
                layout["shapes"].append(self._outline(i, at))
        self._totals(layout, totals)
        return {
            "type": "heatmap",
            "x": (self.columns + self.step / 2).tolist(),
            "y": list(range(shape[0])),
            "z": z,
            "text": text,
            "customdata": link,
            "hovertemplate": "%{text}<extra></extra>",
            "zmin": -DARKEST,
            "zmax": DARKEST,
            "colorscale": _colours(self.plate.theme.name),
            "hoverongaps": False,
            "xgap": 1 if self.columns.size < 150 else 0,
            "ygap": 2,
            "showscale": False,
        }

    def _examples(self) -> dict[tuple[str, str, str, float], str]:
        frame = self.plate.frame("exemplars", "cloud", "region", "code", "bucket", "trace_id")
        if frame is None:
            return {}
        pairs = zip(epoch_ms(frame["bucket"]).tolist(), frame.iter_rows(named=True), strict=True)
        return {(*_key(row), at): self.plate.trace(row["trace_id"]) for at, row in pairs}

    def _hover(self, row: dict[str, Any]) -> str:
        at = words.moment(row["bucket"], None, self.plate.zone)
        parts = [f"<b>{_name(_key(row))}</b>, {at} {self.plate.zone.key}"]
        expected = words.number(row.get("expected"))
        parts.append(f"{words.count(row['errors'])} errors of {words.count(row.get('requests'))}, {expected} expected")
        parts.append(f"{words.number(row['shrunk_ratio'])}× (shrunk), p adjusted {words.number(row.get('p_adj'), 2)}")
        return "<br>".join(parts)

    def _outline(self, row: int, at: float) -> Figure:
        box = {"type": "rect", "x0": at, "x1": at + self.step, "y0": row - 0.46, "y1": row + 0.46}
        return box | {"line": {"color": self.plate.theme.ink, "width": 1.6}, "fillcolor": "rgba(0,0,0,0)"}

    def _totals(self, layout: Figure, totals: list[int]) -> None:
        at = {"xref": "paper", "xanchor": "left", "xshift": 8}
        layout["annotations"] += [
            label(1, i, words.plural(total, "error"), self.plate.theme.ink, **at) for i, total in enumerate(totals)
        ]


def _rows(cells: "pl.DataFrame") -> list[Key]:
    import polars as pl

    total = cells.group_by("cloud", "region", "code").agg(pl.col("significant").sum(), pl.col("errors").sum())
    chosen = total.sort("significant", "errors", descending=True).head(ROWS)
    return [_key(row) for row in chosen.iter_rows(named=True)]


def _key(row: dict[str, Any]) -> Key:
    return (row["cloud"] or "", row["region"] or "", row["code"] or "")


def _name(key: Key) -> str:
    place = " ".join(part for part in key[:2] if part)
    return plain(f"{key[2] or words.UNNAMED} · {place}" if place else key[2])


def _title(cells: "pl.DataFrame") -> str:
    out = cells.filter(cells["significant"])
    if out.is_empty():
        return "No error stands out from its own baseline"
    worst = out.sort("shrunk_ratio", descending=True).row(0, named=True)
    where = " ".join(part for part in (worst["cloud"], worst["region"]) if part)
    return (
        f"{words.plural(out.height, 'cell')} stand{'s' if out.height == 1 else ''} out; worst: {worst['code']}"
        f"{f' in {where}' if where else ''}, {words.number(worst['shrunk_ratio'])}× the expected"
    )


def _colours(theme: str) -> list[list[Any]]:
    middle = "#2A313C" if theme == "dark" else "#E9ECF1"
    return [[0.0, "#2F7FD1"], [0.5, middle], [0.66, "#C98A3C"], [1.0, "#E5484D"]]
