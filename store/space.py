"""Free space of the disk: ingest is refused before it is full, so that reading goes on and nothing is half done."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

from store.errors import StoreFullError
from store.sizes import format_size

CHECK_S = 1.0
RETRY_AFTER_S = 10.0
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Space:
    """Watches the disk of a directory; the answer of the system is taken for a second."""

    def __init__(self, directory: Path, min_free_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Watch the disk that holds `directory`."""
        self.directory = directory
        self.min_free_bytes = min_free_bytes
        self._clock = clock
        self._free = 0
        self._until = float("-inf")

    @property
    def free_bytes(self) -> int:
        """Bytes that this user may still write."""
        now = self._clock()
        if now >= self._until:
            found = os.statvfs(self.directory)
            self._free, self._until = found.f_bavail * found.f_frsize, now + CHECK_S
        return self._free

    @property
    def low(self) -> bool:
        """Whether ingest is refused."""
        return self.free_bytes < max(self.min_free_bytes, 1)

    def check(self) -> None:
        """Raise StoreFullError when less is free than there should be."""
        if self.low:
            if not self._free:
                raise StoreFullError(f"the disk of {self.directory} is full", RETRY_AFTER_S)
            raise StoreFullError(
                f"{format_size(self._free)} are free on the disk of {self.directory}, ingest needs "
                f"{format_size(self.min_free_bytes)}",
                RETRY_AFTER_S,
            )

    def refused(self, error: BaseException | None) -> StoreFullError | None:
        """Return what to tell senders when an error means a full disk, else None; the next second counts as full."""
        if not _means_full(error):
            return None
        self._free, self._until = 0, self._clock() + CHECK_S
        return StoreFullError(f"the disk of {self.directory} is full", RETRY_AFTER_S)


def _means_full(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is the disk's refusal."""
    while error is not None:
        if (isinstance(error, OSError) and error.errno in _FULL) or "No space left on device" in str(error):
            return True
        error = error.__cause__
    return False
