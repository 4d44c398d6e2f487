"""Which sealed files there are: `files` of a window, and the view that reads hot and sealed rows as one table."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from store.columns import Column, Kind, Table
from store.window import Window

if TYPE_CHECKING:
    import duckdb

T, N, TS = Kind.TEXT, Kind.INT, Kind.TIME

MANIFEST = Table(
    name="manifest",
    doc="One row per sealed Parquet file. A file is never changed; one that is no longer read has a time in dropped.",
    key=("path",),
    columns=(
        Column("path", T, "path below the lake, hive layout: <table>/date=…/hour=…/node=…/part-<n>.parquet"),
        Column("table_name", T, "table its rows belong to"),
        Column("hour", TS, "start of the hour its rows lie in"),
        Column("node", T, "machine that sealed it"),
        Column("part", N, "number within its hour and node"),
        Column("rows", N, "rows", "rows"),
        Column("bytes", N, "size of the file", "bytes"),
        Column("min_ts", TS, "earliest row"),
        Column("max_ts", TS, "latest row"),
        Column("sha256", T, "digest of the file"),
        Column("schema_version", N, "schema that it was written with"),
        Column("sealed", TS, "when it was sealed"),
        Column("dropped", TS, "when it was replaced or its time was over; null: it is read"),
    ),
)

Files = Callable[[Table, Window | None], Sequence[str]]
"""Addresses of the sealed files of a table that overlap a window (None: all)."""


def lister(cursor: "duckdb.DuckDBPyConnection", root: str) -> Files:
    """Return a lister that sees what the transaction of `cursor` sees; `root` is the lake, ending in a slash."""

    def files(table: Table, window: Window | None) -> Sequence[str]:
        if not table.sealed:
            return ()
        text = "SELECT path FROM manifest WHERE dropped IS NULL AND table_name = ?"
        values: list[object] = [table.name]
        if window is not None:
            text += " AND max_ts >= ? AND min_ts < ?"
            values += [window.start.replace(tzinfo=None), window.end.replace(tzinfo=None)]
        return [root + path for (path,) in cursor.execute(text + " ORDER BY hour, node, part", values).fetchall()]

    return files


def source(table: Table, files: Sequence[str]) -> str:
    """FROM item of a table's hot rows and those in the files. A column that a file lacks is null."""
    if not files:
        return f'"{table.stored}"'
    return f'(SELECT * FROM "{table.stored}" UNION ALL BY NAME SELECT * FROM {sealed_rows(files)})'


def sealed_rows(files: Sequence[str]) -> str:
    """FROM item of the rows in sealed files."""
    listed = ", ".join(_literal(file) for file in files)
    return f"read_parquet([{listed}], union_by_name=true, hive_partitioning=false)"


def create_views(cursor: "duckdb.DuckDBPyConnection", tables: Sequence[Table], root: str) -> None:
    """Make the views of the sealed tables anew, within the transaction of `cursor`."""
    files = lister(cursor, root)
    for table in tables:
        if table.sealed:
            columns = ", ".join(f'"{name}"' for name in table.names)
            cursor.execute(
                f'CREATE OR REPLACE VIEW "{table.name}" AS SELECT {columns} FROM {source(table, files(table, None))}'
            )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
