"""How long and how much is kept: by age and by size per table, whole sealed files or time-ordered rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from store.appending import marked
from store.batch import Batch
from store.columns import Table
from store.manifest import create_views
from store.rollups.freshness import ROLLED_MARK
from store.settings import Retention, StoreSettings
from store.tables import BY_NAME, TABLES

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from store.database import Database

DAY = timedelta(days=1)
DEFAULTS: Mapping[str, Retention] = {
    "spans": Retention(30 * DAY),
    "metric_samples": Retention(30 * DAY),
    "token_arrivals": Retention(7 * DAY),
    "kv_events": Retention(7 * DAY),
    "request_blocks": Retention(30 * DAY),
    "events": Retention(365 * DAY),
    "costs": Retention(),
    "prices": Retention(),
    "benchmarks": Retention(),
    "ingest_batch": Retention(30 * DAY),
    "ingest_drops": Retention(30 * DAY),
}
"""What is kept where the configuration says nothing. Money and benchmarks are small and are compared over years."""
ROLLUP_AGES = {300: 90 * DAY, 3600: 730 * DAY}
"""Ages of rollups by the length of their buckets in seconds, where the configuration sets none for their table."""
TOO_OLD = "older than retention"
BATCH_ROWS = 100_000
_SAMPLE_ROWS = 1_000
_TIMES = {"ingest_batch": "committed", "ingest_drops": "committed"}


@dataclass(frozen=True, slots=True)
class Dropped:
    """What is not kept any more: its table, why (age or size), how many rows, and bytes (None: not files)."""

    table: str
    reason: str
    rows: int
    bytes: int | None


def kept(table: str, settings: StoreSettings) -> Retention:
    """Return how long and how much of a table is kept."""
    return settings.retention.get(table) or DEFAULTS.get(table, Retention())


def too_old(table: Table, frame: "pl.DataFrame", now: datetime, settings: StoreSettings) -> "pl.Series":
    """Mask the rows that are older than the age that the configuration sets for their table (`now` naive UTC).

    A default age refuses nothing: traces of years ago may be imported to be looked at, and are kept for that age from
    then on.
    """
    import polars as pl

    bound = settings.retention.get(table.name)
    if bound is None or bound.age is None or table.time is None or table.time not in frame.columns:
        return pl.repeat(False, frame.height, eager=True)
    return frame.select((pl.col(table.time) < now - bound.age).fill_null(False)).to_series()


def without_old(batch: Batch, now: datetime, settings: StoreSettings) -> Batch:
    """Refuse rows that are too old, counted in the batch's drops."""
    if not settings.retention:
        return batch
    masks = {name: too_old(BY_NAME[name], frame, now, settings) for name, frame in batch.frames.items()}
    refused = sum(int(mask.sum()) for mask in masks.values())
    if not refused:
        return batch
    frames = {name: frame.filter(~masks[name]) for name, frame in batch.frames.items()}
    drops = {**batch.drops, TOO_OLD: batch.drops.get(TOO_OLD, 0) + refused}
    return replace(batch, frames=frames, drops=drops)


def retain(database: "Database", now: datetime) -> tuple[Dropped, ...]:
    """Drop what is over its age or beyond its size, oldest first, and say what went; `now` is aware.

    Sealed files go whole: those with no row within the age. A default age runs from when a file was sealed where that
    is later than its rows. Raises StoreError; what was dropped until then is.
    """
    at = now.astimezone(UTC).replace(tzinfo=None)
    gone = [*_drop_files(database, at)]
    for table in TABLES:
        gone += _drop_rows(database, table, at)
    if any(item.table in ("metric_samples", "rollup_metrics") for item in gone):
        gone += _drop_series(database)
    return tuple(gone)


def _drop_files(database: "Database", now: datetime) -> list[Dropped]:
    """Mark whole files as dropped and make the views without them, in one transaction."""
    with database.transaction() as cursor:
        gone = [
            item
            for table in TABLES
            if table.sealed
            for item in (
                *_drop_old_files(cursor, table, now, database.settings),
                *_drop_large_files(cursor, table, now, database.settings),
            )
        ]
        if gone:
            create_views(cursor, TABLES, database.lake)
    return gone


def _drop_old_files(
    cursor: "duckdb.DuckDBPyConnection", table: Table, now: datetime, settings: StoreSettings
) -> Iterator[Dropped]:
    age = kept(table.name, settings).age
    if age is None:
        return
    since = "max_ts" if table.name in settings.retention else "greatest(max_ts, sealed)"
    text = f"SELECT path FROM manifest WHERE dropped IS NULL AND table_name = ? AND {since} < ?"
    paths = [path for (path,) in cursor.execute(text, [table.name, now - age]).fetchall()]
    yield from _drop_paths(cursor, table, "age", paths, now)


