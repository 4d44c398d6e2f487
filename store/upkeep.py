"""The store's own work: sealing, rollups, snapshot, retention, compaction, sweeping; each a task with its report."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from store.errors import InfractlError

if TYPE_CHECKING:
    from store.database import Database

log = logging.getLogger(__name__)
SNAPSHOT_EVERY = timedelta(hours=1)
PIECES = 200
"""Pieces of the rollups that one task builds at most: writers get their turn between any two."""


@dataclass(frozen=True, slots=True)
class Done:
    """A task that ran: what it did in words, how long it took, and the error that ended it, if one did."""

    task: str
    what: str
    seconds: float
    error: str | None = None


def upkeep(database: "Database", now: datetime, tasks: Sequence[str]) -> tuple[Done, ...]:
    """Run tasks one after the other; one that fails does not keep the next from running."""
    return tuple(_run(database, now, task) for task in tasks)


def _run(database: "Database", now: datetime, task: str) -> Done:
    started = time.perf_counter()
    try:
        what, error = TASKS[task].run(database, now), None
    except InfractlError as failure:
        what, error = "failed", f"{failure}; {failure.hint}" if failure.hint else str(failure)
        log.warning("%s failed: %s", task, error)
    except Exception as failure:
        what, error = "failed", str(failure)
        log.exception("%s failed", task)
    return Done(task, what, time.perf_counter() - started, error)


def _seal(database: "Database", now: datetime) -> str:
    from store.lake.seal import seal

    sealed = seal(database, now)
    return f"{len(sealed)} hours, {sum(item.rows for item in sealed)} rows" if sealed else "nothing to seal"


def _rollups(database: "Database", now: datetime) -> str:
    from store.rollups.build import roll

    buckets = 0
    for _ in range(PIECES):
        done = roll(database, now)
        buckets += done.buckets + done.hours
        if not done.more:
            break
    return f"{buckets} buckets built"


def _snapshot(database: "Database", now: datetime) -> str:
    from store import snapshot
    from store.trim import trim_journal

    last = snapshot.current(database.directory)
    if last is not None and now - last.taken.astimezone(UTC) < SNAPSHOT_EVERY:
        return f"the last one is of {last.taken:%H:%M} UTC"
    made = snapshot.take(database)
    return f"{sum(made.rows.values())} rows, {trim_journal(database, now)} bytes of the journal freed"


def _retention(database: "Database", now: datetime) -> str:
    from store.retention import retain

    dropped = retain(database, now)
    told = [f"{item.table}: {item.rows} rows ({item.reason})" for item in dropped]
    return ", ".join(told) or "nothing is over its time or size"


def _compact(database: "Database", now: datetime) -> str:
    from store.lake.compact import compact

    return f"{len(compact(database, now))} hours made one file"


def _sweep(database: "Database", now: datetime) -> str:
    from store.lake.sweep import sweep

    done = sweep(database, now)
    return f"{done.dropped + done.orphans + done.drafts} files deleted, {done.size_bytes} bytes"


@dataclass(frozen=True, slots=True)
class Task:
    """What a task is, how often `serve` does it, and the function that does it and says what it did."""

    doc: str
    every: timedelta
    run: Callable[["Database", datetime], str]


TASKS: Mapping[str, Task] = {
    "seal": Task("move hours that are old enough into Parquet", timedelta(minutes=5), _seal),
    "rollups": Task("build the 5-minute and hourly rollups", timedelta(minutes=1), _rollups),
    "snapshot": Task("copy the small tables, trim the journal", timedelta(minutes=5), _snapshot),
    "retention": Task("drop what is over its age or size", timedelta(minutes=15), _retention),
    "compact": Task("merge the files of an hour", timedelta(hours=1), _compact),
    "sweep": Task("delete files that nobody reads", timedelta(minutes=15), _sweep),
}
