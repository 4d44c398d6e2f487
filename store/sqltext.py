"""Queries as SQL text and its parameters (`?`), for DuckDB."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from store.columns import Kind, Table
from store.errors import UsageError
from store.manifest import Files, source
from store.query import MetricQuery, RowQuery, SpanQuery, Where
from store.tables import BY_NAME, INFERENCE_OPERATIONS, METRIC_SAMPLES, SPANS
from store.window import Window

if TYPE_CHECKING:
    import polars as pl

SEALED_BYTES = "SELECT coalesce(sum(bytes), 0)::BIGINT AS n FROM manifest WHERE dropped IS NULL"
NEWEST_CHARGE = "SELECT max(coalesce(end_ts, ts)) AS ts FROM costs"
Statement = tuple[str, list[Any]]
_SERIES_FIELDS = ("service", "instance", "job", "name", "canonical")


def select(query: SpanQuery | MetricQuery | RowQuery, window: Window, files: Files, share: float = 1.0) -> Statement:
    """SELECT for a query within a window; `files` names the sealed files, `share` is that of a SpanQuery's traces."""
    if isinstance(query, RowQuery):
        return _select_rows(query, window, files)
    if isinstance(query, SpanQuery):
        return _select_spans(query, window, source(SPANS, files(SPANS, window)), share)
    return _select_metrics(query, window, source(METRIC_SAMPLES, files(METRIC_SAMPLES, window)))


def select_table(table: Table, window: Window | None, files: Files) -> Statement:
    """SELECT of a whole table, or of a window of it."""
    names = ", ".join(f'"{name}"' for name in table.names)
    if window is None or table.time is None:
        return f'SELECT {names} FROM "{table.name}"', []
    bounds, values = within(f'"{table.time}"', window)
    rows = source(table, files(table, window))
    return f'SELECT {names} FROM {rows} WHERE {bounds} ORDER BY "{table.time}"', values


def select_equal(table: Table, column: str, value: str) -> Statement:
    """SELECT of the rows whose column equals a value."""
    names = ", ".join(f'"{name}"' for name in table.names)
    return f'SELECT {names} FROM "{table.name}" WHERE "{column}" = ? ORDER BY "{table.time or column}"', [value]


def extent(table: Table) -> Statement:
    """SELECT of the first row's time and the moment after the last one's, hot and sealed."""
    hot = f'SELECT min("{table.time}") AS lo, max("{table.time}") AS hi FROM "{table.stored}"'
    sealed = "SELECT min(min_ts) AS lo, max(max_ts) AS hi FROM manifest WHERE dropped IS NULL AND table_name = ?"
    return f"SELECT min(lo), max(hi) + INTERVAL 1 MICROSECOND FROM ({hot} UNION ALL {sealed})", [table.name]


def newest(prefix: str) -> str:
    """SELECT of the time of the newest request or sample; `prefix` hot_ looks at hot rows only."""
    requests = f"(SELECT max(ts) FROM {prefix}spans WHERE operation IS NOT NULL)"
    return f"SELECT greatest({requests}, (SELECT max(ts) FROM {prefix}metric_samples)) AS ts"


def counts(tables: Sequence[Table]) -> str:
    """SELECT of name and rows of each table: what is sealed is counted from the manifest."""
    parts = []
    for table in tables:
        sealed = ""
        if table.sealed:
            live = f"dropped IS NULL AND table_name = '{table.name}'"
            sealed = f" + (SELECT coalesce(sum(rows), 0)::BIGINT FROM manifest WHERE {live})"
        parts.append(f"SELECT '{table.name}' AS name, count(*){sealed} AS n FROM \"{table.stored}\"")
    return " UNION ALL ".join(parts)


def span_of(table: Table, rows: "pl.DataFrame") -> Window | None:
    """Return the window that holds all rows of a frame; None without times."""
    if table.time is None or not rows.height:
        return None
    low, high = rows[table.time].min(), rows[table.time].max()
    if not isinstance(low, datetime) or not isinstance(high, datetime):
        return None
    return Window(low.replace(tzinfo=UTC), high.replace(tzinfo=UTC) + timedelta(microseconds=1))


