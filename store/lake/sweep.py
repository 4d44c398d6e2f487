"""Deletes files of the lake that nobody reads: dropped a while ago, left by a run that died, half written."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from store.lake import mirror
from store.lake.node import node
from store.lake.storage import DRAFT, Found, Storage

if TYPE_CHECKING:
    from store.database import Database

GRACE = timedelta(minutes=15)
"""How long a file stays after it was dropped or written: a reader may have it in its list."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What was deleted: dropped files, files that no manifest names, half-written ones, and the bytes of all."""

    dropped: int = 0
    orphans: int = 0
    drafts: int = 0
    size_bytes: int = 0

    @property
    def files(self) -> int:
        """All files deleted."""
        return self.dropped + self.orphans + self.drafts


def sweep(database: "Database", now: datetime, *, grace: timedelta = GRACE) -> Swept:
    """Delete what this store dropped or left behind longer than `grace` ago; `now` is aware.

    Files of other nodes are never touched. The mirror is written first: a store that is rebuilt from it must not look
    for a file that is gone. Raises StoreError.
    """
    with mirror.changing(database) as lake:
        mirror.sync(database)
        return _sweep(database, lake, now.astimezone(UTC) - grace)


def _sweep(database: "Database", lake: Storage, before: datetime) -> Swept:
    dropped, freed = _delete_dropped(database, lake, before)
    orphans = drafts = 0
    for item in _unnamed(database, lake, before):
        lake.delete(item.path)
        freed += item.size_bytes
        drafts += item.path.endswith(DRAFT)
        orphans += not item.path.endswith(DRAFT)
    drafts += _delete_local_drafts(database, before)
    lake.tidy(before)
    return Swept(dropped, orphans, drafts, freed)


def _delete_dropped(database: "Database", lake: Storage, before: datetime) -> tuple[int, int]:
    """Delete the files, then their rows of the manifest: after a crash in between they are deleted again."""
    with database.snapshot() as cursor:
        text = "SELECT path, bytes FROM manifest WHERE dropped < ?"
        found = cursor.execute(text, [before.replace(tzinfo=None)]).fetchall()
    for path, _ in found:
        lake.delete(path)
    if found:
        with database.transaction() as cursor:
            gone = [path for path, _ in found]
            cursor.execute("DELETE FROM manifest WHERE path IN (SELECT unnest(?::VARCHAR[]))", [gone])
    return len(found), sum(size or 0 for _, size in found)


def _unnamed(database: "Database", lake: Storage, before: datetime) -> Iterable[Found]:
    """Return this node's files that are old and in no manifest."""
    folder = f"/node={node(database).name}/"
    found = [item for item in lake.files() if folder in item.path and item.modified < before]
    with database.snapshot() as cursor:
        named = {path for (path,) in cursor.execute("SELECT path FROM manifest").fetchall()}
    return [item for item in found if item.path not in named]


def _delete_local_drafts(database: "Database", before: datetime) -> int:
    """Delete what was not sent to a bucket."""
    deleted = 0
    for path in (database.directory / "drafts").glob(f"*{DRAFT}"):
        if path.stat().st_mtime < before.timestamp():
            path.unlink()
            deleted += 1
    return deleted
