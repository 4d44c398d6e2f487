"""What `infractl status` says of a store."""

from typing import TYPE_CHECKING, Any

from store.window import format_time

if TYPE_CHECKING:
    from store.database import Database

_SOURCES = """
SELECT source, table_name AS "table", sum(rows)::BIGINT AS rows, sum(duplicates)::BIGINT AS duplicates,
       max(max_ts) AS last_row, max(committed) AS last_commit
FROM ingest_batch GROUP BY ALL ORDER BY ALL
"""
_DROPS = "SELECT source, reason, sum(rows)::BIGINT AS rows FROM ingest_drops GROUP BY ALL ORDER BY ALL"

_FILES = "SELECT count(*) AS n FROM manifest WHERE dropped IS NULL"


def store_status(database: "Database") -> dict[str, Any]:
    """Rows by table, sources with their last row, refused rows by reason, time covered and size on disk."""
    extents = {name: database.extent(name) for name in ("spans", "metric_samples")}
    size = sum(path.stat().st_size for path in database.path.parent.glob(database.path.name + "*"))
    used = database.resources
    return {
        "data": str(database.path.parent.resolve()),
        "size_bytes": size,
        "tables": database.counts(),
        "store": {
            "lake": database.lake,
            "sealed_bytes": database.sealed_bytes(),
            "sealed_files": _one(database, _FILES),
            "journal_bytes": database.journal.size_bytes,
            "free_bytes": database.space.free_bytes,
            "memory_limit_bytes": used.memory_limit_bytes,
            "memory_basis": used.memory_basis,
            "threads": used.threads,
            "spill_limit_bytes": used.spill_limit_bytes,
            "spill_directory": str(used.spill_directory),
        },
        "notices": [
            {"at": format_time(notice.when), "what": notice.what, "remedy": notice.remedy}
            for notice in database.notices
        ],
        "extent": {
            name: None if w is None else {"start": format_time(w.start), "end": format_time(w.end)}
            for name, w in extents.items()
        },
        "sources": _rows(database, _SOURCES),
        "drops": _rows(database, _DROPS),
    }


def _one(database: "Database", text: str) -> int:
    return int(database.sql(text).column(0)[0].as_py())


def _rows(database: "Database", text: str) -> list[dict[str, Any]]:
    import polars as pl

    from analytics.codec import rows

    frame = pl.from_arrow(database.sql(text))
    assert isinstance(frame, pl.DataFrame)
    return rows(frame)
