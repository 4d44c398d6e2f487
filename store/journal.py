"""`Journal`: batches on disk before anything else happens to them, each under a number that is never given twice.

Why beside DuckDB's own log: damage in that log opens without an error and rows are silently missing (16 bytes
overwritten: 2,400 of 5,000 rows left). Here every entry has its checksum, and what is lost is said.
"""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from store import packing
from store.batch import Batch
from store.errors import JournalFullError, StoreError
from store.journal_entry import Entry, Hole, encode
from store.journal_files import (
    Damage,
    Segment,
    lock,
    make_directory,
    read,
    scan,
    segment_path,
    segment_paths,
    sync_directory,
    utc,
)

__all__ = ["Damage", "Journal", "Segment"]

SEGMENT_BYTES = 16 * 2**20
RETRY_AFTER_S = 5.0
_HINT = "free space or check the disk; what was acknowledged is kept"


class Journal:
    """Numbered batches in segments, of which whole ones are dropped from the old end.

    One thread appends; `entries`, `segments`, `trim` and `verify` may be called from others meanwhile.
    """

    def __init__(
        self,
        directory: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        limit_bytes: int | None = None,
        next_sequence: int = 1,
    ) -> None:
        """Open (creating it where missing) a journal and start a new segment: old ones are never written to again.

        A torn end is cut off, a segment without one readable entry is renamed to `*.damaged`; in a segment that is
        damaged in part the good entries stay readable. `damage` names all three. Only the newest segment is read
        whole, of the others the headers: `verify` reads all. Raises StoreLockedError, StoreError.
        """
        self.directory = directory
        self._segment_bytes = segment_bytes
        self._limit_bytes = limit_bytes
        self._damage: dict[tuple[Path, int], Damage] = {}
        self._mutex = threading.RLock()
        self._segments: list[Segment] = []
        self._handle = -1
        self._last = 0
        self._spoiled = False
        try:
            make_directory(directory)
            self._lock = lock(directory)
        except OSError as error:
            raise StoreError(f"cannot use journal {directory}: {error.strerror}", _HINT) from error
        try:
            self._open(next_sequence - 1)
        except OSError as error:
            os.close(self._lock)
            raise StoreError(f"cannot read journal {directory}: {error}", "move that file aside") from error
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What was found damaged since this journal was opened; empty when all is well."""
        with self._mutex:
            return tuple(self._damage.values())

    @property
    def last_sequence(self) -> int:
        """Highest number given out or advanced to, 0 for none ever; it survives a trim of everything."""
        return self._last

    @property
    def oldest_sequence(self) -> int | None:
        """Number of the oldest readable entry, None when there is none."""
        found = self.segments()
        return found[0].first_sequence if found else None

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        with self._mutex:
            return sum(segment.size_bytes for segment in self._segments)

    def append(self, batches: Sequence[Batch]) -> int:
        """Write one entry per batch, durable on return, and return the number of the last; numbers are consecutive.

        Raises StoreError where the disk does not take it and JournalFullError beyond `limit_bytes`; then nothing of
        it can be read. Where even taking it back fails, a later start may find entries that nobody was promised.
        """
        payloads = [packing.pack(batch) for batch in batches]
        with self._mutex:
            if not payloads:
                return self._last
            now_us = time.time_ns() // 1000
            data = b"".join(encode(self._last + 1 + i, now_us, payload) for i, payload in enumerate(payloads))
            self._admit(len(data))
            if self._spoiled or self._current.size_bytes >= self._segment_bytes:
                self._roll(self._last + 1)
            self._write(data, len(payloads))
            current, now = self._current, utc(now_us)
            self._last += len(payloads)
            self._segments[-1] = replace(
                current,
                last_sequence=self._last,
                size_bytes=current.size_bytes + len(data),
                first_time=current.first_time or now,
                last_time=now,
            )
            return self._last

    def entries(self, after: int) -> Iterator[tuple[int, Batch]]:
        """Yield number and batch of every entry beyond `after`, in order; damaged ones are left out, named in `damage`.

        What is appended after the first step is not among them.
        """
        with self._mutex:
            segments = tuple(self._segments)
        for segment in segments:
            if segment.last_sequence > after:
                yield from self._batches(segment, after)

    def trim(self, through: int) -> int:
        """Delete the segments whose last number is at most `through` and return the bytes freed.

        The current segment is replaced by a new one when all its entries are. Raises StoreError.
        """
        with self._mutex:
            freed = sum(self._drop(s) for s in self._segments[:-1] if s.last_sequence <= through)
            current = self._current
            if current.size_bytes and current.last_sequence <= through:
                self._roll(self._last + 1)
                freed += self._drop(current)
            if freed:
                sync_directory(self.directory)
            return freed

    def segments(self) -> tuple[Segment, ...]:
        """Segments that hold entries, oldest first."""
        with self._mutex:
            return tuple(s for s in self._segments if s.last_sequence >= s.first_sequence)

    def verify(self) -> tuple[Damage, ...]:
        """Read every byte and return what is damaged now."""
        with self._mutex:
            segments = tuple(self._segments)
        return tuple(item for segment in segments for item in self._items(segment, 0) if isinstance(item, Damage))

    def advance(self, sequence: int) -> None:
        """Never give out a number up to `sequence`: someone knows it already. Raises StoreError."""
        with self._mutex:
            if sequence > self._last:
                old = self._current
                self._roll(sequence + 1)
                self._last = sequence
                if not old.size_bytes:
                    self._drop(old)

    def close(self) -> None:
        """Release the directory; what was appended is on disk already."""
        with self._mutex:
            if self._handle >= 0:
                os.close(self._handle)
                os.close(self._lock)
                self._handle = -1

    @property
    def _current(self) -> Segment:
        return self._segments[-1]

    def _open(self, known: int) -> None:
        """Scan what is there, then start a segment; the empty ones that held a number go only after that."""
        paths = segment_paths(self.directory)
        filled = [path for path in paths if path.stat().st_size]
        scans = [scan(path, whole=path == filled[-1]) for path in filled]
        numbers = [known, *(found.used for found in scans), *(int(path.stem) - 1 for path in paths)]
        self._last = max(numbers)
        self._segments = [found.segment for found in scans]
        for found in scans:
            self._examine(found.segment, found.holes)
        self._roll(self._last + 1)
        empty = [path for path in paths if path != self._current.path and path.exists() and not path.stat().st_size]
        for path in empty:
            path.unlink()
        self._segments = [s for s in self._segments if s.path not in empty]

    def _examine(self, segment: Segment, holes: list[Hole]) -> None:
        """Note the holes of a segment; one that has nothing else is set aside."""
        path = segment.path
        if segment.size_bytes and not segment.last_sequence >= segment.first_sequence:
            path = segment.path.rename(segment.path.with_suffix(".damaged"))
            self._segments.remove(segment)
        for hole in holes:
            self._note(path, hole.offset, Damage(path, hole.what, hole.lost, hole.size_bytes))

    def _roll(self, first: int) -> None:
        """Start a segment whose first entry will be number `first`."""
        path = segment_path(self.directory, first)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            sync_directory(self.directory)
        except OSError as error:
            raise StoreError(f"cannot start {path}: {error.strerror}", _HINT) from error
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = handle
        self._spoiled = False
        self._segments.append(Segment(path, first, first - 1, 0))

    def _admit(self, size: int) -> None:
        if self._handle < 0:
            raise StoreError(f"the journal {self.directory} is closed")
        if self._limit_bytes is not None and self.size_bytes + size > self._limit_bytes:
            raise JournalFullError(
                f"the journal {self.directory} is full ({self.size_bytes} of {self._limit_bytes} bytes)", RETRY_AFTER_S
            )

    def _write(self, data: bytes, count: int) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            os.fsync(self._handle)
        except OSError as error:
            self._take_back(count)
            raise StoreError(f"cannot write {self._current.path}: {error.strerror}", _HINT) from error
        except BaseException:
            self._take_back(count)
            raise

    def _take_back(self, count: int) -> None:
        """Cut off what is not promised; where that fails its numbers are used up and the segment is left alone."""
        try:
            os.ftruncate(self._handle, self._current.size_bytes)
            with suppress(OSError):  # the length is right for every reader of this system; only a power loss undoes it
                os.fsync(self._handle)
        except OSError:
            self._last += count
            self._spoiled = True

    def _drop(self, segment: Segment) -> int:
        try:
            segment.path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot delete {segment.path}: {error.strerror}", "check its owner") from error
        self._segments.remove(segment)
        return segment.size_bytes

    def _batches(self, segment: Segment, after: int) -> Iterator[tuple[int, Batch]]:
        for item in self._items(segment, after):
            if isinstance(item, Entry) and item.payload is not None:
                try:
                    yield item.sequence, packing.unpack(item.payload)
                except ValueError as error:
                    what = f"entry {item.sequence} is whole and cannot be decoded: {error}"
                    self._note(segment.path, item.offset, Damage(segment.path, what, 1, len(item.payload)))

    def _items(self, segment: Segment, after: int) -> Iterator[Entry | Damage]:
        """Entries of a segment; holes, and a file that is gone or cannot be read, become damage and are noted."""
        last = 0
        try:
            for item in read(segment.path, segment.size_bytes, segment.named, after):
                if isinstance(item, Entry):
                    last = item.sequence
                    yield item
                else:
                    yield self._note(
                        segment.path, item.offset, Damage(segment.path, item.what, item.lost, item.size_bytes)
                    )
        except OSError as error:
            with self._mutex:
                trimmed = all(s.path != segment.path for s in self._segments)
            if not trimmed:
                lost = segment.last_sequence - max(last, after, segment.first_sequence - 1)
                damage = Damage(segment.path, f"cannot be read: {error.strerror}", lost, segment.size_bytes)
                yield self._note(segment.path, -1, damage)

    def _note(self, path: Path, offset: int, damage: Damage) -> Damage:
        with self._mutex:
            self._damage[path, offset] = damage
        return damage