def insert_new(table: Table, rows: "pl.DataFrame", files: Files) -> str:
    """INSERT of the rows of `incoming` whose key is not stored yet.

    An earlier copy of a row has the same time, so only the stored rows between the batch's first and last time are
    searched: DuckDB's zone maps skip the rest (measured: as safe as a PRIMARY KEY at a quarter of its file size). Rows
    of an hour that is sealed already are looked for in its files too.
    """
    same = " AND ".join(f'old."{k}" = incoming."{k}"' for k in table.key)
    bound = ""
    if table.time and table.time not in table.key:
        same += f' AND old."{table.time}" = incoming."{table.time}"'
    window = span_of(table, rows)
    if window is not None:
        low, high = (time.replace(tzinfo=None) for time in (window.start, window.end))
        bound = f"old.\"{table.time}\" >= TIMESTAMP '{low!s}' AND old.\"{table.time}\" < TIMESTAMP '{high!s}' AND "
    stored = source(table, files(table, window)) if window is not None else f'"{table.stored}"'
    return (
        f'INSERT INTO "{table.stored}" SELECT * FROM incoming WHERE NOT EXISTS '
        f"(SELECT 1 FROM {stored} AS old WHERE {bound}{same})"
    )


def refresh(table: Table) -> str:
    """UPDATE of the refreshed columns of stored rows from the rows of `incoming` with the same key."""
    same = " AND ".join(f'old."{k}" = incoming."{k}"' for k in table.key)
    sets = ", ".join(f'"{c}" = coalesce(incoming."{c}", old."{c}")' for c in table.refreshed)
    changed = " OR ".join(
        f'(incoming."{c}" IS NOT NULL AND incoming."{c}" IS DISTINCT FROM old."{c}")' for c in table.refreshed
    )
    return f'UPDATE "{table.name}" AS old SET {sets} FROM incoming WHERE {same} AND ({changed})'


def within(column: str, window: Window) -> Statement:
    """Write the condition that a time column lies within a window."""
    return f"{column} >= ? AND {column} < ?", [w.replace(tzinfo=None) for w in (window.start, window.end)]


def _json_text(columns: tuple[str, ...], key: str) -> Statement:
    path = '$."' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    parts = [f"json_extract_string({column}, ?)" for column in columns]
    text = parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"
    return text, [path] * len(columns)


def _attribute(key: str) -> Statement:
    return _json_text(("attributes", "resource"), key)


def column_or_json(name: str, known: tuple[str, ...], json: tuple[str, ...], prefix: str = "") -> Statement:
    """Write a column as text where it is one of `known`, else the value of that key in the JSON columns."""
    return (f'CAST({prefix}"{name}" AS VARCHAR)', []) if name in known else _json_text(json, name)


def matches(where: Where, known: tuple[str, ...], prefix: str, json: tuple[str, ...]) -> Statement:
    """Write conditions that follow others: AND over fields, OR over the values of one field."""
    clauses: list[str] = []
    values: list[Any] = []
    for name in dict.fromkeys(name for name, _ in where):
        wanted = [value for field, value in where if field == name]
        text, args = column_or_json(name, known, json, prefix)
        clauses.append(f"{text} IN ({', '.join('?' * len(wanted))})")
        values += [*args, *wanted]
    return "".join(f" AND {clause}" for clause in clauses), values


def _select_spans(query: SpanQuery, window: Window, rows: str, share: float) -> Statement:
    fields = [f'"{name}"' for name in query.columns]
    values: list[Any] = []
    for key in query.attributes:
        text, args = _attribute(key)
        quoted = key.replace('"', '""')
        fields.append(f'{text} AS "{quoted}"')
        values += args
    bounds, args = within("ts", window)
    values += args
    kept = "".join(f' AND "{name}" IS NOT NULL' for name in query.not_null)
    if query.requests_only:
        kept += f" AND operation IN ({', '.join(repr(name) for name in INFERENCE_OPERATIONS)})"
    if query.at_most is not None:
        fields.append(f"CAST({share!r} AS DOUBLE) AS share_read")
        kept += f" AND hash(trace_id) < {int(share * 2**64)}::UBIGINT" if share < 1 else ""
    matched, args = matches(query.where, SPANS.names, "", ("attributes", "resource"))
    return f"SELECT {', '.join(fields)} FROM {rows} WHERE {bounds}{kept}{matched} ORDER BY ts", values + args


