"""`Notice`: what a person must know about the store; kept beside the database, shown for a week."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

SHOWN = timedelta(days=7)
_LIMIT = 200
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened and when (UTC), how many rows it touches (None where that is not known), what to do about it."""

    when: datetime
    what: str
    rows: int | None
    remedy: str


Note = Callable[[str, int | None, str], Notice]
"""Keeps a notice: what happened, rows, remedy."""


class Notices:
    """The notices of a data directory, in aside/notices.json."""

    def __init__(self, directory: Path) -> None:
        """Read what earlier processes noted; a file that cannot be read counts as empty."""
        self._path = directory / "notices.json"
        self._mutex = threading.Lock()
        self._all: list[Notice] = []
        with suppress(OSError, msgspec.MsgspecError):
            self._all = msgspec.json.decode(self._path.read_bytes(), type=list[Notice])

    def add(self, what: str, rows: int | None, remedy: str) -> Notice:
        """Log a notice as a warning and keep it; a full disk does not stop it from being logged and shown."""
        notice = Notice(datetime.now(UTC), what, rows, remedy)
        log.warning("%s; %s", what, remedy)
        with self._mutex:
            self._all = [*self._all, notice][-_LIMIT:]
            with suppress(OSError):
                self._write()
        return notice

    def recent(self, now: datetime | None = None) -> tuple[Notice, ...]:
        """Return the notices of the last week, oldest first."""
        since = (now or datetime.now(UTC)) - SHOWN
        with self._mutex:
            return tuple(notice for notice in self._all if notice.when >= since)

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".tmp")
        draft.write_bytes(msgspec.json.encode(self._all))
        draft.replace(self._path)
