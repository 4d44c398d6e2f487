"""Seals closed hours: hot rows become Parquet files of the lake, each row in exactly one of the two at any moment."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from store.columns import Table
from store.lake import mirror
from store.lake.node import node
from store.lake.part import Part, content, hot_rows, record, within, write
from store.lake.storage import Storage
from store.tables import TABLES

if TYPE_CHECKING:
    from store.database import Database

HOURS_AT_ONCE = 24
"""Hours of a table that one transaction seals: its view is made anew each time."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """An hour of a table, or what came late of it, that now lies in the lake."""

    table: str
    hour: datetime
    path: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows of a table whose hour is due to be sealed and is not: how many, of how many hours, since when."""

    table: str
    rows: int
    hours: int
    oldest: datetime


def seal(database: "Database", now: datetime, *, hot: timedelta | None = None) -> tuple[Sealed, ...]:
    """Seal every hour that ended longer ago than `hot` (None: as the settings say); `now` is aware.

    Rows without a time, or of the future, stay. Files are written while others append; only an hour that took new rows
    meanwhile is written once more with appends held back. Raises StoreError where the lake cannot be written: what was
    sealed until then is, all else stays hot.
    """
    before = _before(database, now, hot)
    done: list[Sealed] = []
    with mirror.changing(database) as lake:
        for table in TABLES:
            if table.sealed:
                hours = iter([hour for hour, _ in due(database, table, before)])
                while group := tuple(islice(hours, HOURS_AT_ONCE)):
                    done += _seal_hours(database, lake, table, group, now)
    return tuple(done)


def waiting(database: "Database", now: datetime, *, hot: timedelta | None = None) -> tuple[Waiting, ...]:
    """Count by table the rows that `seal` would take: more than an hour's worth says that sealing is held up."""
    before = _before(database, now, hot)
    found = [(table, due(database, table, before)) for table in TABLES if table.sealed]
    return tuple(
        Waiting(table.name, sum(rows for _, rows in hours), len(hours), hours[0][0]) for table, hours in found if hours
    )


def due(database: "Database", table: Table, before: datetime) -> Sequence[tuple[datetime, int]]:
    """Return the hours that ended by `before` (naive UTC) and have hot rows, oldest first, with their rows."""
    text = (
        f'SELECT date_trunc(\'hour\', "{table.time}") AS hour, count(*) FROM "{table.stored}" '
        f"WHERE \"{table.time}\" < date_trunc('hour', $1::TIMESTAMP) GROUP BY hour ORDER BY hour"
    )
    with database.snapshot() as cursor:
        return cursor.execute(text, [before]).fetchall()


def _before(database: "Database", now: datetime, hot: timedelta | None) -> datetime:
    age = database.settings.hot if hot is None else hot
    return now.astimezone(UTC).replace(tzinfo=None) - max(age, timedelta(0))


def _seal_hours(
    database: "Database", lake: Storage, table: Table, hours: Sequence[datetime], now: datetime
) -> Iterable[Sealed]:
    left = list(hours)
    for guard in (nullcontext(), database.writing()):
        with guard:
            parts = _try(database, lake, table, left, now)
        for part in parts:
            yield Sealed(table.name, part.hour, part.path, part.content.rows, part.size_bytes)
        left = [hour for hour in left if hour not in {part.hour for part in parts}]
        if not left:
            return


def _try(database: "Database", lake: Storage, table: Table, hours: Sequence[datetime], now: datetime) -> Sequence[Part]:
    """Write the hours and take those that are still as they were written; the files of others are deleted."""
    own = node(database).name
    with database.snapshot() as cursor:
        written = [part for hour in hours if (part := write(cursor, lake, table, hour, own, hot_rows(table, hour)))]
    if not written:
        return ()
    with database.transaction() as cursor:
        taken = [part for part in written if content(cursor, table, hot_rows(table, part.hour)) == part.content]
        for part in taken:
            cursor.execute(f'DELETE FROM "{table.stored}" WHERE {within(table, part.hour)}')
        if taken:
            record(cursor, lake.root, taken, now.astimezone(UTC).replace(tzinfo=None))
    for part in written:
        if part not in taken:
            lake.delete(part.path)
    return taken
