"""Backup while ingest goes on, and restore: tables as of one moment, sealed files, and a list that proves both."""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from store import snapshot
from store.appending import JOURNAL_MARK, marked
from store.connection import connect
from store.database import FILE_NAME, lake_root
from store.errors import StoreDamagedError, StoreError
from store.footers import digest
from store.journal_files import sync_directory
from store.lost_files import SealedFile, is_local, live
from store.migrate import SCHEMA_VERSION, migrate
from store.rebuild import NODE_FILE, transaction_of
from store.settings import StoreSettings
from store.tables import TABLES

if TYPE_CHECKING:
    from store.database import Database

LIST = "backup.json"


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds: when (UTC) and with which schema it was taken, the last journal entry, rows, sealed files.

    `rows` counts what was in the database, `files` what was in the lake; those of a lake elsewhere (s3://…) stay there.
    """

    taken: datetime
    schema_version: int
    sequence: int
    rows: dict[str, int]
    files: list[SealedFile]

    @property
    def total_rows(self) -> int:
        """Rows in all tables."""
        return sum(self.rows.values()) + sum(file.rows for file in self.files)


def backup(database: "Database", target: Path) -> Backup:
    """Write everything as of one moment to an empty directory; appends go on meanwhile.

    Sealed files, which never change, are hard links where `target` is on the same disk. The backup counts once its list
    is written, which is last. Raises StoreError.
    """
    _claim(target, "choose an empty directory for the backup")
    tables = target / "tables"
    try:
        tables.mkdir()
        with database.snapshot() as cursor:
            files = live(cursor)
            sequence = marked(cursor, JOURNAL_MARK)
            taken = datetime.now(UTC)
            if is_local(database.lake):
                for file in files:
                    _link(Path(database.lake) / file.path, target / "lake" / file.path)
            rows = snapshot.write_tables(cursor, TABLES, tables)
        _copy_name(database.directory, target)
        made = Backup(taken, SCHEMA_VERSION, sequence, rows, files)
        snapshot.write_durably(target / LIST, msgspec.json.encode(made))
    except OSError as error:
        raise StoreError(f"cannot write the backup {target}: {error}", "choose another directory") from error
    return made


def restore(source: Path, directory: Path, settings: StoreSettings | None = None) -> Backup:
    """Make a data directory from a backup; `directory` must be empty or not there.

    Raises StoreDamagedError when the backup is not complete as it was written; then there is no database, StoreError.
    """
    settings = settings or StoreSettings()
    found = _read(source)
    _claim(directory, "choose an empty directory to restore to")
    lake = lake_root(directory, settings)
    try:
        if is_local(lake):
            for file in found.files:
                _copy(source / "lake" / file.path, Path(lake) / file.path, file)
        _copy_name(source, directory)
        _make(source, directory / FILE_NAME, lake, found)
    except OSError as error:
        raise StoreError(f"cannot restore to {directory}: {error}", "free space or choose another directory") from error
    return found


def _make(source: Path, path: Path, lake: str, found: Backup) -> None:
    """Make the database under another name; it has its own once it is complete."""
    draft = path.with_name(path.name + ".restoring")
    con = connect(draft, [lake], {})
    try:
        migrate(con, TABLES, str(draft))
        with transaction_of(con) as cursor:
            snapshot.load_tables(cursor, source / "tables", found.rows)
        con.execute("CHECKPOINT")
    finally:
        con.close()
    draft.replace(path)
    sync_directory(path.parent)


def _read(source: Path) -> Backup:
    try:
        found = msgspec.json.decode((source / LIST).read_bytes(), type=Backup)
    except FileNotFoundError:
        raise StoreError(
            f"{source} holds no complete backup ({LIST} is missing)", "name a directory that has it"
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreDamagedError(f"{source / LIST} cannot be read: {error}", "use another backup") from error
    if found.schema_version > SCHEMA_VERSION:
        raise StoreError(
            f"{source} was written by a newer infractl (schema {found.schema_version})", "upgrade infractl"
        )
    return found


def _claim(directory: Path, hint: str) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise StoreError(f"{directory} is not empty", hint)
    except OSError as error:
        raise StoreError(f"cannot use {directory}: {error.strerror}", hint) from error


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # another disk, or one without links
        os.link(source, target)
        return
    shutil.copyfile(source, target)
    snapshot.sync_file(target)


def _copy_name(source: Path, target: Path) -> None:
    """Take along who the store is in its lake."""
    if (source / NODE_FILE).exists():
        shutil.copyfile(source / NODE_FILE, target / NODE_FILE)


def _copy(source: Path, target: Path, file: SealedFile) -> None:
    """Copy a sealed file, a link would share its fate; raises StoreDamagedError when it is not what was sealed."""
    if file.sha256 and (not source.exists() or digest(source) != file.sha256):
        raise StoreDamagedError(f"{source} is not what was sealed", "use another backup")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    snapshot.sync_file(target)
