"""Which buckets hold fewer raw rows than are stored: those are built again, and read from raw rows until then.

Raw rows are never changed, only added, and removed by retention. So a bucket is up to date while there are no more raw
rows than it was built from; where there are fewer, retention took them and the bucket is what is left of them.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from store.appending import marked
from store.manifest import Files
from store.rollups.statements import SOURCES, raw_counts
from store.rollups.stretches import COARSE, FINE, Stretch, ceil, floor, merged
from store.rollups.tables import COARSE_S, FINE_S
from store.sqltext import extent

if TYPE_CHECKING:
    import duckdb

ROLLED_MARK = "rolled_sequence"
Bucket = tuple[datetime, int]
"""Start of a bucket and the raw rows in it."""


def touched(cursor: "duckdb.DuckDBPyConnection", kind: str) -> list[Stretch]:
    """Return the stretches that appends since the mark have touched, in whole buckets; all while nothing is built."""
    if not cursor.execute("SELECT 1 FROM rollup_built WHERE kind = ? LIMIT 1", [kind]).fetchall():
        found = [cursor.execute(*extent(table)).fetchone() for table in SOURCES[kind]]
        return _in_buckets(row for row in found if row and row[0] is not None)
    names = ", ".join(f"'{table.name}'" for table in SOURCES[kind])
    text = (
        f"SELECT min_ts, max_ts FROM ingest_batch WHERE table_name IN ({names}) AND rows > 0 AND min_ts IS NOT NULL "
        "AND sequence > ?"
    )
    return _in_buckets(cursor.execute(text, [marked(cursor, ROLLED_MARK)]).fetchall())


def _in_buckets(times: Iterable[tuple[datetime, datetime]]) -> list[Stretch]:
    return merged((floor(low), floor(high) + FINE) for low, high in times)


def pending(cursor: "duckdb.DuckDBPyConnection", kind: str) -> list[Stretch]:
    """Return the stretches that are known to be touched and not looked through yet."""
    return merged(cursor.execute("SELECT low, high FROM rollup_pending WHERE kind = ?", [kind]).fetchall())


def stale(cursor: "duckdb.DuckDBPyConnection", files: Files, kind: str, stretches: Sequence[Stretch]) -> list[Bucket]:
    """Return the buckets of the stretches that have more raw rows than they were built from, in rising order."""
    if not stretches:
        return []
    text = (
        f"SELECT raw.bucket, raw.n FROM ({raw_counts(kind, files, stretches)}) AS raw LEFT JOIN rollup_built AS built "
        f"ON built.kind = ? AND built.step_s = {FINE_S} AND built.bucket = raw.bucket "
        "WHERE raw.n > coalesce(built.rows, 0) ORDER BY raw.bucket"
    )
    return cursor.execute(text, [kind]).fetchall()


def stale_hours(cursor: "duckdb.DuckDBPyConnection", kind: str, low: datetime, high: datetime) -> list[Bucket]:
    """Return the hours within [low, high) whose five-minute buckets were built from more rows than they were."""
    text = (
        f"SELECT fine.hour, fine.n FROM (SELECT time_bucket(INTERVAL {COARSE_S} SECOND, bucket) AS hour, "
        f"CAST(sum(rows) AS BIGINT) AS n FROM rollup_built WHERE kind = $1 AND step_s = {FINE_S} AND bucket >= $2 "
        f"AND bucket < $3 GROUP BY 1) AS fine LEFT JOIN rollup_built AS built ON built.kind = $1 "
        f"AND built.step_s = {COARSE_S} AND built.bucket = fine.hour WHERE fine.n > coalesce(built.rows, 0) "
        "ORDER BY fine.hour"
    )
    return cursor.execute(text, [kind, ceil(low, COARSE), floor(high, COARSE)]).fetchall()


def fine_since(cursor: "duckdb.DuckDBPyConnection", kind: str) -> datetime | None:
    """Return the first five-minute bucket that is kept; None where there is none."""
    text = f"SELECT min(bucket) FROM rollup_built WHERE kind = ? AND step_s = {FINE_S}"
    found = cursor.execute(text, [kind]).fetchall()  # a result that is not read to its end blocks the cursor
    first: datetime | None = found[0][0]
    return first
