"""Files of a journal: their names, what a start finds in them, the lock that keeps others out."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from store.errors import StoreError, StoreLockedError
from store.journal_entry import Entry, Hole, walk

SUFFIX = ".journal"
HEADERS_ONLY = 2**64


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of the journal with the numbers of its first and last readable entry and when they were written (UTC).

    One without entries (the current one, when new) has the number before its first as its last, and no times.
    """

    path: Path
    first_sequence: int
    last_sequence: int
    size_bytes: int
    first_time: datetime | None = None
    last_time: datetime | None = None

    @property
    def named(self) -> int:
        """Number that its first entry was given."""
        return int(self.path.stem)


@dataclass(frozen=True, slots=True)
class Damage:
    """What cannot be read: where, in words, how many entries were lost (None where unknown) and how many bytes."""

    path: Path
    what: str
    entries_lost: int | None
    bytes: int


@dataclass(slots=True)
class Scan:
    """What a start finds in a segment: `used` is the highest number that was given out in it."""

    segment: Segment
    used: int
    holes: list[Hole] = field(default_factory=list)


def segment_path(directory: Path, first: int) -> Path:
    """Name a segment after its first sequence; names sort as numbers do."""
    return directory / f"{first:020d}{SUFFIX}"


def segment_paths(directory: Path) -> list[Path]:
    """Segments of a directory, oldest first."""
    return sorted(path for path in directory.glob(f"*{SUFFIX}") if len(path.stem) == 20 and path.stem.isdecimal())


def utc(time_us: int) -> datetime:
    """Time of microseconds since 1970."""
    return datetime.fromtimestamp(time_us / 1e6, UTC)


def scan(path: Path, *, whole: bool) -> Scan:
    """Find the entries of a segment; `whole` reads the batches too, else the headers alone.

    A torn end is cut off: it was never acknowledged, or the file lost its end; the hole tells how much it was.
    """
    named, size = int(path.stem), path.stat().st_size
    found: list[Entry] = []
    holes: list[Hole] = []
    used = named - 1
    for item in read(path, size, named, -1 if whole else HEADERS_ONLY):
        if isinstance(item, Entry):
            found.append(item)
            used = item.sequence
        else:
            holes.append(item)
            used += 1 if item.lost is None else item.lost
    if holes and holes[-1].torn:
        size = holes[-1].offset
        _cut(path, size)
    if not found:
        return Scan(Segment(path, named, named - 1, size), used, holes)
    first, last = found[0], found[-1]
    times = utc(first.time_us), utc(last.time_us)
    return Scan(Segment(path, first.sequence, last.sequence, size, *times), used, holes)


def read(path: Path, size: int, named: int, after: int) -> Iterator[Entry | Hole]:
    """Walk the first `size` bytes of a segment."""
    with path.open("rb") as file:
        yield from walk(file, size, named, after)


def make_directory(directory: Path) -> None:
    """Create a directory that is still there after a power loss."""
    if not directory.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Make names that were added to or removed from a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(directory: Path) -> int:
    """Take the journal for this process until the returned handle is closed.

    Raises StoreLockedError, with the owner's pid, when another has it. flock, not lockf: lockf would let the same
    process have it twice.
    """
    import fcntl

    handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        text = os.pread(handle, 32, 0).strip()
        os.close(handle)
        pid = int(text) if text.isdigit() else None
        owner = f"process {pid}" if pid else "another process"
        raise StoreLockedError(f"{directory} is in use by {owner}", "stop that process first", pid) from error
    except OSError as error:
        os.close(handle)
        raise StoreError(f"cannot lock {directory}: {error.strerror}", "use a local file system") from error
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
    except OSError:  # the pid is for people only, and a full disk must not keep a server from what it has
        pass
    return handle


def _cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())
