"""When which series was unusual: one lane each, on one time axis, so that what moved together stands together."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from dashboards import words
from dashboards.arrays import at_ms, epoch_ms
from dashboards.charts.plate import Plate, plain
from dashboards.drawing import Figure, axis, base_layout, time_axis
from dashboards.figures import Drawn

if TYPE_CHECKING:
    import polars as pl

LANES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Episodes:
    """Bars from start to end; `lane` names the columns of a lane, `loud` the column and text of a stronger colour."""

    frame: str
    lane: tuple[str, ...]
    title: str
    start: str = "start"
    end: str = "end"
    loud: tuple[str, str] = ("", "")

    def draw(self, plate: Plate) -> Drawn | None:
        """Draw the episodes, lanes by their first start; None without any."""
        frame = plate.frame(self.frame, self.start, self.end, *self.lane)
        if frame is None:
            return None
        frame = frame.drop_nulls(self.start).sort(self.start)
        names = [self._name(row) for row in frame.iter_rows(named=True)]
        lanes = list(dict.fromkeys(names))[:LANES]
        if not lanes:
            return None
        height = 84 + 26 * len(lanes)
        layout = base_layout(plate.theme, height, f"episodes {plate.result.window.span}") | {"hovermode": "closest"}
        edge = at_ms(plate.result.window.end)
        start = epoch_ms(frame[self.start])
        end = np.nan_to_num(epoch_ms(frame[self.end]), nan=edge)
        layout["xaxis"] = time_axis(plate.theme, plate.result.window, np.concatenate((start, end)), plate.zone)
        places: Figure = {
            "tickmode": "array",
            "tickvals": list(range(len(lanes))),
            "ticktext": [plain(name) for name in lanes],
        }
        layout["yaxis"] = axis(plate.theme, range=[len(lanes) - 0.5, -0.5], **places)
        layout["yaxis"]["tickfont"] = {"color": plate.theme.ink, "size": 12}
        layout["barmode"] = "overlay"
        shown = layout["xaxis"]["range"]
        least = (shown[1] - shown[0]) / 300
        length = np.maximum(end - start, least)
        bars = self._bars(plate, frame, start, length, [lanes.index(n) if n in lanes else -1 for n in names])
        more = len(set(names)) - len(lanes)
        facts = f"{words.plural(frame.height, 'episode')}{f' · {more} lanes more in the table' if more else ''}"
        title = self.title.format(count=words.plural(frame.height, "episode"), lanes=len(set(names)))
        return Drawn(title, plate.subtitle(facts), {"data": [bars], "layout": layout}, height)

    def _name(self, row: dict[str, Any]) -> str:
        return ", ".join(part for name in self.lane if (part := short(row[name]))) or words.UNNAMED

    def _bars(self, plate: Plate, frame: "pl.DataFrame", start: Any, length: Any, lane: list[int]) -> Figure:
        keep = [i for i, place in enumerate(lane) if place >= 0]
        rows, column = frame.to_dicts(), self.loud[0]
        return {
            "type": "bar",
            "orientation": "h",
            "base": [float(start[i]) for i in keep],
            "x": [float(length[i]) for i in keep],
            "y": [lane[i] for i in keep],
            "width": 0.6,
            "marker": {
                "color": [
                    plate.theme.mark if column and rows[i].get(column) == self.loud[1] else plate.theme.accent
                    for i in keep
                ],
                "opacity": 0.8,
            },
            "text": [_hover(plate, rows[i], self.start, self.end) for i in keep],
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
        }


def short(value: Any) -> str:
    """Write a label; JSON labels as their values."""
    text = str(value or "")
    if not text.startswith("{"):
        return text
    return " ".join(str(part) for part in orjson.loads(text).values())


def _hover(plate: Plate, row: dict[str, Any], start: str, end: str) -> str:
    since = words.moment(row[start], None, plate.zone)
    until = "still on" if row[end] is None else words.moment(row[end], row[start], plate.zone)
    lines = [f"{since} to {until} {plate.zone.key}"]
    if row.get("value") is not None:
        usual = f", usual {words.number(row.get('low'))} to {words.number(row.get('high'))}"
        lines.append(f"value {words.number(row['value'])}{usual}")
    if row.get("errors") is not None:
        lines.append(f"{words.count(row['errors'])} errors, {words.number(row.get('expected'))} expected")
    reason = plain(row.get("reason") or row.get("meaning") or row.get("error_code") or "")
    lines += ["<br>".join(reason[i : i + 90] for i in range(0, len(reason), 90))] if reason != words.UNNAMED else []
    return "<br>".join(lines)
