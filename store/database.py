"""The one owner of the DuckDB file: append, read, sql. Nobody outside `store` holds a connection."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from store import charges, recovery, sqltext
from store.appending import JOURNAL_MARK, Prepared, append_all, conformed, mark, marked
from store.batch import Batch, Receipt
from store.columns import Table
from store.connection import connect, explained, first_line
from store.errors import BusyError, InfractlError, StoreDamagedError, StoreError, UsageError
from store.journal import Journal
from store.limits import QueryLimits, Turns, fetch, limited, query_limits
from store.link import Link
from store.lost_files import set_aside
from store.manifest import create_views, lister
from store.migrate import SCHEMA_VERSION, migrate
from store.notices import Notice, Notices
from store.query import CostQuery, RollupQuery, SpanQuery, StoredQuery
from store.replay import Replayed, replay
from store.resources import resources
from store.retention import without_old
from store.rollups import read as rollups
from store.settings import StoreSettings
from store.space import Space
from store.sqlguard import check
from store.tables import BY_NAME, SPANS, TABLES
from store.window import Window

if TYPE_CHECKING:
    import duckdb
    import polars as pl
    import pyarrow as pa

__all__ = ["FILE_NAME", "JOURNAL_MARK", "SCHEMA_VERSION", "Database", "mark", "marked"]

FILE_NAME = "infractl.duckdb"


class Database:
    """Data directory with its DuckDB file. Thread-safe: one writer at a time, a cursor per read."""

    def __init__(self, directory: Path, settings: StoreSettings | None = None, *, rebuild: bool = False) -> None:
        """Open (creating it where missing) `directory`/infractl.duckdb.

        What the journal holds and the file does not (its log was damaged, or the process died between the two) is
        appended; a file that is damaged or gone (any file, with `rebuild`) is made anew; `notices` tells. `on_commit`,
        once set, is called with each batch and its receipt after COMMIT. Raises StoreLockedError when another process
        has it open and StoreError when it cannot be opened or is newer than this program.
        """
        self.directory = directory
        self.path = directory / FILE_NAME
        self.settings = settings or StoreSettings()
        self.lake = lake_root(directory, self.settings)
        self.resources = resources(self.settings, directory)
        self.query_limits = query_limits(self.settings, self.resources)
        self._turns = Turns(self.settings.queries)
        self.on_commit: Callable[[Batch, Receipt], None] | None = None
        self._write = threading.RLock()
        self._behind = True
        self._link = Link(self._write, lambda: self._connect(self.path), self._renewed)
        self.journal = Journal(directory / "journal", limit_bytes=self.settings.journal_limit_bytes)
        self.space = Space(directory, self.settings.min_free_bytes)
        self._notices = Notices(directory / "aside")
        try:
            if rebuild:
                recovery.force(self, self._connect)
            self._start()
        except BaseException:
            self.close()
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
            self._link.close()
            self.journal.close()

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What happened to the store in the last week that a person must know, oldest first."""
        return self._notices.recent()

    def notice(self, what: str, rows: int | None, remedy: str) -> Notice:
        """Log a notice and keep it for a week. For modules of `store`."""
        return self._notices.add(what, rows, remedy)

    @contextmanager
    def transaction(self) -> "Iterator[duckdb.DuckDBPyConnection]":
        """Give a cursor within a transaction of the one writer; COMMIT at the end, ROLLBACK after an error.

        For modules of `store`. Raises StoreError (StoreFullError where the disk is full) when the transaction fails;
        then nothing of it is stored.
        """
        import duckdb

        with self._write, self._link.cursor() as cursor:
            try:
                cursor.execute("BEGIN")
                yield cursor
                cursor.execute("COMMIT")
            except duckdb.Error as error:
                _rollback(cursor)
                raise self._failed(error) from error
            except BaseException:
                _rollback(cursor)
                raise

    @contextmanager
    def snapshot(self) -> "Iterator[duckdb.DuckDBPyConnection]":
        """Give a cursor within a READ ONLY transaction: manifest and rows are of one moment. For modules of `store`.

        Raises StoreDamagedError for a block that cannot be read, StoreError when the file was closed meanwhile.
        """
        import duckdb

        with self._link.cursor() as cursor:
            try:
                cursor.execute("BEGIN TRANSACTION READ ONLY")
                yield cursor
            except (duckdb.FatalException, duckdb.ConnectionException) as error:
                raise StoreError(f"reading was cut off: {first_line(error)}", "ask again in a moment") from error
            except duckdb.Error as error:
                raise self._damage(error) or error from error

    def checkpoint(self) -> None:
        """Write the log of the database into its file. Raises StoreError. For modules of `store`."""
        import duckdb

        with self._write, self._link.cursor() as cursor:
            try:
                cursor.execute("CHECKPOINT")
            except duckdb.Error as error:
                raise self._failed(error) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep every other writer out. For modules of `store`."""
        with self._write:
            yield

    def append(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Store the batches in one transaction and return a receipt for each after COMMIT.

        A row whose key (and time) is stored already, or came earlier in these batches, is counted as a duplicate; one
        that is older than its table keeps rows is refused and counted. Raises StoreFullError when too little of the
        disk is free, StoreError; then nothing of any batch is stored.
        """
        self.space.check()
        now = datetime.now(UTC).replace(tzinfo=None)
        prepared = [conformed(without_old(batch, now, self.settings)) for batch in batches]
        with self._write:
            self._link.connection()
            self._catch_up()
            sequence = self._journalled([item.batch for item in prepared])
            receipts = self.commit(prepared, sequence)
        if self.on_commit is not None:
            for item, receipt in zip(prepared, receipts, strict=True):
                self.on_commit(item.batch, receipt)
        return receipts

    def commit(self, prepared: Sequence[Prepared], sequence: int) -> list[Receipt]:
        """Append what the journal has up to `sequence` already. For modules of `store`; raises StoreError."""
        with self.transaction() as cursor:
            return append_all(cursor, prepared, sequence, self.lake)

    def read(self, query: StoredQuery, window: Window) -> "pl.DataFrame":
        """Return the rows a query names within the window (UTC, half-open), ordered by time (of rollups: by bucket)."""
        with self.snapshot() as cursor:
            files = lister(cursor, self.lake)
            if isinstance(query, RollupQuery):
                return _frame(cursor, *rollups.select(cursor, query, window, files))
            if isinstance(query, CostQuery):
                return _frame(cursor, *charges.select(query, window, files))
            share = 1.0
            if isinstance(query, SpanQuery) and query.at_most is not None:
                share = min(1.0, query.at_most / max(rollups.rows_estimate(cursor, SPANS, window), 1))
            return _frame(cursor, *sqltext.select(query, window, files, share))

    def rows_estimate(self, name: str, window: Window) -> int:
        """Return about how many rows a sealed table has within a window, without reading them."""
        with self.snapshot() as cursor:
            return rollups.rows_estimate(cursor, BY_NAME[name], window)

    def table(self, name: str, window: Window | None = None) -> "pl.DataFrame":
        """Return a whole table, or its rows within a window where it has a time column."""
        with self.snapshot() as cursor:
            return _frame(cursor, *sqltext.select_table(BY_NAME[name], window, lister(cursor, self.lake)))

    def equal(self, table: Table, column: str, value: str) -> "pl.DataFrame":
        """Return the rows of a table whose column equals a value, ordered by time."""
        with self.snapshot() as cursor:
            return _frame(cursor, *sqltext.select_equal(table, column, value))

    def extent(self, name: str) -> Window | None:
        """First to last row time of a table, as a window that holds the last row; None when it is empty."""
        with self.snapshot() as cursor:
            low, high = _frame(cursor, *sqltext.extent(BY_NAME[name])).row(0)
        return None if low is None else Window(low.replace(tzinfo=UTC), high.replace(tzinfo=UTC))

    def newest(self) -> datetime | None:
        """Time of the newest request or sample (not of infractl's own spans), else of a bill; None without any."""
        with self.snapshot() as cursor:
            found: datetime | None = _frame(cursor, sqltext.newest("hot_"), []).item()
            if found is None:
                found = _frame(cursor, sqltext.newest(""), []).item()
            if found is None:
                found = _frame(cursor, sqltext.NEWEST_CHARGE, []).item()
        return None if found is None else found.replace(tzinfo=UTC)

    def counts(self) -> dict[str, int]:
        """Rows by table, hot and sealed."""
        with self.snapshot() as cursor:
            return dict(_frame(cursor, sqltext.counts(TABLES), []).iter_rows())

    def sealed_bytes(self) -> int:
        """Bytes of the sealed files that are read."""
        with self.snapshot() as cursor:
            return int(_frame(cursor, sqltext.SEALED_BYTES, []).item())

    def sql(
        self,
        text: str,
        limit: int | None = None,
        limits: QueryLimits | None = None,
        cancelled: threading.Event | None = None,
    ) -> "pa.Table":
        """Run one SELECT (or EXPLAIN, DESCRIBE, SHOW) over the tables and return at most `limit` rows as Arrow.

        `limits` (of a person's query: `query_limits`) stop or cut it, `store.limits.truncated` tells; `cancelled`, once
        set, calls it off. Raises UsageError for any other statement, an error in the text or a limit that was passed,
        and BusyError when too many queries are running.
        """
        import duckdb

        turn = self._turns.turn(cancelled) if limits else nullcontext()
        limits = limits or QueryLimits(None, None, None)
        if limit is not None:
            limits = replace(limits, rows=limit if limits.rows is None else min(limit, limits.rows))
        try:
            with turn, self.snapshot() as cursor:  # EXPLAIN ANALYZE runs what it explains
                check(text, cursor)
                with limited(cursor, limits, cancelled) as watch:
                    return fetch(cursor, text, limits, watch)
        except duckdb.Error as error:
            raise UsageError(f"sql: {first_line(error)}", "tables: " + ", ".join(BY_NAME)) from error

    def _start(self) -> None:
        """Open the file whatever happened to it, and append what only the journal has."""
        log = recovery.copy_log(self.path)
        try:
            self._link.use(recovery.opened(self, self._open, self._connect, log))
        except BaseException:
            if log is not None:
                log.unlink(missing_ok=True)
            raise
        try:
            self._catch_up(log)
        except InfractlError as error:  # reading goes on; it is tried again before the next append
            self.notice(
                f"rows of the journal are not in the database yet: {error}", None, "free space or check the disk"
            )
        recovery.note_journal_damage(self)

    def _connect(self, path: Path) -> "duckdb.DuckDBPyConnection":
        return connect(path, [self.lake], self.resources.config())

    def _open(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        con = self._connect(self.path)
        try:
            migrate(con, TABLES, str(self.path))
            self._make_views(con)
        except duckdb.Error as error:
            con.close()
            raise explained(self.path, first_line(error)) from error
        except BaseException:
            con.close()
            raise
        return con

    def _make_views(self, con: "duckdb.DuckDBPyConnection") -> None:
        """Make the views; sealed files that cannot be read are set aside first where that is why it fails.

        On a full disk they stay as the last seal made them.
        """
        import duckdb

        try:
            con.execute("BEGIN")
            create_views(con, TABLES, self.lake)
            con.execute("COMMIT")
        except duckdb.Error as error:
            _rollback(con)
            if self.space.refused(error):
                return
            con.execute("BEGIN")
            if not set_aside(con, self.lake, self.directory, self.notice):
                raise
            create_views(con, TABLES, self.lake)
            con.execute("COMMIT")

    def _renewed(self) -> None:
        """Append what the file, opened again, does not have; reading goes on where writing cannot."""
        self._behind = True
        with suppress(InfractlError):
            self._catch_up()

    def _damage(self, error: "duckdb.Error") -> StoreDamagedError | None:
        """Say that a block of the database or a sealed file cannot be read, None for any other error."""
        import duckdb

        text = first_line(error)
        told = explained(self.path, text)
        if isinstance(told, StoreDamagedError):
            return told
        if isinstance(error, duckdb.IOException) or self.lake in text:
            return StoreDamagedError(f"a sealed file cannot be read: {text}", "infractl maintain --verify names it")
        return None

    def _failed(self, error: "duckdb.Error") -> StoreError | BusyError:
        told = self.space.refused(error)
        return told or StoreError(f"the store cannot be changed: {first_line(error)}", "see infractl status")

    def _journalled(self, batches: Sequence[Batch]) -> int:
        try:
            return self.journal.append(batches)
        except StoreError as error:
            raise self.space.refused(error) or error from error

    def _catch_up(self, log: Path | None = None) -> None:
        """Append what the journal holds beyond the last commit that the file knows. Raises StoreError."""
        if not self._behind:
            return
        with self.snapshot() as cursor:
            known = marked(cursor, JOURNAL_MARK)
            since = cursor.execute("SELECT max(committed) FROM ingest_batch").fetchone()
        self.journal.advance(known)
        done = Replayed()
        if self.journal.last_sequence > known:
            done = replay(self.transaction, self.lake, self.journal.entries(known))
            with self.transaction() as cursor:
                mark(cursor, JOURNAL_MARK, self.journal.last_sequence)
        self._behind = False
        recovery.note_replay(self, done, recovery.keep_or_drop(log, done), since[0] if since else None)


def lake_root(directory: Path, settings: StoreSettings) -> str:
    """Return the address of the lake, ending in a slash."""
    return (settings.lake or str((directory / "lake").resolve())).rstrip("/") + "/"


def _frame(cursor: "duckdb.DuckDBPyConnection", text: str, values: list[Any]) -> "pl.DataFrame":
    import polars as pl

    frame = pl.from_arrow(cursor.sql(text, params=values).to_arrow_table())
    assert isinstance(frame, pl.DataFrame)
    return frame


def _rollback(cursor: "duckdb.DuckDBPyConnection") -> None:
    import duckdb

    with suppress(duckdb.Error):
        cursor.execute("ROLLBACK")