def _drop_large_files(
    cursor: "duckdb.DuckDBPyConnection", table: Table, now: datetime, settings: StoreSettings
) -> Iterator[Dropped]:
    """Drop the oldest files until the others fit."""
    limit = kept(table.name, settings).size_bytes
    if limit is None:
        return
    text = (
        "SELECT path FROM (SELECT path, sum(bytes) OVER (ORDER BY hour DESC, path DESC) AS newer "
        "FROM manifest WHERE dropped IS NULL AND table_name = ?) WHERE newer > ?"
    )
    paths = [path for (path,) in cursor.execute(text, [table.name, limit]).fetchall()]
    yield from _drop_paths(cursor, table, "size", paths, now)


def _drop_paths(
    cursor: "duckdb.DuckDBPyConnection", table: Table, reason: str, paths: Sequence[str], now: datetime
) -> Iterator[Dropped]:
    if paths:
        chosen = "FROM manifest WHERE path IN (SELECT unnest($1))"
        found = cursor.execute(f"SELECT sum(rows)::BIGINT, sum(bytes)::BIGINT {chosen}", [paths]).fetchone()
        cursor.execute("UPDATE manifest SET dropped = $2 WHERE path IN (SELECT unnest($1))", [paths, now])
        rows, size = found or (0, 0)
        yield Dropped(table.name, reason, rows, size)


def _drop_rows(database: "Database", table: Table, now: datetime) -> Iterator[Dropped]:
    """Delete rows of the database, oldest first, in batches that each are a transaction."""
    if table.column("step_s"):
        yield from _drop_buckets(database, table, now)
        return
    bounds = kept(table.name, database.settings)
    time = _TIMES.get(table.name, table.time)
    if time is None or (table.sealed and table.name not in database.settings.retention):
        return
    if bounds.age is not None:
        rows = _delete(database, table, time, f"\"{time}\" < TIMESTAMP '{now - bounds.age}'")
        if rows:
            yield Dropped(table.name, "age", rows, None)
    if bounds.size_bytes is not None and not table.sealed:
        newest_gone = _size_bound(database, table, time, bounds.size_bytes)
        rows = 0
        if newest_gone is not None:
            rows = _delete(database, table, time, f"\"{time}\" <= TIMESTAMP '{newest_gone}'")
        if rows:
            yield Dropped(table.name, "size", rows, None)


def _drop_buckets(database: "Database", table: Table, now: datetime) -> Iterator[Dropped]:
    configured = kept(table.name, database.settings).age
    rows = sum(
        _delete(database, table, "bucket", f"step_s = {step} AND bucket < TIMESTAMP '{now - (configured or age)}'")
        for step, age in ROLLUP_AGES.items()
    )
    if rows:
        yield Dropped(table.name, "age", rows, None)


def _delete(database: "Database", table: Table, time: str, where: str) -> int:
    if table.name == "ingest_batch":
        where += f" AND sequence < {_needed_sequence(database)}"
    total = 0
    while True:
        with database.transaction() as cursor:
            chosen = f'SELECT rowid FROM "{table.stored}" WHERE {where} ORDER BY "{time}" LIMIT {BATCH_ROWS}'
            found = cursor.execute(f'DELETE FROM "{table.stored}" WHERE rowid IN ({chosen})').fetchone()
        rows = int(found[0]) if found else 0
        total += rows
        if rows < BATCH_ROWS:
            return total


def _needed_sequence(database: "Database") -> int:
    """First sequence that the ledger must keep: the newest, what is not rolled up, and all that the journal has."""
    with database.snapshot() as cursor:
        found = cursor.execute("SELECT coalesce(max(sequence), 0) FROM ingest_batch").fetchall()
        newest = min(int(found[0][0]), marked(cursor, ROLLED_MARK))
    oldest = database.journal.oldest_sequence
    return newest if oldest is None else min(newest, oldest)


def _size_bound(database: "Database", table: Table, time: str, limit: int) -> datetime | None:
    """Time of the newest row that is too much, None when the table fits; its size is rows times the bytes of a row."""
    with database.snapshot() as cursor:
        newest = f'FROM "{table.stored}" ORDER BY "{time}" DESC LIMIT'
        sample = cursor.sql(f"SELECT * {newest} {_SAMPLE_ROWS}").to_arrow_table()
        counted = cursor.execute(f'SELECT count(*) FROM "{table.stored}"').fetchone()
        rows = int(counted[0]) if counted else 0
        if not rows or sample.nbytes * rows <= limit * sample.num_rows:
            return None
        fits = int(limit * sample.num_rows / sample.nbytes)
        found = cursor.execute(f'SELECT "{time}" {newest} 1 OFFSET {fits}').fetchone()
    return found[0] if found else None


def _drop_series(database: "Database") -> list[Dropped]:
    """Delete series of which nothing is left, in samples or in rollups."""
    holders = [table for table in TABLES if table.column("series_id") and table.name != "metric_series"]
    left = " UNION ".join(f'SELECT series_id FROM "{table.name}"' for table in holders)
    with database.transaction() as cursor:
        found = cursor.execute(f"DELETE FROM metric_series WHERE series_id NOT IN ({left})").fetchone()
    rows = int(found[0]) if found else 0
    return [Dropped("metric_series", "age", rows, None)] if rows else []
