"""Opens a database after whatever happened to it: a start succeeds or says exactly why not."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from store import packing, rebuild
from store.connection import LOG_REFUSED
from store.errors import StoreDamagedError, StoreError
from store.rebuild import Connect, aside
from store.replay import Replayed

if TYPE_CHECKING:
    import duckdb

    from store.database import Database

Open = Callable[[], "duckdb.DuckDBPyConnection"]


def copy_log(path: Path) -> Path | None:
    """Copy the log of a database file before it is opened, for `keep_or_drop`; None without a log or space for it."""
    log = path.with_name(path.name + ".wal")
    target = None
    with suppress(OSError):
        if log.is_file() and log.stat().st_size:
            target = aside(log)
            shutil.copyfile(log, target)
            return target
    if target is not None:
        target.unlink(missing_ok=True)
    return None


def opened(database: "Database", open_file: Open, connect: Connect, log: Path | None) -> "duckdb.DuckDBPyConnection":
    """Open the file; without its log where DuckDB refuses that, made anew where it is damaged or gone.

    `log` is the copy of the log, deleted where the log itself is set aside. Raises StoreLockedError, StoreError;
    StoreDamagedError when there is nothing to make it anew from.
    """
    possible = rebuild.possible(database)
    if not database.path.exists() and possible:
        rebuild.rebuild(database, connect, f"{database.path} was not there")
    try:
        return open_file()
    except StoreDamagedError as error:
        if LOG_REFUSED in str(error):
            _set_log_aside(database, error)
            if log is not None:
                log.unlink(missing_ok=True)
    try:
        return open_file()
    except StoreDamagedError as error:
        if error.path != database.path or not possible:
            raise
        rebuild.rebuild(database, connect, str(error))
        return open_file()


def force(database: "Database", connect: Connect) -> None:
    """Make the file anew though it may be well. Raises StoreError when there is nothing to make it from."""
    if not rebuild.possible(database):
        raise StoreError(
            f"{database.directory} has neither lake, snapshot nor journal to make a database from",
            "infractl maintain --restore DIR makes it from a backup",
        )
    rebuild.rebuild(database, connect, "a rebuild was asked for")


def keep_or_drop(copy: Path | None, replayed: Replayed) -> Path | None:
    """Delete the copied log unless rows were missing after it was read; return it when it is kept."""
    if copy is None or not copy.exists():
        return None
    if replayed.entries:
        return copy
    copy.unlink()
    return None


def note_replay(database: "Database", replayed: Replayed, log: Path | None, since: datetime | None) -> None:
    """Say what the journal had and the database had not. `since` is the last commit that the database knew."""
    for item in replayed.refused:
        _keep_refused(database, item.sequence, packing.pack(item.batch))
        database.notice(
            f"journal entry {item.sequence} cannot be stored ({item.batch.rows} rows of {item.batch.source}): "
            f"{item.why}",
            item.batch.rows,
            "it is kept in aside/; report it with the log",
        )
    if replayed.entries:
        kept = f"; the log as it was is {log}" if log else ""
        times = f", rows of {replayed.first_ts}Z to {replayed.last_ts}Z" if replayed.first_ts else ""
        database.notice(
            f"the last {replayed.entries} batches ({replayed.stored} of {replayed.rows} rows{times}"
            f"{_seconds(database, since)}) were not in the database and were appended from the journal{kept}",
            replayed.stored,
            "none of what was acknowledged is lost; after anything but a kill or power loss check the disk",
        )


def note_journal_damage(database: "Database") -> None:
    """Say what of the journal cannot be read; an end cut short by a kill was promised to nobody."""
    for damage in database.journal.damage:
        if "cut short" not in damage.what:
            database.notice(
                f"{damage.path}: {damage.what} ({damage.bytes} bytes)",
                None,
                "what the database holds is not touched by this; check the disk",
            )


def _set_log_aside(database: "Database", error: StoreDamagedError) -> None:
    log = database.path.with_name(database.path.name + ".wal")
    target = aside(log)
    log.replace(target)
    database.notice(
        f"{error}: it was moved to {target} and the database opened without it; rows that were not in the file yet "
        "are taken from the journal",
        None,
        "check the disk; without the journal's rows those since the last checkpoint would be lost",
    )


def _seconds(database: "Database", since: datetime | None) -> str:
    """How long the stretch is that was missing: last commit known to last entry."""
    segments = database.journal.segments()
    until = segments[-1].last_time if segments else None
    if since is None or until is None:
        return ""
    return f", {max((until - since.replace(tzinfo=UTC)).total_seconds(), 0.0):.1f} s of ingest"


def _keep_refused(database: "Database", sequence: int, data: bytes) -> None:
    with suppress(OSError):
        aside(database.directory / f"entry-{sequence}.batch").write_bytes(data)
