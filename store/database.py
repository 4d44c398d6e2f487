"""The one owner of the DuckDB file: append, read, sql, maintain. Nobody else holds a connection."""

import re
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from store import sqltext
from store.batch import Batch, Receipt
from store.columns import Table
from store.errors import StoreError, StoreLockedError, UsageError
from store.query import Query
from store.tables import BY_NAME, INGEST_BATCH, INGEST_DROPS, TABLES
from store.window import Window

if TYPE_CHECKING:
    import duckdb
    import polars as pl
    import pyarrow as pa

FILE_NAME = "infractl.duckdb"
SCHEMA_VERSION = 1
_PID = re.compile(r"\(PID (\d+)\)")
_SETTINGS: dict[str, Any] = {
    "enable_external_access": False,  # SQL from users must not read files or the network
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
_SESSION = (
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL python_enable_replacements = false",  # a table name must never mean a Python variable
    "SET lock_configuration = true",
)


class Database:
    """DuckDB file in a data directory. Thread-safe: one writer at a time, a cursor per read."""

    def __init__(self, directory: Path) -> None:
        """Open (creating it where missing) `directory`/infractl.duckdb.

        `on_commit`, once set, is called with each batch and its receipt after COMMIT.
        Raises StoreLockedError when another process has it open and StoreError when it cannot be opened or is newer
        than this program.
        """
        self.path = directory / FILE_NAME
        self.on_commit: Callable[[Batch, Receipt], None] | None = None
        self._write = threading.Lock()
        self._con = _connect(self.path)
        try:
            self._migrate()
        except BaseException:
            self._con.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Checkpoint and release the file."""
        with self._write:
            self._con.close()

    def append(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Store the batches in one transaction and return a receipt for each after COMMIT.

        A row whose key (and time) is stored already, or came earlier in these batches, is counted as a duplicate.
        Raises StoreError; then nothing of any batch is stored.
        """
        import duckdb

        with self._write:
            cursor = self._con.cursor()
            try:
                cursor.execute("BEGIN")
                receipts = [_append_one(cursor, batch) for batch in batches]
                cursor.execute("COMMIT")
            except duckdb.Error as error:
                _rollback(cursor)
                raise StoreError(f"append failed: {_first_line(error)}", "free space or see infractl status") from error
            except BaseException:
                _rollback(cursor)
                raise
            finally:
                cursor.close()
        if self.on_commit is not None:
            for batch, receipt in zip(batches, receipts, strict=True):
                self.on_commit(batch, receipt)
        return receipts

    def read(self, query: Query, window: Window) -> "pl.DataFrame":
        """Return the rows a query names within the window (UTC, half-open), ordered by time."""
        return self._frame(*sqltext.select(query, window))

    def table(self, name: str, window: Window | None = None) -> "pl.DataFrame":
        """Return a whole table, or its rows within a window where it has a time column."""
        return self._frame(*sqltext.select_table(BY_NAME[name], window))

    def equal(self, table: Table, column: str, value: str) -> "pl.DataFrame":
        """Return the rows of a table whose column equals a value, ordered by time."""
        return self._frame(*sqltext.select_equal(table, column, value))

    def extent(self, name: str) -> Window | None:
        """First to last row time of a table, as a window that holds the last row; None when it is empty."""
        table = BY_NAME[name]
        query = f'SELECT min("{table.time}") AS lo, max("{table.time}") + INTERVAL 1 MICROSECOND AS hi FROM "{name}"'
        low, high = self._frame(query, []).row(0)
        return None if low is None else Window(low.replace(tzinfo=UTC), high.replace(tzinfo=UTC))

    def newest(self) -> datetime | None:
        """Time of the newest request or sample (not of infractl's own spans), None when there is none."""
        query = "SELECT greatest((SELECT max(ts) FROM spans WHERE operation IS NOT NULL), "
        found: datetime | None = self._frame(query + "(SELECT max(ts) FROM metric_samples)) AS ts", []).item()
        return None if found is None else found.replace(tzinfo=UTC)

    def counts(self) -> dict[str, int]:
        """Rows by table."""
        parts = " UNION ALL ".join(f"SELECT '{t.name}' AS name, count(*) AS n FROM \"{t.name}\"" for t in TABLES)
        return dict(self._frame(parts, []).iter_rows())

    def sql(self, text: str, limit: int | None = None) -> "pa.Table":
        """Run one SELECT (or EXPLAIN, DESCRIBE, SHOW) and return at most `limit` rows as Arrow.

        Raises UsageError for any other statement, several statements, or an error in the text.
        """
        import duckdb
        import pyarrow as pa

        try:
            statements = duckdb.extract_statements(text)
            if len(statements) != 1 or statements[0].type not in (
                duckdb.StatementType.SELECT,
                duckdb.StatementType.EXPLAIN,
            ):
                raise UsageError("sql takes one SELECT statement", "the store is changed by collectors and import only")
            cursor = self._con.cursor()
            try:
                cursor.execute("BEGIN TRANSACTION READ ONLY")  # EXPLAIN ANALYZE runs what it explains
                reader = cursor.sql(text).to_arrow_reader(10_000)
                batches, rows = [], 0
                for batch in reader:
                    batches.append(batch if limit is None else batch.slice(0, limit - rows))
                    rows += batches[-1].num_rows
                    if limit is not None and rows >= limit:
                        break
                return pa.Table.from_batches(batches, reader.schema)
            finally:
                cursor.close()
        except duckdb.Error as error:
            raise UsageError(f"sql: {_first_line(error)}", "tables: " + ", ".join(BY_NAME)) from error

    def _frame(self, text: str, values: list[Any]) -> "pl.DataFrame":
        import polars as pl

        cursor = self._con.cursor()
        try:
            frame = pl.from_arrow(cursor.sql(text, params=values).to_arrow_table())
            assert isinstance(frame, pl.DataFrame)
            return frame
        finally:
            cursor.close()

    def _migrate(self) -> None:
        """Create what is missing; columns are only ever added."""
        self._con.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER)")
        found = self._con.execute("SELECT max(version) FROM schema_version").fetchone()
        version = found[0] if found else None
        if version is not None and version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} was written by a newer infractl (schema {version}, this one knows {SCHEMA_VERSION})",
                "upgrade infractl",
            )
        self._con.execute("BEGIN")
        for table in TABLES:
            self._con.execute(table.ddl)
            for column in table.columns:
                self._con.execute(
                    f'ALTER TABLE "{table.name}" ADD COLUMN IF NOT EXISTS "{column.name}" {column.kind.sql}'
                )
        if version != SCHEMA_VERSION:
            self._con.execute("INSERT INTO schema_version VALUES (?)", [SCHEMA_VERSION])
        self._con.execute("COMMIT")


