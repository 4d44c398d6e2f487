"""Sealed files that cannot be read: found, set aside and named, so that the store opens without them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import StoreDamagedError
from store.notices import Note

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class SealedFile:
    """What the manifest says of a file that is read."""

    path: str
    table_name: str
    rows: int
    size_bytes: int
    sha256: str | None = None


def live(cursor: "duckdb.DuckDBPyConnection") -> list[SealedFile]:
    """Return the files that the manifest says are read, oldest first."""
    text = "SELECT path, table_name, rows, bytes, sha256 FROM manifest WHERE dropped IS NULL ORDER BY hour, path"
    return [SealedFile(*row) for row in cursor.execute(text).fetchall()]


def is_local(lake: str) -> bool:
    """Whether the lake is a directory of this machine."""
    return "://" not in lake


def fault(lake: str, file: SealedFile) -> str | None:
    """Say why a file of a local lake cannot be read as it was sealed (size and footer); None when it seems well."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(lake) / file.path
    try:
        size = path.stat().st_size
        if size != file.size_bytes:
            return f"has {size} bytes of {file.size_bytes}"
        rows = pq.read_metadata(path).num_rows
        return None if rows == file.rows else f"has {rows} rows of {file.rows}"
    except FileNotFoundError:
        return "is missing"
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read: {str(error).splitlines()[0]}"


def set_aside(cursor: "duckdb.DuckDBPyConnection", lake: str, directory: Path, note: Note) -> int:
    """Take files that cannot be read out of the manifest, within the transaction of `cursor`; return how many.

    Raises StoreDamagedError where most are gone: then the lake is not there, and nothing is taken out.
    """
    if not is_local(lake):
        return 0
    files = live(cursor)
    bad = [(file, why) for file in files if (why := fault(lake, file))]
    if len(bad) > max(1, len(files) // 2):
        raise StoreDamagedError(
            f"{len(bad)} of {len(files)} sealed files below {lake} cannot be read, the first: {bad[0][0].path} "
            f"{bad[0][1]}",
            "check that its disk is mounted, or set store.lake to where the files are",
        )
    for file, why in bad:
        cursor.execute("DELETE FROM manifest WHERE path = ?", [file.path])
        _move(Path(lake) / file.path, directory / "aside" / "lake" / file.path)
        note(
            f"sealed file {file.path} {why}: its {file.rows} rows of {file.table_name} are not read any more",
            file.rows,
            "restore from a backup that has the file",
        )
    return len(bad)


def _move(source: Path, target: Path) -> None:
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)


def paths_below(lake: str, node: str = "*") -> Sequence[str]:
    """Return the sealed files there are in a local lake, of one node or of all, relative to it."""
    root = Path(lake)
    return sorted(str(path.relative_to(root)) for path in root.glob(f"*/date=*/hour=*/node={node}/*.parquet"))
