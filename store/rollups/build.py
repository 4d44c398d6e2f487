"""`roll`: bring the rollups up to what was appended, a bounded piece of work at a time.

A bucket is built once it has closed and settled, not while it is open: readers take the raw rows of what is not built.
The rows are computed on a snapshot, without the writer's lock, and put in place of the bucket's old ones in one
transaction. What is appended in between has a sequence beyond the mark, so that its buckets are looked at again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from store.appending import insert_all, mark, marked
from store.columns import Table
from store.manifest import Files, lister
from store.rollups.freshness import ROLLED_MARK, Bucket, pending, stale, stale_hours, touched
from store.rollups.statements import SOURCES, TABLES_OF, coarse, errors_of, fine
from store.rollups.stretches import COARSE, EPOCH, FINE, Stretch, clipped, condition, floor, merged, without
from store.rollups.tables import COARSE_S, FINE_S, ROLLUP_BUILT, ROLLUP_ERRORS, ROLLUP_PENDING

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from store.database import Database

SETTLE = timedelta(seconds=60)
"""Rows come late by the batching of exporters and the round of a scraper; each that does builds its bucket again."""
MOST_SPAN = timedelta(hours=24)
MOST_ROWS = 500_000
"""Bounds on one piece of work (a bucket at least): a second of computing, a tenth of that under the writer's lock."""
RawSince = Callable[[Table], datetime | None]
"""Time (UTC) before which retention has removed rows of a table; None: none were."""


@dataclass(frozen=True, slots=True)
class Rolled:
    """What a call built: five-minute buckets, hours, the raw rows read; `more`: call again, there is work left."""

    buckets: int = 0
    hours: int = 0
    rows: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """Buckets of one kind to be put in place, and the stretches that stay pending."""

    kind: str
    step_s: int
    buckets: Sequence[Bucket]
    frames: dict[Table, "pl.DataFrame"]
    left: Sequence[Stretch]
    mark: int

    @property
    def stretches(self) -> list[Stretch]:
        return _stretches(self.buckets, self.step_s)


def roll(database: "Database", now: datetime, raw_since: RawSince | None = None) -> Rolled:
    """Build the next buckets that closed before `now` (UTC) and have rows that are not in them yet, then full hours.

    Buckets from which retention has removed raw rows stay as they are. Idempotent; after a crash the next call goes on.
    Raises StoreError.
    """
    settled = floor(now.astimezone(UTC).replace(tzinfo=None) - SETTLE)
    _note(database)
    pieces = [_roll_fine(database, kind, settled, raw_since) for kind in SOURCES]
    hours = [_roll_hours(database, kind, settled) for kind in SOURCES]
    return Rolled(
        buckets=sum(len(piece.buckets) for piece in pieces if piece),
        hours=sum(len(piece.buckets) for piece in hours if piece),
        rows=sum(rows for piece in pieces if piece for _, rows in piece.buckets),
        more=any(piece and (piece.buckets or clipped(piece.left, EPOCH, settled)) for piece in pieces) or any(hours),
    )


def _note(database: "Database") -> None:
    """Move what the appends since the mark touched from the ledger to the pending stretches."""
    with database.snapshot() as cursor:
        newest = int(cursor.execute("SELECT coalesce(max(sequence), 0) FROM ingest_batch").fetchall()[0][0])
        if newest <= marked(cursor, ROLLED_MARK) and not any(touched(cursor, kind) for kind in SOURCES):
            return
    with database.transaction() as cursor:
        for kind in SOURCES:
            _keep(cursor, kind, merged([*pending(cursor, kind), *touched(cursor, kind)]))
        newest = int(cursor.execute("SELECT coalesce(max(sequence), 0) FROM ingest_batch").fetchall()[0][0])
        mark(cursor, ROLLED_MARK, newest)


def _roll_fine(database: "Database", kind: str, settled: datetime, raw_since: RawSince | None) -> _Piece | None:
    with database.snapshot() as cursor:
        piece = _fine_piece(cursor, lister(cursor, database.lake), kind, settled, raw_since)
    if piece is not None:
        _swap(database, piece)
    return piece


def _fine_piece(
    cursor: "duckdb.DuckDBPyConnection", files: Files, kind: str, settled: datetime, raw_since: RawSince | None
) -> _Piece | None:
    waiting = pending(cursor, kind)
    closed = clipped(waiting, EPOCH, settled)
    if not closed:
        return None
    first = _first(cursor, kind, closed)
    known = marked(cursor, ROLLED_MARK)
    if first is None:
        return _Piece(kind, FINE_S, (), {}, without(waiting, closed), known)
    start = floor(first)
    found = stale(cursor, files, kind, clipped(closed, start, start + MOST_SPAN))
    whole = [bucket for bucket in found if _whole(kind, bucket[0], raw_since)]
    chosen = _bounded(whole)
    end = start + MOST_SPAN if len(chosen) == len(whole) else chosen[-1][0] + FINE
    left = without(waiting, clipped(closed, EPOCH, end))
    return _Piece(kind, FINE_S, chosen, _fine_frames(cursor, files, kind, chosen), left, known)


