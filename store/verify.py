"""Reads everything that is stored and says what is not as it was written."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from store import snapshot
from store.appending import JOURNAL_MARK, marked
from store.columns import Table
from store.connection import first_line
from store.errors import StoreError
from store.footers import digest
from store.lost_files import SealedFile, fault, is_local, live, paths_below
from store.manifest import lister, sealed_rows
from store.tables import TABLES

if TYPE_CHECKING:
    import duckdb

    from store.database import Database


@dataclass(frozen=True, slots=True)
class Flaw:
    """A file that is not as it should be: which, what is wrong, what to do."""

    file: str
    what: str
    remedy: str


def verify(database: "Database") -> tuple[Flaw, ...]:
    """Return what is wrong, nothing when all is well.

    Reads every column of the database, every sealed file (digest, size, rows), the last snapshot and the journal, and
    looks for rows that are stored twice. What DuckDB has in memory is not read from the disk again: right after a start
    more is.
    """
    return (
        *_database(database),
        *_sealed(database),
        *_orphans(database),
        *_snapshot(database),
        *_journal(database),
        *_marks(database),
        *_twice(database),
    )


def _database(database: "Database") -> Iterator[Flaw]:
    import duckdb

    for table in TABLES:
        columns = ", ".join(f'"{name}"' for name in table.names)
        try:
            with database.snapshot() as cursor:
                cursor.execute(f'SELECT bit_xor(hash({columns})) FROM "{table.stored}"').fetchone()
        except (StoreError, duckdb.Error) as error:
            what = f"table {table.stored} cannot be read: {first_line(error)}"
            yield Flaw(str(database.path), what, "stop the server, then infractl maintain --rebuild")


def _sealed(database: "Database") -> Iterator[Flaw]:
    with database.snapshot() as cursor:
        files = live(cursor)
    for file in files:
        why = _fault(database, file)
        if why:
            yield Flaw(
                database.lake + file.path,
                f"{why} ({file.rows} rows of {file.table_name})",
                "restore the file from a backup; at the next start it is set aside if it cannot be read",
            )


def _fault(database: "Database", file: SealedFile) -> str | None:
    import duckdb

    if is_local(database.lake):
        why = fault(database.lake, file)
        if why is None and file.sha256 and digest(Path(database.lake) / file.path) != file.sha256:
            return "is not what was sealed (SHA-256 differs)"
        return why
    try:
        with database.snapshot() as cursor:
            counted = cursor.execute("SELECT count(*) FROM read_parquet(?)", [database.lake + file.path]).fetchone()
    except (StoreError, duckdb.Error) as error:
        return f"cannot be read: {first_line(error)}"
    return None if counted and counted[0] == file.rows else f"has {counted and counted[0]} rows of {file.rows}"


def _orphans(database: "Database") -> Iterator[Flaw]:
    if not is_local(database.lake):
        return
    from store.lake.node import node
    from store.lake.sweep import GRACE

    before = time.time() - GRACE.total_seconds()  # a younger one may be about to be named
    found = [path for path in paths_below(database.lake, node(database).name) if _written(database, path) < before]
    with database.snapshot() as cursor:
        known = {path for (path,) in cursor.execute("SELECT path FROM manifest").fetchall()}
    for path in found:
        if path not in known:
            yield Flaw(
                database.lake + path, "is in no manifest and is not read", "delete it, its rows are kept elsewhere"
            )


def _written(database: "Database", path: str) -> float:
    """Time a file was written, now for one that is gone meanwhile."""
    try:
        return (Path(database.lake) / path).stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _snapshot(database: "Database") -> Iterator[Flaw]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    remedy = "infractl maintain takes a new snapshot"
    try:
        found = snapshot.current(database.directory)
    except StoreError as error:
        yield Flaw(str(database.directory / "snapshot" / snapshot.POINTER), str(error), remedy)
        return
    if found is None:
        return
    for name, rows in found.rows.items():
        path = database.directory / "snapshot" / found.folder / f"{name}.parquet"
        try:
            with pq.ParquetFile(path) as file:
                count = sum(batch.num_rows for batch in file.iter_batches())
        except (OSError, pa.ArrowException) as error:
            yield Flaw(str(path), f"cannot be read: {first_line(error)}", remedy)
            continue
        if count != rows:
            yield Flaw(str(path), f"has {count} rows of {rows}", remedy)


def _journal(database: "Database") -> Iterator[Flaw]:
    for damage in database.journal.verify():
        lost = "" if damage.entries_lost is None else f", {damage.entries_lost} entries lost"
        yield Flaw(
            str(damage.path),
            f"{damage.what} ({damage.bytes} bytes{lost})",
            "the database has its rows; once they are sealed the segment goes",
        )


def _marks(database: "Database") -> Iterator[Flaw]:
    with database.writing(), database.snapshot() as cursor:
        known, written = marked(cursor, JOURNAL_MARK), database.journal.last_sequence
        found = cursor.execute("SELECT coalesce(max(sequence), 0) FROM ingest_batch").fetchone()
    ledger = int(found[0]) if found else 0
    if written > known:
        what = f"lacks the last {written - known} entries of the journal"
        yield Flaw(str(database.path), what, "restart: they are appended at the start")
    if ledger > known:
        what = f"has batch {ledger} in its ledger, beyond its own mark {known}"
        yield Flaw(str(database.path), what, "stop the server, then infractl maintain --rebuild")


def _twice(database: "Database") -> Iterator[Flaw]:
    import duckdb

    for table in TABLES:
        if table.sealed:
            try:
                with database.snapshot() as cursor:
                    yield from _twice_in(cursor, database, table)
            except (StoreError, duckdb.Error) as error:
                yield Flaw(
                    str(database.path), f"rows of {table.name} cannot be compared: {first_line(error)}", "see above"
                )


def _twice_in(cursor: "duckdb.DuckDBPyConnection", database: "Database", table: Table) -> Iterator[Flaw]:
    files = lister(cursor, database.lake)(table, None)
    rows = _repeated(cursor, f'"{table.stored}"', table)
    rows += _in_both(cursor, table, files) if files else 0
    if rows:
        yield _repeat(str(database.path), table, rows)
    for group in _parts(files):
        rows = _repeated(cursor, sealed_rows(group), table)
        if rows:
            yield _repeat(group[0], table, rows)


def _repeat(file: str, table: Table, rows: int) -> Flaw:
    return Flaw(file, f"{rows} rows of {table.name} are stored twice", "report it with infractl doctor's output")


def _parts(files: Sequence[str]) -> Iterator[list[str]]:
    """Files of an hour that has several."""
    for _, group in groupby(sorted(files), key=lambda path: path.rsplit("/", 2)[0]):
        parts = list(group)
        if len(parts) > 1:
            yield parts


def _keys(table: Table) -> list[str]:
    return list(dict.fromkeys((*table.key, table.time or table.key[0])))


def _in_both(cursor: "duckdb.DuckDBPyConnection", table: Table, files: Sequence[str]) -> int:
    """Rows of the database that sealed files have too."""
    same = " AND ".join(f'h."{key}" = s."{key}"' for key in _keys(table))
    sealed = f"SELECT 1 FROM {sealed_rows(files)} AS s WHERE {same}"
    found = cursor.execute(f'SELECT count(*) FROM "{table.stored}" AS h WHERE EXISTS ({sealed})').fetchone()
    return int(found[0]) if found else 0


def _repeated(cursor: "duckdb.DuckDBPyConnection", rows: str, table: Table) -> int:
    keys = ", ".join(f'"{key}"' for key in _keys(table))
    text = f"SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM {rows} GROUP BY {keys} HAVING count(*) > 1)"
    found = cursor.execute(text).fetchone()
    return int(found[0]) if found else 0
