"""Where sealed files lie: a directory of this machine, or a prefix of an S3-compatible bucket."""

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from store.errors import StoreError
from store.journal_files import sync_directory
from store.lost_files import is_local
from store.snapshot import sync_file, write_durably

if TYPE_CHECKING:
    from store.settings import S3Settings

DRAFT = ".tmp"
"""Ending of a file that is being written."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file of the lake: path below its root, size, and when it was written (UTC)."""

    path: str
    size_bytes: int
    modified: datetime


class Storage(Protocol):
    """Files by their path below `root`. All methods raise StoreError where the storage does not answer."""

    @property
    def root(self) -> str:
        """Address, ending in a slash."""
        ...

    def draft(self, folder: str) -> Path:
        """Return a new local path to write a file for `folder` to; it ends in DRAFT."""
        ...

    def create(self, path: str, draft: Path) -> None:
        """Make a complete draft the file at `path`, durable on return. Raises FileExistsError; nothing is replaced."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Write a file whole or not at all, in place of what was there."""
        ...

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError."""
        ...

    def files(self, prefix: str = "") -> Iterator[Found]:
        """Yield the files whose path begins with a folder, drafts included."""
        ...

    def names(self) -> Sequence[str]:
        """Return the names of the files that lie in the root itself."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        ...

    def tidy(self, before: datetime) -> None:
        """Remove folders that have been empty since `before` (UTC)."""
        ...


def storage(root: str, s3: "S3Settings", drafts: Path) -> Storage:
    """Return the storage of a lake. `drafts` is a local folder for files that are written before they are sent.

    Raises StoreError for an address of an unknown kind, or where what it needs is not installed.
    """
    if is_local(root):
        return Directory(Path(root))
    if root.startswith("s3://"):
        from store.lake.s3 import Bucket

        return Bucket(root, s3, drafts)
    raise StoreError(f"the lake cannot be at {root}", "store.lake is a directory or s3://bucket/prefix")


class Directory:
    """A lake in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.root = str(directory).rstrip("/") + "/"

    def draft(self, folder: str) -> Path:
        """Return a path in the folder itself: only within one file system is a rename atomic."""
        path = self._directory / folder / f"{uuid.uuid4().hex}{DRAFT}"
        with _told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def create(self, path: str, draft: Path) -> None:
        """Sync the draft, rename it, and sync the folders that are new."""
        target = self._directory / path
        if target.exists():
            raise FileExistsError(str(target))
        with _told(target):
            sync_file(draft)
            draft.rename(target)
            for folder in (target.parent, *target.parent.parents):
                sync_directory(folder)
                if folder == self._directory:
                    break

    def replace(self, path: str, data: bytes) -> None:
        """Write a draft, sync it, and rename it over what was there."""
        with _told(self._directory / path):
            self._directory.mkdir(parents=True, exist_ok=True)
            write_durably(self._directory / path, data)

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError."""
        try:
            return (self._directory / path).read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _error(self._directory / path, error) from error

    def files(self, prefix: str = "") -> Iterator[Found]:
        """Yield the files below a folder; one that goes meanwhile is left out."""
        for path in (self._directory / prefix).rglob("*"):
            with suppress(FileNotFoundError):
                stat = path.stat()
                if path.is_file():
                    modified = datetime.fromtimestamp(stat.st_mtime, UTC)
                    yield Found(path.relative_to(self._directory).as_posix(), stat.st_size, modified)

    def names(self) -> Sequence[str]:
        """Return the names of the files in the directory itself."""
        with _told(self._directory):
            return sorted(path.name for path in self._directory.glob("*") if path.is_file())

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        with _told(self._directory / path):
            (self._directory / path).unlink(missing_ok=True)

    def tidy(self, before: datetime) -> None:
        """Remove folders that have been empty since `before`, inner ones first."""
        since = before.timestamp()
        folders = [path for path in self._directory.rglob("*=*") if path.is_dir()]
        for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError):  # not empty, or gone
                if folder.stat().st_mtime < since:
                    os.rmdir(folder)  # noqa: PTH106


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _error(path, error) from error


def _error(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"the lake cannot be used at {path}: {error.strerror}",
        "free space or check the disk; rows stay in the database",
    )