def _first(cursor: "duckdb.DuckDBPyConnection", kind: str, closed: Sequence[Stretch]) -> datetime | None:
    """Time at or before the first raw row in the stretches, so that a long stretch without rows costs nothing."""
    text = (
        "SELECT min(greatest(min_ts, ?)) FROM manifest "
        "WHERE table_name = ? AND dropped IS NULL AND max_ts >= ? AND min_ts < ?"
    )
    times = []
    for table in SOURCES[kind]:
        hot = f'SELECT min(ts) FROM "{table.stored}" WHERE {condition("ts", closed)}'
        times.append(cursor.execute(hot).fetchone())
        times += [cursor.execute(text, [low, table.name, low, high]).fetchone() for low, high in closed]
    return min((found[0] for found in times if found and found[0] is not None), default=None)


def _whole(kind: str, bucket: datetime, raw_since: RawSince | None) -> bool:
    """Say whether no raw row of a bucket has been removed by retention."""
    kept = [raw_since(table) for table in SOURCES[kind]] if raw_since else []
    return all(since is None or bucket >= since.astimezone(UTC).replace(tzinfo=None) for since in kept)


def _bounded(buckets: Sequence[Bucket]) -> list[Bucket]:
    """Return the leading buckets that hold at most MOST_ROWS together, at least one."""
    total, chosen = 0, list[Bucket]()
    for bucket in buckets:
        total += bucket[1]
        if chosen and total > MOST_ROWS:
            break
        chosen.append(bucket)
    return chosen


def _fine_frames(
    cursor: "duckdb.DuckDBPyConnection", files: Files, kind: str, buckets: Sequence[Bucket]
) -> "dict[Table, pl.DataFrame]":
    stretches = _stretches(buckets, FINE_S)
    made = {}
    for table in TABLES_OF[kind]:
        if stretches and table is not ROLLUP_ERRORS:  # comes of rollup_requests when that is stored
            made[table] = _frame(cursor, fine(table.name, files, stretches))
    return made


def _roll_hours(database: "Database", kind: str, settled: datetime) -> _Piece | None:
    """Sum the five-minute buckets of full hours in which nothing is pending any more."""
    with database.snapshot() as cursor:
        waiting = pending(cursor, kind)
        found = stale_hours(cursor, kind, EPOCH, settled)
        chosen = _bounded([hour for hour in found if not clipped(waiting, hour[0], hour[0] + COARSE)])
        if not chosen:
            return None
        stretches = _stretches(chosen, COARSE_S)
        frames = {table: _frame(cursor, coarse(table.name, stretches)) for table in TABLES_OF[kind]}
        piece = _Piece(kind, COARSE_S, chosen, frames, waiting, marked(cursor, ROLLED_MARK))
    _swap(database, piece)
    return piece


def _swap(database: "Database", piece: _Piece) -> None:
    """Put the rows of a piece in place of the old ones, unless another call has moved the mark since."""
    import polars as pl

    with database.transaction() as cursor:
        if marked(cursor, ROLLED_MARK) != piece.mark:
            return
        _keep(cursor, piece.kind, piece.left)
        if not piece.buckets:
            return
        within = f"step_s = {piece.step_s} AND {condition('bucket', piece.stretches)}"
        for table in TABLES_OF[piece.kind]:
            cursor.execute(f'DELETE FROM "{table.name}" WHERE {within}')
            if table in piece.frames:
                insert_all(cursor, table, piece.frames[table])
            else:
                cursor.execute(
                    f'INSERT INTO "{table.name}" {errors_of(f"(SELECT * FROM rollup_requests WHERE {within})")}'
                )
        cursor.execute(f"DELETE FROM rollup_built WHERE kind = ? AND {within}", [piece.kind])
        rows = [(piece.kind, bucket, piece.step_s, n) for bucket, n in piece.buckets]
        insert_all(cursor, ROLLUP_BUILT, pl.DataFrame(rows, schema=ROLLUP_BUILT.schema(), orient="row"))


def _keep(cursor: "duckdb.DuckDBPyConnection", kind: str, stretches: Iterable[Stretch]) -> None:
    """Write the pending stretches of a kind anew."""
    import polars as pl

    cursor.execute("DELETE FROM rollup_pending WHERE kind = ?", [kind])
    rows = [(kind, low, high) for low, high in stretches]
    insert_all(cursor, ROLLUP_PENDING, pl.DataFrame(rows, schema=ROLLUP_PENDING.schema(), orient="row"))


def _stretches(buckets: Sequence[Bucket], step_s: int) -> list[Stretch]:
    return merged((start, start + timedelta(seconds=step_s)) for start, _ in buckets)


def _frame(cursor: "duckdb.DuckDBPyConnection", text: str) -> "pl.DataFrame":
    import polars as pl

    frame = pl.from_arrow(cursor.sql(text).to_arrow_table())
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.selectors.float().fill_nan(None))  # of infinite samples