def _connect(path: Path) -> "duckdb.DuckDBPyConnection":
    import duckdb

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        con = duckdb.connect(str(path), config=_SETTINGS)
        for setting in _SESSION:
            con.execute(setting)
        return con
    except OSError as error:
        raise StoreError(
            f"cannot use data directory {path.parent}: {error.strerror}", "choose another with --data DIR"
        ) from error
    except duckdb.Error as error:
        text = _first_line(error)
        if "Could not set lock" in text:
            found = _PID.search(text)
            pid = int(found[1]) if found else None
            owner = f"process {pid}" if pid else "another process"
            hint = "stop that process, or ask its server with --server URL"
            raise StoreLockedError(f"{path} is in use by {owner}", hint, pid) from error
        raise StoreError(f"cannot open {path}: {text}", "move the file aside or choose another --data DIR") from error


def _append_one(cursor: "duckdb.DuckDBPyConnection", batch: Batch) -> Receipt:
    import polars as pl

    stored: dict[str, int] = {}
    duplicates: dict[str, int] = {}
    now = datetime.now(UTC).replace(tzinfo=None)
    ledger: list[dict[str, Any]] = []
    for name, frame in batch.frames.items():
        table = BY_NAME[name]
        rows = table.conform(frame).unique(list(table.key), keep="first", maintain_order=True)
        cursor.register("incoming", rows.to_arrow())
        count = cursor.execute(sqltext.insert_new(table, rows)).fetchone()
        if table.refreshed:
            cursor.execute(sqltext.refresh(table))
        cursor.unregister("incoming")
        stored[name] = int(count[0]) if count else 0
        duplicates[name] = frame.height - stored[name]
        times = rows[table.time] if table.time and rows.height else pl.Series([None])
        ledger.append(
            {
                "batch_id": batch.batch_id,
                "source": batch.source,
                "table_name": name,
                "rows": stored[name],
                "duplicates": duplicates[name],
                "min_ts": times.min(),
                "max_ts": times.max(),
                "committed": now,
            }
        )
    _insert_all(
        cursor,
        INGEST_BATCH.conform(pl.DataFrame(ledger, infer_schema_length=None)) if ledger else None,
        INGEST_BATCH.name,
    )
    if batch.drops:
        drops = [
            {"batch_id": batch.batch_id, "source": batch.source, "reason": reason, "rows": n, "committed": now}
            for reason, n in batch.drops.items()
        ]
        _insert_all(cursor, INGEST_DROPS.conform(pl.DataFrame(drops)), INGEST_DROPS.name)
    return Receipt(batch.batch_id, stored, duplicates)


def _insert_all(cursor: "duckdb.DuckDBPyConnection", frame: "pl.DataFrame | None", table: str) -> None:
    if frame is None:
        return
    cursor.register("incoming", frame.to_arrow())
    cursor.execute(f'INSERT INTO "{table}" SELECT * FROM incoming')
    cursor.unregister("incoming")


def _rollback(cursor: "duckdb.DuckDBPyConnection") -> None:
    import contextlib

    import duckdb

    with contextlib.suppress(duckdb.Error):
        cursor.execute("ROLLBACK")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
