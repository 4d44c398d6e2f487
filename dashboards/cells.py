"""Frames as tables: units in the reader's form, times in a zone, traces as links, sorted and paged in the browser.

The rows travel as one text that assets/tables.js puts into the table: as 3,500 components of Dash they froze the page
for 36 s.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import orjson
from dash import html

from dashboards import words
from dashboards.panels import Cell, panel, trace_link
from dashboards.state import State
from dashboards.static import BODY, to_html
from store.columns import Column, Kind

if TYPE_CHECKING:
    import polars as pl

CELLS = 2_400
"""Cells of one frame that are sent: what a person would still page through."""
LEAST = 20
FRAME = "frame"
"""Class of a panel that is a whole frame; a report folds these away."""
IN_CELL = ("s", "ratio", "bytes", "By", "USD")
"""Units written in each cell, each in its fitting size; any other stands in the head."""
SUFFIXES = {"s": "_s", "ratio": "_ratio", "bytes": "_bytes", "By": "_bytes", "USD": "_usd"}
NUMBERS = (Kind.INT, Kind.ID, Kind.FLOAT, Kind.MONEY)


def frame_table(
    name: str, frame: "pl.DataFrame", columns: Sequence[Column], state: State, command: str
) -> html.Section | None:
    """Return a frame as a panel with a table; None without rows. `command` prints the rows that are not shown."""
    if frame.is_empty():
        return None
    declared = {column.name: column for column in columns}
    shown = frame.head(max(LEAST, CELLS // max(frame.width, 1)))
    heads = [_head(declared.get(column) or Column(column, Kind.TEXT, "")) for column in frame.columns]
    kinds = [declared.get(column) for column in frame.columns]
    writers = [_writer(column, name, state) for name, column in zip(frame.columns, kinds, strict=True)]
    body = [
        html.Tr([_cell(value, write, column) for value, write, column in zip(row, writers, kinds, strict=True)])
        for row in shown.iter_rows()
    ]
    more: Any = {"data-name": name, BODY: to_html(body, links=not state.offline)}
    grid = html.Table(html.Thead(html.Tr(heads)), className="sortable", **more)
    size = _size(frame.height, shown.height, command)
    made: Any = panel(_title(name), size, html.Div(grid, className="table wide"))
    made.className = f"{made.className} {FRAME}"
    return cast("html.Section", made)


def pairs(values: Mapping[str, Any]) -> list[Any]:
    """Return names and values as one line of small facts."""
    return [html.Span([f"{_words(name)} ", html.B(_plain(value))]) for name, value in values.items()]


def _title(name: str) -> str:
    return _words(name).capitalize()


def _words(name: str) -> str:
    return name.replace("_", " ")


def _size(rows: int, shown: int, command: str) -> str:
    if rows == shown:
        return words.plural(rows, "row")
    return f"the first {shown:,} of {words.plural(rows, 'row')}; all: {command}"


def _head(column: Column) -> html.Th:
    side = "number" if column.kind in NUMBERS else None
    name = column.name.removesuffix(SUFFIXES.get(column.unit, "\0"))
    unit = f" ({column.unit})" if column.unit and column.unit not in IN_CELL and column.unit != name else ""
    face = html.Button(_words(name) + unit, className="sort", title=column.doc or None, type="button")
    return html.Th(face, className=side, **cast("Any", {"aria-sort": "none"}))


def _cell(value: Any, write: Callable[[Any], Cell], column: Column | None) -> html.Td:
    side = "number" if column is not None and column.kind in NUMBERS else None
    return html.Td(write(value), className=side, **cast("Any", {"data-value": _key(value)}))


def _key(value: Any) -> str:
    """Write what a cell sorts by: numbers and times as numbers, else the text; nothing for a missing value."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{words.aware(value).timestamp():.6f}"
    if isinstance(value, (bool, int, float, Decimal)):
        return repr(float(value))
    return str(value)[:40]


def _writer(column: Column | None, name: str, state: State) -> Callable[[Any], Cell]:
    if name == "trace_id":
        return lambda value: trace_link(value, state) if value else words.MISSING
    if name == "trace_ids":
        return lambda value: _traces(value, state)
    if name == "yaml":
        return html.Pre
    if column is None:
        return lambda value: value or words.UNNAMED
    if column.kind is Kind.TIME:
        return lambda value: html.Span(words.instant(value, state.zone).removesuffix(".000"), className="at")
    if column.kind is Kind.INT:
        return words.count
    if column.kind in (Kind.FLOAT, Kind.MONEY):
        unit = {"By": "bytes"}.get(column.unit, column.unit)
        return lambda value: words.quantity(value, unit if unit in IN_CELL else "")
    if column.kind is Kind.JSON:
        return _json
    return _plain


def _traces(value: Any, state: State) -> Cell:
    ids = orjson.loads(value) if isinstance(value, str) and value else value or []
    return html.Span([part for item in ids[:3] for part in (trace_link(str(item), state), " ")]) or words.MISSING


def _json(value: str | None) -> Cell:
    if not value:
        return words.MISSING
    content = orjson.loads(value)
    return html.Span(pairs(content), className="drivers") if isinstance(content, dict) else _plain(content)


def _plain(value: Any) -> str:
    if value is None or value == "":
        return words.MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return words.number(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(str(name))} {_plain(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain(item) for item in value) or "none"
    return str(value)
