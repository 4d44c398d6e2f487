"""One sealed file: what is in it, how it is written, and its row of the manifest."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.appending import insert_all
from store.columns import Table
from store.errors import StoreError
from store.footers import digest
from store.lake.storage import Storage
from store.manifest import MANIFEST, create_views
from store.migrate import SCHEMA_VERSION

if TYPE_CHECKING:
    import duckdb

HOUR = timedelta(hours=1)
ROW_GROUP_ROWS = 122_880
_FIRST_IN_ORDER = ("series_id", "stream", "service")
"""Columns that rows are looked for by, besides time: rows lie together by the first of them that a table has."""


@dataclass(frozen=True, slots=True)
class Content:
    """Rows in a file, their first and last time, and the sum of their keys' hashes: equal for equal rows."""

    rows: int
    min_ts: datetime | None
    max_ts: datetime | None
    keys: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """A file that was written to the lake."""

    table: Table
    hour: datetime
    node: str
    number: int
    path: str
    content: Content
    size_bytes: int
    sha256: str


def hot_rows(table: Table, hour: datetime) -> str:
    """SELECT of the hot rows of an hour."""
    return f'SELECT * FROM "{table.stored}" WHERE {within(table, hour)}'


def within(table: Table, hour: datetime) -> str:
    """Return the condition that a row lies in an hour; one without a time lies in none."""
    return f"\"{table.time}\" >= TIMESTAMP '{hour}' AND \"{table.time}\" < TIMESTAMP '{hour + HOUR}'"


def row_keys(table: Table) -> str:
    """Columns that tell rows apart, the time among them."""
    return ", ".join(f'"{name}"' for name in dict.fromkeys((*table.key, *([table.time] if table.time else []))))


def content(cursor: "duckdb.DuckDBPyConnection", table: Table, rows: str) -> Content:
    """Count the rows of a SELECT."""
    time = f'"{table.time}"'
    text = f"SELECT count(*), min({time}), max({time}), sum(hash({row_keys(table)}))::HUGEINT FROM ({rows})"
    (found,) = cursor.execute(text).fetchall()
    return Content(*found)


def write(
    cursor: "duckdb.DuckDBPyConnection", storage: Storage, table: Table, hour: datetime, node: str, rows: str
) -> Part | None:
    """Write the rows of a SELECT as a new part of an hour, durable on return; None where there are none.

    The file is not read before `record` names it in the manifest. Raises StoreError.
    """
    held = content(cursor, table, rows)
    if not held.rows:
        return None
    folder = f"{table.name}/date={hour:%Y-%m-%d}/hour={hour:%H}/node={node}"
    first = _next_number(cursor, table, hour, node)
    draft = storage.draft(folder)
    try:
        _write_file(cursor, table, rows, draft)
        size, sha256 = draft.stat().st_size, digest(draft)
        number = _create(storage, folder, first, draft)
    except OSError as error:
        raise StoreError(
            f"{table.name} of {hour:%Y-%m-%d %H:%M} cannot be sealed: {error.strerror or error}",
            "free space or check the disk; the rows stay where they are",
        ) from error
    finally:
        draft.unlink(missing_ok=True)
    return Part(table, hour, node, number, f"{folder}/part-{number}.parquet", held, size, sha256)


def record(cursor: "duckdb.DuckDBPyConnection", root: str, parts: Sequence[Part], sealed: datetime) -> None:
    """Name parts in the manifest and make the view of their table anew, within the transaction of `cursor`."""
    import polars as pl

    insert_all(cursor, MANIFEST, pl.DataFrame([_row(part, sealed) for part in parts], infer_schema_length=None))
    create_views(cursor, list({part.table.name: part.table for part in parts}.values()), root)


def _row(part: Part, sealed: datetime) -> dict[str, Any]:
    return {
        "path": part.path,
        "table_name": part.table.name,
        "hour": part.hour,
        "node": part.node,
        "part": part.number,
        "rows": part.content.rows,
        "bytes": part.size_bytes,
        "min_ts": part.content.min_ts,
        "max_ts": part.content.max_ts,
        "sha256": part.sha256,
        "schema_version": SCHEMA_VERSION,
        "sealed": sealed,
        "dropped": None,
    }


def _write_file(cursor: "duckdb.DuckDBPyConnection", table: Table, rows: str, path: Path) -> None:
    import pyarrow.parquet as pq

    names = ", ".join(f'"{name}"' for name in table.names)
    leading = next((f'"{name}", ' for name in _FIRST_IN_ORDER if table.column(name)), "")
    ordered = f'SELECT {names} FROM ({rows}) ORDER BY {leading}"{table.time}"'
    reader = cursor.sql(ordered).to_arrow_reader(ROW_GROUP_ROWS)
    with pq.ParquetWriter(path, reader.schema, compression="zstd", compression_level=3) as writer:
        for batch in reader:
            writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)


def _next_number(cursor: "duckdb.DuckDBPyConnection", table: Table, hour: datetime, node: str) -> int:
    text = "SELECT coalesce(max(part), 0) + 1 FROM manifest WHERE table_name = ? AND hour = ? AND node = ?"
    ((number,),) = cursor.execute(text, [table.name, hour, node]).fetchall()  # a row left unread blocks the next query
    return int(number)


def _create(storage: Storage, folder: str, first: int, draft: Path) -> int:
    """Give the draft the next free number: a file that an earlier run left there is not in the manifest."""
    for number in count(first):
        try:
            storage.create(f"{folder}/part-{number}.parquet", draft)
            return number
        except FileExistsError:
            continue
    raise AssertionError
