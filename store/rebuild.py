"""Makes the database anew from what it is a cache of: the lake, the last snapshot, the journal."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from store import footers, snapshot
from store.appending import JOURNAL_MARK, insert_all, mark, marked
from store.connection import first_line
from store.errors import StoreDamagedError, StoreError
from store.journal_files import sync_directory
from store.lost_files import is_local, paths_below, set_aside
from store.manifest import MANIFEST
from store.migrate import migrate
from store.notices import Note, Notice
from store.replay import Replayed, replay
from store.rollups.freshness import ROLLED_MARK
from store.tables import TABLES

if TYPE_CHECKING:
    import duckdb

    from store.database import Database

NODE_FILE = "node.json"
Connect = Callable[[Path], "duckdb.DuckDBPyConnection"]


def possible(database: "Database") -> bool:
    """Whether there is anything to make a database from: a snapshot, a journal, or files that this store sealed."""
    pointer = database.directory / "snapshot" / snapshot.POINTER
    return pointer.exists() or bool(database.journal.segments()) or _has_sealed(database)


def rebuild(database: "Database", connect: Connect, why: str) -> Notice:
    """Make the file of a database that is not open anew; the old one, if any, is moved to aside/.

    The new file takes the place of the old one when it is complete: a rebuild that is stopped changes nothing. Raises
    StoreError.
    """
    path = database.path
    draft = path.with_name(path.name + ".rebuilding")
    for old in (draft, _log(draft)):
        old.unlink(missing_ok=True)
    con = connect(draft)
    try:
        replayed = _fill(con, database, str(draft))
    finally:
        con.close()
    moved = set_file_aside(path)
    draft.replace(path)
    sync_directory(path.parent)
    return _report(database.notice, why, moved, replayed)


def set_file_aside(path: Path) -> Path | None:
    """Move a database file and its log to aside/ and return where the file is now."""
    target = None
    for source in (path, _log(path)):
        if source.exists():
            target = aside(source)
            source.replace(target)
    return target


def aside(path: Path) -> Path:
    """Return a name in aside/ for a file of the data directory, with the time."""
    folder = path.parent / "aside"
    folder.mkdir(exist_ok=True)
    return folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{path.name}"


def _log(path: Path) -> Path:
    return path.with_name(path.name + ".wal")


def _fill(con: "duckdb.DuckDBPyConnection", database: "Database", name: str) -> Replayed:
    migrate(con, TABLES, name)
    transaction = partial(transaction_of, con)
    with transaction() as cursor:
        _load_manifest(cursor, database)
        set_aside(cursor, database.lake, database.directory, database.notice)
    known = _load_snapshot(transaction, database)
    replayed = replay(transaction, database.lake, database.journal.entries(0))
    with transaction() as cursor:
        mark(cursor, JOURNAL_MARK, max(known, marked(cursor, JOURNAL_MARK), database.journal.last_sequence))
    con.execute("CHECKPOINT")
    return replayed


def _load_manifest(cursor: "duckdb.DuckDBPyConnection", database: "Database") -> None:
    """Take the manifest from its mirror, else from the files; those of other stores in a shared lake are theirs."""
    from store.lake.mirror import read_manifest
    from store.lake.node import node

    if not _has_sealed(database):
        return
    own = node(database).name
    try:
        frame = read_manifest(database.lake, node=own, s3=database.settings.s3)
    except StoreError as error:
        if not is_local(database.lake):
            raise
        frame = footers.manifest(database.lake, "*" if database.settings.lake is None else own)
        if frame.height:
            database.notice(f"{error}: the {frame.height} sealed files were listed instead", None, "nothing is lost")
    insert_all(cursor, MANIFEST, frame)


def _has_sealed(database: "Database") -> bool:
    """Whether this store may have sealed files: it has a name in the lake, or a lake of its own that has files."""
    if (database.directory / NODE_FILE).exists():
        return True
    return database.settings.lake is None and bool(paths_below(database.lake))


def _load_snapshot(
    transaction: "Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]", database: "Database"
) -> int:
    try:
        found = snapshot.current(database.directory)
        if found is None:
            return 0
        with transaction() as cursor:
            snapshot.load(cursor, database.directory, found)
            cursor.execute(
                "DELETE FROM store_state WHERE name = ?", [ROLLED_MARK]
            )  # its rollups may be a day older than it: look at every append again
        return found.sequence
    except StoreDamagedError as error:
        database.notice(
            f"{error}: small tables (events, costs, prices, benchmarks, series) hold only what the journal has",
            None,
            error.hint,
        )
        return 0


@contextmanager
def transaction_of(con: "duckdb.DuckDBPyConnection") -> "Iterator[duckdb.DuckDBPyConnection]":
    """Give a connection within a transaction; ROLLBACK after an error. Raises StoreError."""
    import duckdb

    con.execute("BEGIN")
    try:
        yield con
        con.execute("COMMIT")
    except duckdb.Error as error:
        with suppress(duckdb.Error):
            con.execute("ROLLBACK")
        raise StoreError(
            f"the database cannot be made anew: {first_line(error)}", "free space and start again"
        ) from error
    except BaseException:
        with suppress(duckdb.Error):
            con.execute("ROLLBACK")
        raise


def _report(note: Note, why: str, moved: Path | None, replayed: Replayed) -> Notice:
    for item in replayed.refused:
        note(
            f"journal entry {item.sequence} cannot be stored ({item.batch.rows} rows of {item.batch.source}): "
            f"{item.why}",
            item.batch.rows,
            "report it with the log",
        )
    kept = f"; the old file is {moved}" if moved else ""
    return note(
        f"{why}: the database was made anew from lake, snapshot and journal "
        f"({replayed.entries} batches with {replayed.rows} rows replayed){kept}",
        replayed.rows,
        "check the disk; delete the old file when all is well" if moved else "check the disk",
    )
