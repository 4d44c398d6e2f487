"""The manifest from the files themselves, for a lake whose mirror cannot be read."""

import hashlib
import re
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.lost_files import paths_below
from store.manifest import MANIFEST
from store.migrate import SCHEMA_VERSION
from store.tables import BY_NAME

if TYPE_CHECKING:
    import polars as pl

_PATH = re.compile(r"(\w+)/date=(\d{4}-\d\d-\d\d)/hour=(\d+)/node=([^/]+)/part-(\d+)\.parquet")


def manifest(lake: str, node: str = "*") -> "pl.DataFrame":
    """List the files of a node (or of all) in a local lake as rows of `manifest`.

    A file whose rows are all in others of its hour was merged into them and is left out, and so are files without a
    readable footer.
    """
    import polars as pl

    found = [row for path in paths_below(lake, node) if (row := _row(lake, path))]
    found.sort(key=lambda row: (row["table_name"], row["hour"]))
    kept = [
        row
        for _, group in groupby(found, key=lambda row: (row["table_name"], row["hour"]))
        for row in _unmerged(lake, list(group))
    ]
    return pl.DataFrame(kept, schema=MANIFEST.schema())


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _row(lake: str, path: str) -> dict[str, Any] | None:
    import polars as pl

    match = _PATH.fullmatch(path)
    table = BY_NAME.get(match[1]) if match else None
    if match is None or table is None or table.time is None:
        return None
    file = Path(lake) / path
    try:
        times = pl.read_parquet(file, columns=[table.time], hive_partitioning=False)[table.time]
    except (OSError, pl.exceptions.PolarsError):
        return None
    return {
        "path": path,
        "table_name": table.name,
        "hour": datetime.fromisoformat(match[2]).replace(hour=int(match[3])),
        "node": match[4],
        "part": int(match[5]),
        "rows": times.len(),
        "bytes": file.stat().st_size,
        "min_ts": times.min(),
        "max_ts": times.max(),
        "sha256": digest(file),
        "schema_version": SCHEMA_VERSION,
        "sealed": datetime.fromtimestamp(file.stat().st_mtime, UTC).replace(tzinfo=None),
        "dropped": None,
    }


def _unmerged(lake: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out files whose keys are all in larger ones."""
    import polars as pl

    if len(rows) == 1:
        return rows
    rows.sort(key=lambda row: (-row["rows"], row["path"]))
    keys = list(dict.fromkeys((*BY_NAME[rows[0]["table_name"]].key, BY_NAME[rows[0]["table_name"]].time or "")))
    kept: list[dict[str, Any]] = []
    seen: pl.DataFrame | None = None
    for row in rows:
        frame = pl.read_parquet(Path(lake) / row["path"], columns=keys, hive_partitioning=False)
        if seen is None or frame.join(seen, on=keys, how="anti", nulls_equal=True).height:
            seen = frame if seen is None else pl.concat([seen, frame])
            kept.append(row)
    return kept
