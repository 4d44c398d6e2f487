"""`manifest-<node>.json` in the lake: which files a store reads, for its rebuild and for other engines.

`{"version": 1, "node": …, "store": …, "generation": …, "written": …, "files": [{"path": …, "table_name": …, "hour": …,
"node": …, "part": …, "rows": …, "bytes": …, "min_ts": …, "max_ts": …, "sha256": …, "schema_version": …,
"sealed": …}]}`, with the files that are read and no others.
Paths are below the lake, times are UTC, `generation` grows with every change.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from store.errors import StoreError
from store.lake.node import node
from store.lake.storage import Storage, storage
from store.manifest import MANIFEST
from store.settings import S3Settings

if TYPE_CHECKING:
    import polars as pl

    from store.database import Database

VERSION = 1
_PREFIX, _SUFFIX = "manifest-", ".json"
_LISTED = tuple(name for name in MANIFEST.names if name != "dropped")
_ONE_AT_A_TIME = threading.RLock()
"""The mirror that is written last lists what was read last, and no sweep meets a seal that is under way."""


class _Mirror(msgspec.Struct):
    version: int
    node: str
    store: str
    generation: int
    written: datetime
    files: list[dict[str, Any]]


def lake_of(database: "Database") -> Storage:
    """Return the storage of a database's lake. Raises StoreError."""
    return storage(database.lake, database.settings.s3, database.directory / "drafts")


@contextmanager
def changing(database: "Database") -> Iterator[Storage]:
    """Give the lake to one change at a time and bring the mirror up to it at the end. Raises StoreError."""
    with _ONE_AT_A_TIME:
        lake = lake_of(database)
        _check(database, lake)
        try:
            yield lake
        finally:
            sync(database)


def sync(database: "Database") -> int:
    """Bring this store's mirror to what its manifest says and return its generation. Raises StoreError."""
    lake, own = lake_of(database), node(database)
    with _ONE_AT_A_TIME:
        before = _check(database, lake)
        with database.snapshot() as cursor:
            text = f"SELECT {', '.join(_LISTED)} FROM manifest WHERE dropped IS NULL ORDER BY table_name, hour, path"
            rows = cursor.execute(text).fetchall()
        files = [dict(zip(_LISTED, map(_told, row), strict=True)) for row in rows]
        if before is not None and before.files == files:
            return before.generation
        generation = before.generation + 1 if before else 1
        made = _Mirror(VERSION, own.name, own.store, generation, datetime.now(UTC), files)
        lake.replace(_name(own.name), msgspec.json.encode(made))
        for name in _names(lake) if _private(database) else ():
            if name != _name(own.name):
                lake.delete(name)  # of a name that this store had before
        return generation


def own_manifest(database: "Database") -> "pl.DataFrame":
    """Return the rows of `manifest` that a store's own mirror lists. Raises StoreError as `read_manifest` does."""
    name = None if _private(database) else node(database).name
    return read_manifest(database.lake, node=name, s3=database.settings.s3)


def _private(database: "Database") -> bool:
    """Whether the lake lies in the data directory, where no other store can be."""
    return database.settings.lake is None


def _check(database: "Database", lake: Storage) -> _Mirror | None:
    """Return this store's mirror, None when there is none that can be read.

    Raises StoreError where another store has the same name in this lake: each would take the other's files for litter.
    """
    own = node(database)
    try:
        found = _read(lake, _name(own.name))
    except (FileNotFoundError, _UnreadableError):
        return None
    if found.store != own.store and not _private(database):
        raise StoreError(
            f"node {own.name} of the lake {lake.root} is another store's",
            "set store.node to another name; if that store is gone, copy the value of "
            f'"store" in {_name(own.name)} to node.json in the data directory',
        )
    return found


def read_manifest(root: str, *, node: str | None = None, s3: S3Settings | None = None) -> "pl.DataFrame":
    """Return the rows of `manifest` that the mirrors of a lake list: of one node, or of all.

    Raises StoreError where a mirror cannot be read, and where there are sealed files and no mirror.
    """
    import polars as pl

    lake = storage(root, s3 or S3Settings(), Path())
    names = [_name(node)] if node else _names(lake)
    rows: dict[str, dict[str, Any]] = {}
    read = 0
    for name in names:
        try:
            rows |= {row["path"]: row for row in map(_row, _read(lake, name).files)}
            read += 1
        except FileNotFoundError:
            continue
    if not read and any(item.path.endswith(".parquet") for item in lake.files()):
        raise StoreError(f"the lake {root} has sealed files and no manifest", "infractl maintain writes it")
    return pl.DataFrame(list(rows.values()), schema=MANIFEST.schema())


class _UnreadableError(StoreError):
    """A mirror that is there and cannot be decoded."""


def _read(lake: Storage, name: str) -> _Mirror:
    try:
        found = msgspec.json.decode(lake.read(name), type=_Mirror)
    except msgspec.MsgspecError as error:
        raise _UnreadableError(
            f"{lake.root}{name} cannot be read: {error}", "infractl maintain writes it anew"
        ) from error
    if found.version > VERSION:
        raise StoreError(f"{lake.root}{name} was written by a newer infractl", "upgrade infractl")
    return found


def _name(node: str) -> str:
    return f"{_PREFIX}{node}{_SUFFIX}"


def _names(lake: Storage) -> list[str]:
    return [name for name in lake.names() if name.startswith(_PREFIX) and name.endswith(_SUFFIX)]


def _told(value: object) -> object:
    return f"{value.isoformat()}Z" if isinstance(value, datetime) else value


def _row(file: dict[str, Any]) -> dict[str, Any]:
    times = {name: value and datetime.fromisoformat(value).replace(tzinfo=None) for name, value in file.items()
             if name in ("hour", "min_ts", "max_ts", "sealed")}  # fmt: skip
    return {name: file.get(name) for name in MANIFEST.names} | times
