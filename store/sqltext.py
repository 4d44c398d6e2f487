"""Queries as SQL text and its parameters (`?`), for DuckDB."""

from typing import TYPE_CHECKING, Any

from store.columns import Table
from store.query import MetricQuery, Query, SpanQuery, Where
from store.tables import INFERENCE_OPERATIONS, SPANS
from store.window import Window

if TYPE_CHECKING:
    import polars as pl

Statement = tuple[str, list[Any]]
_SERIES_FIELDS = ("service", "instance", "job", "name", "canonical")


def select(query: Query, window: Window) -> Statement:
    """SELECT for a query within a window."""
    return _select_spans(query, window) if isinstance(query, SpanQuery) else _select_metrics(query, window)


def select_table(table: Table, window: Window | None) -> Statement:
    """SELECT of a whole table, or of a window of it."""
    names = ", ".join(f'"{name}"' for name in table.names)
    if window is None or table.time is None:
        return f'SELECT {names} FROM "{table.name}"', []
    bounds, values = _within(f'"{table.time}"', window)
    return f'SELECT {names} FROM "{table.name}" WHERE {bounds} ORDER BY "{table.time}"', values


def select_equal(table: Table, column: str, value: str) -> Statement:
    """SELECT of the rows whose column equals a value."""
    text, _ = select_table(table, None)
    return f'{text} WHERE "{column}" = ? ORDER BY "{table.time or column}"', [value]


def insert_new(table: Table, rows: "pl.DataFrame") -> str:
    """INSERT of the rows of `incoming` whose key is not stored yet.

    An earlier copy of a row has the same time, so only the stored rows between the batch's first and last time are
    searched: DuckDB's zone maps skip the rest (measured: as safe as a PRIMARY KEY at a quarter of its file size).
    """
    same = " AND ".join(f'old."{k}" = incoming."{k}"' for k in table.key)
    bound = ""
    if table.time and table.time not in table.key:
        same += f' AND old."{table.time}" = incoming."{table.time}"'
    if table.time and rows.height:
        low, high = rows[table.time].min(), rows[table.time].max()
        bound = f"old.\"{table.time}\" BETWEEN TIMESTAMP '{low!s}' AND TIMESTAMP '{high!s}' AND "
    return (
        f'INSERT INTO "{table.name}" SELECT * FROM incoming WHERE NOT EXISTS '
        f'(SELECT 1 FROM "{table.name}" AS old WHERE {bound}{same})'
    )


def refresh(table: Table) -> str:
    """UPDATE of the refreshed columns of stored rows from the rows of `incoming` with the same key."""
    same = " AND ".join(f'old."{k}" = incoming."{k}"' for k in table.key)
    sets = ", ".join(f'"{c}" = coalesce(incoming."{c}", old."{c}")' for c in table.refreshed)
    changed = " OR ".join(
        f'(incoming."{c}" IS NOT NULL AND incoming."{c}" IS DISTINCT FROM old."{c}")' for c in table.refreshed
    )
    return f'UPDATE "{table.name}" AS old SET {sets} FROM incoming WHERE {same} AND ({changed})'


def _within(column: str, window: Window) -> Statement:
    return f"{column} >= ? AND {column} < ?", [w.replace(tzinfo=None) for w in (window.start, window.end)]


def _json_text(columns: tuple[str, ...], key: str) -> Statement:
    path = '$."' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    parts = [f"json_extract_string({column}, ?)" for column in columns]
    text = parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"
    return text, [path] * len(columns)


def _attribute(key: str) -> Statement:
    return _json_text(("attributes", "resource"), key)


def _matches(where: Where, known: tuple[str, ...], prefix: str, json: tuple[str, ...]) -> Statement:
    """AND over fields, OR over the values of one field."""
    clauses: list[str] = []
    values: list[Any] = []
    for name in dict.fromkeys(name for name, _ in where):
        wanted = [value for field, value in where if field == name]
        text: str
        args: list[Any]
        if name in known:
            text, args = f'CAST({prefix}"{name}" AS VARCHAR)', []
        else:
            text, args = _json_text(json, name)
        clauses.append(f"{text} IN ({', '.join('?' * len(wanted))})")
        values += [*args, *wanted]
    return "".join(f" AND {clause}" for clause in clauses), values


def _select_spans(query: SpanQuery, window: Window) -> Statement:
    fields = [f'"{name}"' for name in query.columns]
    values: list[Any] = []
    for key in query.attributes:
        text, args = _attribute(key)
        quoted = key.replace('"', '""')
        fields.append(f'{text} AS "{quoted}"')
        values += args
    bounds, args = _within("ts", window)
    values += args
    kept = "".join(f' AND "{name}" IS NOT NULL' for name in query.not_null)
    if query.requests_only:
        kept += f" AND operation IN ({', '.join(repr(name) for name in INFERENCE_OPERATIONS)})"
    matched, args = _matches(query.where, SPANS.names, "", ("attributes", "resource"))
    return f"SELECT {', '.join(fields)} FROM spans WHERE {bounds}{kept}{matched} ORDER BY ts", values + args


def _select_metrics(query: MetricQuery, window: Window) -> Statement:
    marks = ", ".join("?" * len(query.names))
    bounds, times = _within("ts", window)
    matched, args = _matches(query.where, _SERIES_FIELDS, "s.", ("s.labels",))
    text = (
        "SELECT p.ts, CASE WHEN s.canonical IN "
        f"({marks}) THEN s.canonical ELSE s.name END AS name, s.series_id, "
        f"CASE WHEN s.canonical IN ({marks}) THEN p.value * coalesce(s.scale, 1) ELSE p.value END AS value, "
        f"CASE WHEN s.canonical IN ({marks}) OR coalesce(s.scale, 1) = 1 THEN s.unit END AS unit, "
        "coalesce(s.combine, 'mean') AS combine, s.kind, s.name AS raw, s.service, s.instance, s.job, s.labels "
        "FROM metric_samples AS p JOIN metric_series AS s USING (series_id) "
        f"WHERE {bounds} AND (s.canonical IN ({marks}) OR s.name IN ({marks})){matched} ORDER BY p.ts"
    )
    names = list(query.names)
    return text, [*names, *names, *names, *times, *names, *names, *args]
