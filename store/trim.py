"""Drops journal segments once all that they hold is in the lake or in a snapshot."""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from store import snapshot
from store.appending import Prepared
from store.batch import Batch
from store.columns import Table
from store.journal_files import Segment
from store.tables import BY_NAME, TABLES

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from store.database import Database

SLACK = timedelta(hours=2)
"""How long after `hot` a segment that still has rows in the database is carried over."""
CARRIED = "infractl journal"
log = logging.getLogger(__name__)


def trim_journal(database: "Database", now: datetime) -> int:
    """Drop what the journal no longer needs to hold and return the bytes freed; `now` is aware.

    A segment goes when a snapshot has its small tables, and the lake (with its mirror, and the database with its log
    written out) has its other rows. A few rows that lie in the future, or of an hour that is not sealed yet, would keep
    an old segment for ever: they are written to the journal again. Raises StoreError;
    the journal is kept whole where the lake does not take the mirror.
    """
    from store.lake import mirror

    with database.writing():
        found = snapshot.current(database.directory)
        if found is None:
            return 0
        database.checkpoint()
        mirror.sync(database)
        with database.snapshot() as cursor:
            pinned = _pinned(cursor)
        through = 0
        for segment, last in _bounds(database):
            if last > found.sequence or not _free(database, segment, last, pinned, now):
                break
            through = last
        return database.journal.trim(through) if through else 0


def _bounds(database: "Database") -> list[tuple[Segment, int]]:
    """Segments with the highest number that was given out in each, readable or not."""
    segments = database.journal.segments()
    ends = [*(after.named - 1 for after in segments[1:]), database.journal.last_sequence][: len(segments)]
    return list(zip(segments, ends, strict=True))


def _free(database: "Database", segment: Segment, last: int, pinned: list[int], now: datetime) -> bool:
    if bisect_left(pinned, segment.named) == bisect_right(pinned, last):
        return True
    if segment.last_time is None or segment.last_time > now - database.settings.hot - SLACK:
        return False
    return _carry(database, segment, last)


def _pinned(cursor: "duckdb.DuckDBPyConnection") -> list[int]:
    """Numbers of the batches that may have rows in an hour of which the database still has rows, ascending."""
    hours = " UNION ALL ".join(_hours(table) for table in TABLES if table.sealed)
    text = (
        f"SELECT DISTINCT b.sequence FROM ingest_batch AS b JOIN ({hours}) AS h ON h.table_name = b.table_name "
        "AND b.max_ts >= h.hour AND b.min_ts < h.hour + INTERVAL 1 HOUR ORDER BY 1"
    )
    return [sequence for (sequence,) in cursor.execute(text).fetchall() if sequence is not None]


def _hours(table: Table) -> str:
    hour = f"date_trunc('hour', \"{table.time}\")"
    return f"SELECT DISTINCT '{table.name}' AS table_name, {hour} AS hour FROM \"{table.stored}\""


def _carry(database: "Database", segment: Segment, last: int) -> bool:
    """Write the rows of a segment that only the database has to the journal again, where they are few."""
    frames: dict[str, list[pl.DataFrame]] = {}
    total = left = 0
    for name, rows, here in _left(database, segment, last):
        total += rows
        left += here.height
        if here.height:
            frames.setdefault(name, []).append(here)
    if left * 2 > total:
        log.warning("journal segment %s is kept: %d of its %d rows are not sealed", segment.path.name, left, total)
        return False
    if left:
        _write_again(database, frames)
    return True


def _left(database: "Database", segment: Segment, last: int) -> "Iterator[tuple[str, int, pl.DataFrame]]":
    """Per frame of a segment: its table, its rows, and those of them that are hot."""
    for sequence, batch in database.journal.entries(segment.named - 1):
        if sequence > last:
            return
        for name, frame in batch.frames.items():
            table = BY_NAME[name]
            if table.sealed and frame.height:
                yield name, frame.height, _hot(database, name, table.conform(frame))


def _hot(database: "Database", name: str, frame: "pl.DataFrame") -> "pl.DataFrame":
    import polars as pl

    table = BY_NAME[name]
    keys = tuple(dict.fromkeys((*table.key, table.time or "")))
    same = " AND ".join(f'hot."{key}" = i."{key}"' for key in keys)
    with database.snapshot() as cursor:
        cursor.register("incoming", frame.to_arrow())
        text = f'SELECT i.* FROM incoming AS i WHERE EXISTS (SELECT 1 FROM "{table.stored}" AS hot WHERE {same})'
        found = pl.from_arrow(cursor.sql(text).to_arrow_table())
        cursor.unregister("incoming")
    assert isinstance(found, pl.DataFrame)
    return found


def _write_again(database: "Database", frames: "dict[str, list[pl.DataFrame]]") -> None:
    import polars as pl

    merged = {
        name: pl.concat(parts).unique(list(BY_NAME[name].key), keep="first", maintain_order=True)
        for name, parts in frames.items()
    }
    batch = Batch(CARRIED, merged)
    sequence = database.journal.append([batch])
    database.commit([Prepared(batch, dict.fromkeys(merged, 0))], sequence)
