"""Runs the store's own work at its intervals, on a thread; what it did last is in `done`."""

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic

from rules import own
from rules.own import OwnMetric
from store.database import Database
from store.errors import StoreError
from store.upkeep import TASKS, Done, upkeep

log = logging.getLogger(__name__)
PATIENCE_S = 10.0
FIRST_S = 20.0
"""Seconds after the start before the first task: senders that waited come first."""


class Upkeep:
    """A thread that does each task when it is due. A task that fails is tried again at its next turn."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stop = threading.Event()
        self._done: dict[str, tuple[datetime, Done]] = {}
        self._succeeded = dict.fromkeys(TASKS, datetime.now(UTC))  # the start counts: a task that never ends well shows
        self._sealed_bytes = 0
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    @property
    def done(self) -> Mapping[str, tuple[datetime, Done]]:
        """When each task ended last (UTC), and how."""
        return dict(self._done)

    def gauges(self) -> Mapping[OwnMetric, Mapping[tuple[str, ...], float]]:
        """Sizes, free space and the age of the tasks, for /metrics; nothing is read but the file system."""
        database = self._database
        file = sum(path.stat().st_size for path in database.path.parent.glob(database.path.name + "*"))
        done = self.done
        return {
            own.STORE_BYTES: {
                ("database",): float(file),
                ("sealed",): float(self._sealed_bytes),
                ("journal",): float(database.journal.size_bytes),
            },
            own.STORE_FREE: {(): float(database.space.free_bytes)},
            own.STORE_MIN_FREE: {(): float(database.settings.min_free_bytes)},
            own.UPKEEP_SUCCESS: {(name,): at.timestamp() for name, at in self._succeeded.items()},
            own.UPKEEP_SECONDS: {(name,): done.seconds for name, (_, done) in done.items()},
        }

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the task under way; one that lasts longer than PATIENCE_S is left behind, which harms nothing."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        due = dict.fromkeys(TASKS, monotonic() + FIRST_S)
        while not self._stop.wait(max(min(due.values()) - monotonic(), 0.05)):
            for name, task in TASKS.items():
                if due[name] <= monotonic() and not self._stop.is_set():
                    (done,) = upkeep(self._database, datetime.now(UTC), [name])
                    self._note(done)
                    due[name] = monotonic() + task.every.total_seconds()

    def _note(self, done: Done) -> None:
        now = datetime.now(UTC)
        self._done[done.task] = now, done
        if done.error is None:
            self._succeeded[done.task] = now
        with suppress(StoreError):
            self._sealed_bytes = self._database.sealed_bytes()
