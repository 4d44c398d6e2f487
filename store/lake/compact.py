"""Merges the parts of an hour into one: rows that came late make small files, and each costs every reader an open."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from store.columns import Table
from store.lake import mirror
from store.lake.node import node
from store.lake.part import Part, record, row_keys, write
from store.lake.storage import Storage
from store.manifest import sealed_rows
from store.tables import BY_NAME

if TYPE_CHECKING:
    from store.database import Database

PARTS = 8
SETTLED = timedelta(days=7)
"""An hour this old is expected to get no more rows: two parts are merged too."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """An hour of a table whose parts are one file now; `duplicates` rows were in more than one of them."""

    table: str
    hour: datetime
    path: str
    parts: int
    rows: int
    duplicates: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Parts:
    table: Table
    hour: datetime
    paths: Sequence[str]
    rows: int
    sealed: datetime


def compact(database: "Database", now: datetime, *, parts: int = PARTS) -> tuple[Compacted, ...]:
    """Merge the files of every hour that has at least `parts`, or more than one and is a week old; `now` is aware.

    The old files are dropped: `sweep` deletes them. Raises StoreError; what was merged until then is.
    """
    at = now.astimezone(UTC).replace(tzinfo=None)
    with mirror.changing(database) as lake:
        merged = [_merge(database, lake, many, at) for many in _many(database, at, parts)]
    return tuple(done for done in merged if done is not None)


def _many(database: "Database", now: datetime, parts: int) -> Sequence[_Parts]:
    text = (
        "SELECT table_name, hour, list(path ORDER BY part), sum(rows)::BIGINT, max(sealed) FROM manifest "
        "WHERE dropped IS NULL GROUP BY table_name, hour "
        "HAVING count(*) >= greatest(2, $1) OR (count(*) > 1 AND hour < $2) ORDER BY hour, table_name"
    )
    with database.snapshot() as cursor:
        found = cursor.execute(text, [parts, now - SETTLED]).fetchall()
    return [_Parts(BY_NAME[name], *more) for name, *more in found if name in BY_NAME]


def _merge(database: "Database", lake: Storage, many: _Parts, now: datetime) -> Compacted | None:
    """Write one file of the parts and put it in their place, unless one of them was dropped meanwhile."""
    rows = _rows_once(many.table, [lake.root + path for path in many.paths])
    with database.snapshot() as cursor:
        part = write(cursor, lake, many.table, many.hour, node(database).name, rows)
    if part is None:
        return None
    if not _take(database, lake, many, part, now):
        lake.delete(part.path)
        return None
    held = part.content.rows
    return Compacted(many.table.name, many.hour, part.path, len(many.paths), held, many.rows - held, part.size_bytes)


def _take(database: "Database", lake: Storage, many: _Parts, part: Part, now: datetime) -> bool:
    """Drop the parts and record the one; its age for retention stays that of the newest of them."""
    chosen = "dropped IS NULL AND path IN (SELECT unnest($1::VARCHAR[]))"
    with database.transaction() as cursor:
        counted = cursor.execute(f"SELECT count(*) FROM manifest WHERE {chosen}", [many.paths]).fetchone()
        if not counted or counted[0] != len(many.paths):
            return False
        cursor.execute(f"UPDATE manifest SET dropped = $2 WHERE {chosen}", [many.paths, now])
        record(cursor, lake.root, [part], many.sealed)
    return True


def _rows_once(table: Table, files: Sequence[str]) -> str:
    """SELECT of the rows in files, one of each key; columns that the files lack are null."""
    every = f'SELECT * FROM "{table.stored}" WHERE false UNION ALL BY NAME SELECT * FROM {sealed_rows(files)}'
    return f"SELECT DISTINCT ON ({row_keys(table)}) * FROM ({every})"
