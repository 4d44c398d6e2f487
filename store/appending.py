"""Appends batches within a transaction: new rows by anti-join, the ledger, the mark of the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from store import sqltext
from store.batch import Batch, Receipt
from store.columns import Table
from store.manifest import lister
from store.tables import BY_NAME, INGEST_BATCH, INGEST_DROPS

if TYPE_CHECKING:
    import duckdb
    import polars as pl

JOURNAL_MARK = "journal_sequence"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch as it is stored (each row once) and the rows that were given, by table."""

    batch: Batch
    given: Mapping[str, int]


def conformed(batch: Batch) -> Prepared:
    """Cast the frames to their tables and leave out repeated keys. Raises StoreError."""
    frames = {}
    for name, frame in batch.frames.items():
        table = BY_NAME[name]
        frames[name] = table.conform(frame).unique(list(table.key), keep="first", maintain_order=True)
    return Prepared(replace(batch, frames=frames), {name: frame.height for name, frame in batch.frames.items()})


def append_all(
    cursor: "duckdb.DuckDBPyConnection", prepared: Sequence[Prepared], sequence: int, lake: str
) -> list[Receipt]:
    """Append batches of journal entries up to `sequence` within the transaction of `cursor`."""
    receipts = [_append(cursor, item, sequence, lake) for item in prepared]
    mark(cursor, JOURNAL_MARK, sequence)
    return receipts


def insert(cursor: "duckdb.DuckDBPyConnection", table: Table, rows: "pl.DataFrame", lake: str) -> int:
    """Store the rows of a conforming frame whose key is not stored yet and return how many those were."""
    statement = sqltext.insert_new(table, rows, lister(cursor, lake))
    cursor.register("incoming", rows.to_arrow())
    count = cursor.execute(statement).fetchone()
    if table.refreshed:
        cursor.execute(sqltext.refresh(table))
    cursor.unregister("incoming")
    return int(count[0]) if count else 0


def insert_all(cursor: "duckdb.DuckDBPyConnection", table: Table, frame: "pl.DataFrame") -> None:
    """Store every row of a frame."""
    if frame.height:
        cursor.register("incoming", table.conform(frame).to_arrow())
        cursor.execute(f'INSERT INTO "{table.stored}" SELECT * FROM incoming')
        cursor.unregister("incoming")


def record(cursor: "duckdb.DuckDBPyConnection", batch: Batch, stored: Receipt, sequence: int) -> None:
    """Enter a batch in the ledger, with the rows that were refused."""
    import polars as pl

    now = datetime.now(UTC).replace(tzinfo=None)
    ledger = [_entry(batch, name, stored, sequence, now) for name in batch.frames]
    if ledger:
        insert_all(cursor, INGEST_BATCH, pl.DataFrame(ledger, infer_schema_length=None))
    drops = [
        {"batch_id": batch.batch_id, "source": batch.source, "reason": reason, "rows": n, "committed": now}
        for reason, n in batch.drops.items()
    ]
    if drops:
        insert_all(cursor, INGEST_DROPS, pl.DataFrame(drops))


def marked(cursor: "duckdb.DuckDBPyConnection", name: str) -> int:
    """Return a mark of store_state, 0 where there is none."""
    found = cursor.execute("SELECT value FROM store_state WHERE name = ?", [name]).fetchall()
    return int(found[0][0]) if found else 0


def mark(cursor: "duckdb.DuckDBPyConnection", name: str, value: int) -> None:
    """Set a mark of store_state."""
    changed = cursor.execute("UPDATE store_state SET value = ? WHERE name = ?", [value, name]).fetchone()
    if not changed or not changed[0]:
        cursor.execute("INSERT INTO store_state VALUES (?, ?)", [name, value])


def _append(cursor: "duckdb.DuckDBPyConnection", item: Prepared, sequence: int, lake: str) -> Receipt:
    stored: dict[str, int] = {}
    duplicates: dict[str, int] = {}
    for name, rows in item.batch.frames.items():
        stored[name] = insert(cursor, BY_NAME[name], rows, lake)
        duplicates[name] = item.given[name] - stored[name]
    receipt = Receipt(item.batch.batch_id, stored, duplicates)
    record(cursor, item.batch, receipt, sequence)
    return receipt


def _entry(batch: Batch, name: str, stored: Receipt, sequence: int, now: datetime) -> dict[str, Any]:
    table, rows = BY_NAME[name], batch.frames[name]
    timed = table.time is not None and rows.height > 0
    return {
        "batch_id": batch.batch_id,
        "source": batch.source,
        "table_name": name,
        "rows": stored.stored[name],
        "duplicates": stored.duplicates[name],
        "min_ts": rows[table.time].min() if timed and table.time else None,
        "max_ts": rows[table.time].max() if timed and table.time else None,
        "committed": now,
        "sequence": sequence,
    }
