"""Limits of SQL that a person wrote: time, memory, rows, how many at once, and a way to call it off.

DuckDB has no time limit, and its `operator_memory_limit` only says when sorts and hash tables spill: lists and strings
that an aggregate gathers cannot spill and are not counted. So a thread beside each query looks every POLL_S at the
clock, at the memory that cannot spill and at the cancellation, and interrupts this query alone.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.errors import BusyError, UsageError
from store.resources import Resources
from store.settings import StoreSettings
from store.sizes import format_size

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

POLL_S = 0.05  # memory grows by some 100 MB in this time at most
MEMORY_SHARE = 0.25  # of DuckDB's memory, for one query of a person: appends and analyses need the rest
QUEUE_S = 5.0  # how long a query waits for its turn
BATCH_ROWS = 4096
TRUNCATED = b"infractl.truncated"  # key of the Arrow schema's metadata
_UNSPILLABLE = (
    "SELECT coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory() WHERE tag IN ('ALLOCATOR', 'ART_INDEX')"
)


class QueryLimitError(UsageError):
    """A query that was stopped: it ran too long, needed too much memory or was called off."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What one query may use (None: no limit) and how many may run at once."""

    time_s: float | None = 60.0
    rows: int | None = 1_000_000
    memory_bytes: int | None = None
    concurrent: int = 4


def query_limits(settings: StoreSettings, found: Resources) -> QueryLimits:
    """Return the limits of a person's query."""
    memory = settings.query_memory_bytes or int(MEMORY_SHARE * found.memory_limit_bytes)
    return QueryLimits(settings.query_time_s, settings.query_rows, memory, settings.queries)


class Turns:
    """Lets so many queries run at once; one more waits a while, then is told to come again."""

    def __init__(self, concurrent: int, queue_s: float = QUEUE_S) -> None:
        """Start with all turns free."""
        self._free = threading.BoundedSemaphore(concurrent)
        self._concurrent, self._queue_s = concurrent, queue_s

    @contextmanager
    def turn(self, cancelled: threading.Event | None = None) -> Iterator[None]:
        """Wait for a turn and hold it. Raises BusyError after `queue_s`, QueryLimitError when called off meanwhile."""
        until = time.monotonic() + self._queue_s
        while not self._free.acquire(timeout=POLL_S):
            if cancelled is not None and cancelled.is_set():
                raise _called_off()
            if time.monotonic() >= until:
                error = BusyError(f"as many queries are running as may ({self._concurrent})", self._queue_s)
                error.hint = "try again, or raise store.queries"
                raise error
        try:
            yield
        finally:
            self._free.release()


class Watch:
    """The thread beside a query: interrupts its cursor once a limit is passed, and keeps the reason."""

    def __init__(
        self, cursor: "duckdb.DuckDBPyConnection", limits: QueryLimits, cancelled: threading.Event | None
    ) -> None:
        """Start to watch."""
        self.reason: QueryLimitError | None = None
        self._cursor, self._limits, self._cancelled = cursor, limits, cancelled
        self._until = None if limits.time_s is None else time.monotonic() + limits.time_s
        self._observer = cursor.cursor()
        self._base = self._memory()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="query-watch", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise the reason once a limit was passed."""
        if self.reason is not None:
            raise self.reason

    def stop(self) -> None:
        """Stop watching."""
        self._done.set()
        self._thread.join()
        self._observer.close()

    def _run(self) -> None:
        while not self._done.wait(POLL_S):
            self.reason = self.reason or self._passed()
            if self.reason is not None:
                self._cursor.interrupt()  # again each time: DuckDB forgets one that comes before the query starts

    def _passed(self) -> QueryLimitError | None:
        if self._cancelled is not None and self._cancelled.is_set():
            return _called_off()
        if self._until is not None and time.monotonic() >= self._until:
            return out_of_time(self._limits)
        if self._limits.memory_bytes is not None and self._memory() - self._base > self._limits.memory_bytes:
            return out_of_memory(self._limits)
        return None

    def _memory(self) -> int:
        found = self._observer.execute(_UNSPILLABLE).fetchone()
        return int(found[0]) if found else 0


@contextmanager
def limited(
    cursor: "duckdb.DuckDBPyConnection", limits: QueryLimits, cancelled: threading.Event | None = None
) -> Iterator[Watch]:
    """Hold what a cursor executes to the limits of time and memory; `cancelled`, once set, calls it off.

    The memory is that of the whole database which grew while the query ran. Raises QueryLimitError for this query only.
    """
    import duckdb

    if limits.memory_bytes is not None:
        cursor.execute(f"SET operator_memory_limit = '{limits.memory_bytes}B'")
    watch = Watch(cursor, limits, cancelled)
    try:
        yield watch
    except duckdb.InterruptException as error:
        raise (watch.reason or _called_off()) from error
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        raise (watch.reason or out_of_memory(limits)) from error
    finally:
        watch.stop()


def fetch(cursor: "duckdb.DuckDBPyConnection", text: str, limits: QueryLimits, watch: Watch) -> "pa.Table":
    """Run a SELECT and return its rows, cut at the limits of rows and memory.

    Where rows were left out, the schema's metadata says after how many (`truncated`).
    """
    import pyarrow as pa

    reader = cursor.sql(text).to_arrow_reader(BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    cut = ""
    for batch in reader:
        watch.check()
        room = batch.num_rows if limits.rows is None else limits.rows - rows
        if batch.num_rows > room:
            cut = f"after {limits.rows:,} rows"
        batches.append(batch.slice(0, room))
        rows, size = rows + batches[-1].num_rows, size + batch.nbytes
        if not cut and limits.memory_bytes is not None and size > limits.memory_bytes:
            cut = f"after {rows:,} rows, which take {format_size(size)}"
        if cut:
            break
    table = pa.Table.from_batches(batches, reader.schema)
    return table.replace_schema_metadata({TRUNCATED: cut.encode()}) if cut else table


def truncated(table: "pa.Table") -> str | None:
    """Return where the rows of an answer were cut, in words; None when it is whole."""
    cut: bytes | None = (table.schema.metadata or {}).get(TRUNCATED)
    return None if cut is None else cut.decode()


def out_of_time(limits: QueryLimits) -> QueryLimitError:
    """Error of a query that ran into its time limit."""
    fact = f"the query was stopped after {limits.time_s:g} s"
    return QueryLimitError(fact, "ask for a shorter window, or raise store.query_time")


def out_of_memory(limits: QueryLimits) -> QueryLimitError:
    """Error of a query that needs more memory than it may have."""
    if limits.memory_bytes is None:
        return QueryLimitError("the query needs more memory than DuckDB may use", "raise store.memory_limit")
    fact = f"the query needs more memory than its limit of {format_size(limits.memory_bytes)}"
    return QueryLimitError(fact, "ask for a shorter window, or raise store.query_memory (or store.memory_limit)")


def _called_off() -> QueryLimitError:
    return QueryLimitError("the query was called off", "ask again")
