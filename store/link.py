"""`Link`: the connection to the DuckDB file, made anew after an error that ended it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from store.connection import first_line
from store.errors import StoreError

if TYPE_CHECKING:
    import duckdb

READERS_WAIT_S = 5.0


class Link:
    """Gives cursors of one connection. Thread-safe.

    After a FatalException (a full disk) DuckDB refuses everything, and gives the same failed instance again as long as
    a cursor of it is open: the next use waits for the readers, which fail at once, and connects again.
    """

    def __init__(
        self, write: threading.RLock, again: "Callable[[], duckdb.DuckDBPyConnection]", renewed: Callable[[], None]
    ) -> None:
        """`again` connects anew, under the lock `write` of the writer; `renewed`, called then, may use the link."""
        self._write = write
        self._again = again
        self._renewed = renewed
        self._con: duckdb.DuckDBPyConnection | None = None
        self._cursors: set[duckdb.DuckDBPyConnection] = set()
        self._idle = threading.Condition()
        self._closed = False

    def use(self, con: "duckdb.DuckDBPyConnection") -> None:
        """Take the connection that a start has made."""
        self._con = con

    def close(self) -> None:
        """Release the file for good."""
        with self._write:
            self._closed = True
            self.drop(self._con)

    @contextmanager
    def cursor(self) -> "Iterator[duckdb.DuckDBPyConnection]":
        """Give a cursor. Raises StoreError where the file cannot be opened; the next use tries again."""
        import duckdb

        con = self.connection()
        try:
            cursor = con.cursor()
        except duckdb.Error as error:
            self.drop(con)
            raise StoreError(f"the store was closed: {first_line(error)}", "ask again in a moment") from error
        with self._idle:
            self._cursors.add(cursor)
        try:
            yield cursor
        except BaseException as error:
            if isinstance(error, duckdb.FatalException) or isinstance(error.__cause__, duckdb.FatalException):
                self._release(cursor)
                self.drop(con)
            raise
        finally:
            self._release(cursor)

    def connection(self) -> "duckdb.DuckDBPyConnection":
        """Return the connection, made anew where it was dropped. Raises StoreError."""
        con = self._con
        if con is not None:
            return con
        with self._write:
            if self._con is None:
                if self._closed:
                    raise StoreError("the store is closed")
                with self._idle:
                    self._idle.wait_for(lambda: not self._cursors, READERS_WAIT_S)
                self._con = self._again()
                self._renewed()
            return self.connection()

    def drop(self, con: "duckdb.DuckDBPyConnection | None" = None) -> None:
        """Close a connection (None: the one in use), unless another took its place already."""
        with self._write:
            if self._con is not None and con in (None, self._con):
                gone, self._con = self._con, None
                with suppress(Exception):
                    gone.close()

    def _release(self, cursor: "duckdb.DuckDBPyConnection") -> None:
        cursor.close()
        with self._idle:
            self._cursors.discard(cursor)
            self._idle.notify_all()