def _select_rows(query: RowQuery, window: Window, files: Files) -> Statement:
    table = BY_NAME[query.table]
    if table.time is None:
        raise UsageError(f"rows of {table.name} have no time", "ask for the whole table")
    fields = ", ".join(f'"{name}"' for name in query.columns)
    bounds, values = within(f'"{table.time}"', window)
    json = tuple(column.name for column in table.columns if column.kind is Kind.JSON)
    matched, args = matches(query.where, table.names, "", json)
    rows = source(table, files(table, window))
    return f'SELECT {fields} FROM {rows} WHERE {bounds}{matched} ORDER BY "{table.time}"', values + args


def _select_metrics(query: MetricQuery, window: Window, rows: str) -> Statement:
    marks = ", ".join("?" * len(query.names))
    bounds, times = within("ts", window)
    matched, args = matches(query.where, _SERIES_FIELDS, "s.", ("s.labels",))
    text = (
        "SELECT p.ts, CASE WHEN s.canonical IN "
        f"({marks}) THEN s.canonical ELSE s.name END AS name, s.series_id, "
        f"CASE WHEN s.canonical IN ({marks}) THEN p.value * coalesce(s.scale, 1) ELSE p.value END AS value, "
        f"CASE WHEN s.canonical IN ({marks}) OR coalesce(s.scale, 1) = 1 THEN s.unit END AS unit, "
        "coalesce(s.combine, 'mean') AS combine, s.kind, s.name AS raw, s.service, s.instance, s.job, s.labels "
        f"FROM {rows} AS p JOIN metric_series AS s USING (series_id) "
        f"WHERE {bounds} AND (s.canonical IN ({marks}) OR s.name IN ({marks})){matched} ORDER BY p.ts"
    )
    names = list(query.names)
    return text, [*names, *names, *names, *times, *names, *names, *args]


def series_named(names: Sequence[str], where: Where) -> Statement:
    """SELECT of the series of these names as a MetricQuery gives them; value in that unit = raw value x factor.

    Without names: of all but buckets of histograms.
    """
    if not names:
        matched, args = matches(where, _SERIES_FIELDS, "s.", ("s.labels",))
        return (
            "SELECT s.series_id, coalesce(s.canonical, s.name) AS name, "
            "CASE WHEN s.canonical IS NULL THEN 1 ELSE coalesce(s.scale, 1) END AS factor, "
            "CASE WHEN s.canonical IS NOT NULL OR coalesce(s.scale, 1) = 1 THEN s.unit END AS unit, "
            "coalesce(s.combine, 'mean') AS combine, s.kind, s.name AS raw, s.service, s.instance, s.job, s.labels "
            f"FROM metric_series AS s WHERE json_extract_string(s.labels, '$.le') IS NULL{matched}"
        ), args
    marks = ", ".join("?" * len(names))
    matched, args = matches(where, _SERIES_FIELDS, "s.", ("s.labels",))
    text = (
        f"SELECT s.series_id, CASE WHEN s.canonical IN ({marks}) THEN s.canonical ELSE s.name END AS name, "
        f"CASE WHEN s.canonical IN ({marks}) THEN coalesce(s.scale, 1) ELSE 1 END AS factor, "
        f"CASE WHEN s.canonical IN ({marks}) OR coalesce(s.scale, 1) = 1 THEN s.unit END AS unit, "
        "coalesce(s.combine, 'mean') AS combine, s.kind, s.name AS raw, s.service, s.instance, s.job, s.labels "
        f"FROM metric_series AS s WHERE (s.canonical IN ({marks}) OR s.name IN ({marks})){matched}"
    )
    return text, [*names, *names, *names, *names, *names, *args]
