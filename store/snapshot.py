"""Small tables as Parquet beside the database: with lake and journal they make it anew."""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from store.appending import JOURNAL_MARK, insert_all, marked
from store.columns import Table
from store.errors import StoreDamagedError
from store.journal_files import make_directory, sync_directory
from store.manifest import MANIFEST
from store.rollups.tables import ROLLUPS
from store.tables import BY_NAME, TABLES

if TYPE_CHECKING:
    import duckdb

    from store.database import Database

POINTER = "current.json"
KEPT = tuple(table for table in TABLES if not table.sealed and table is not MANIFEST and table not in ROLLUPS)
"""Tables that a snapshot copies each time; the lake keeps the others and its own manifest."""
ROLLUPS_EVERY_S = 86_400.0
"""Rollups are large and come from rows; only those older than the rows could not be made again."""
_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A complete set: its folder, the last journal entry in it, when it was taken (UTC) and the rows by table."""

    folder: str
    sequence: int
    taken: datetime
    rows: dict[str, int]


def take(database: "Database") -> Snapshot:
    """Write every small table as of one moment; the set counts once the pointer names it. Raises OSError."""
    directory = database.directory / "snapshot"
    make_directory(directory)
    before = current(database.directory)
    number = 1 + max((int(p.name) for p in directory.iterdir() if p.name.isdecimal()), default=0)
    folder = directory / f"{number:08d}"
    folder.mkdir()
    with database.snapshot() as cursor:
        rows = write_tables(cursor, KEPT, folder) | _rollups(cursor, directory, before, folder)
        made = Snapshot(folder.name, marked(cursor, JOURNAL_MARK), datetime.now(UTC), rows)
    _point(directory, made)
    for path in directory.iterdir():
        if path.is_dir() and path.name != folder.name and (before is None or path.name != before.folder):
            shutil.rmtree(path, ignore_errors=True)
    return made


def _rollups(
    cursor: "duckdb.DuckDBPyConnection", directory: Path, before: Snapshot | None, folder: Path
) -> dict[str, int]:
    """Write the rollups once a day, else link the files of the snapshot before: newer buckets are made from rows."""
    names = [table.name for table in ROLLUPS]
    old = directory / before.folder if before else None
    if old is None or before is None or not _fresh(old / f"{names[0]}.parquet"):
        return write_tables(cursor, ROLLUPS, folder)
    for name in names:
        os.link(old / f"{name}.parquet", folder / f"{name}.parquet")
    sync_directory(folder)
    return {name: before.rows[name] for name in names}


def _fresh(path: Path) -> bool:
    return path.is_file() and time.time() - path.stat().st_mtime < ROLLUPS_EVERY_S


def current(directory: Path) -> Snapshot | None:
    """Return the valid set of a data directory; None when there is none. Raises StoreDamagedError."""
    path = directory / "snapshot" / POINTER
    try:
        return msgspec.json.decode(path.read_bytes(), type=Snapshot)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreDamagedError(f"{path} cannot be read: {error}", "infractl maintain takes a new snapshot") from error


def write_tables(cursor: "duckdb.DuckDBPyConnection", tables: Sequence[Table], folder: Path) -> dict[str, int]:
    """Write the rows that the database itself has of each table to a folder, durable on return; return their number."""
    rows = {table.name: _write(cursor, table, folder / f"{table.name}.parquet") for table in tables}
    sync_directory(folder)
    return rows


def load_tables(cursor: "duckdb.DuckDBPyConnection", folder: Path, rows: Mapping[str, int]) -> None:
    """Insert what `write_tables` wrote into empty tables, within the transaction of `cursor`.

    Raises StoreDamagedError for a file that cannot be read or has other rows than `rows` says.
    """
    for name, expected in rows.items():
        if name in BY_NAME:
            _load(cursor, BY_NAME[name], folder / f"{name}.parquet", expected)


def load(cursor: "duckdb.DuckDBPyConnection", directory: Path, found: Snapshot) -> None:
    """Insert the rows of a snapshot. Raises StoreDamagedError."""
    load_tables(cursor, directory / "snapshot" / found.folder, found.rows)


def _load(cursor: "duckdb.DuckDBPyConnection", table: Table, path: Path, expected: int) -> None:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                frame = pl.from_arrow(pa.Table.from_batches([batch]))
                assert isinstance(frame, pl.DataFrame)
                insert_all(cursor, table, frame)
                count += frame.height
    except (OSError, pa.ArrowException) as error:
        raise StoreDamagedError(f"{path} cannot be read: {error}", "restore it from a backup") from error
    if count != expected:
        raise StoreDamagedError(f"{path} has {count} rows of {expected}", "restore it from a backup")


def _write(cursor: "duckdb.DuckDBPyConnection", table: Table, path: Path) -> int:
    import pyarrow.parquet as pq

    names = ", ".join(f'"{name}"' for name in table.names)
    reader = cursor.sql(f'SELECT {names} FROM "{table.stored}"').to_arrow_reader(_ROWS)
    rows = 0
    with pq.ParquetWriter(path, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    sync_file(path)
    return rows


def _point(directory: Path, made: Snapshot) -> None:
    write_durably(directory / POINTER, msgspec.json.encode(made))
    sync_directory(directory.parent)


def write_durably(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, durable on return."""
    draft = path.with_name(path.name + ".tmp")
    draft.write_bytes(data)
    sync_file(draft)
    draft.replace(path)
    sync_directory(path.parent)


def sync_file(path: Path) -> None:
    """Make what was written to a file durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
