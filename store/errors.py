"""Errors that carry a fact, the next step and the exit code; `infractl.main` alone prints them."""

from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """Documented exit codes of every command."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    STORE = 3
    SOURCE = 4
    INTERRUPTED = 130


class InfractlError(Exception):
    """Base of all errors shown to a person: `error: <fact>`, then `hint: <next step>`."""

    code = ExitCode.USAGE

    def __init__(self, fact: str, hint: str = "") -> None:
        super().__init__(fact)
        self.hint = hint


class UsageError(InfractlError):
    """An option or argument that cannot be used as given."""


class ConfigError(InfractlError):
    """A configuration file that cannot be read or holds an unknown key."""


class StoreError(InfractlError):
    """The data directory cannot be opened, read or written."""

    code = ExitCode.STORE


class StoreDamagedError(StoreError):
    """The database file, its log or a sealed file cannot be read as it was written; `path` is the database's."""

    def __init__(self, fact: str, hint: str = "", path: Path | None = None) -> None:
        super().__init__(fact, hint)
        self.path = path


class StoreLockedError(StoreError):
    """Another process owns the DuckDB file.

    `pid` is the owner where DuckDB names it.
    """

    def __init__(self, fact: str, hint: str = "", pid: int | None = None) -> None:
        super().__init__(fact, hint)
        self.pid = pid


class SourceError(InfractlError):
    """A file, target or server that does not answer or cannot be decoded."""

    code = ExitCode.SOURCE


class BusyError(InfractlError):
    """The write queue is full: try again after `retry_after_s` seconds; nothing was stored."""

    code = ExitCode.STORE

    def __init__(self, fact: str, retry_after_s: float = 1.0) -> None:
        super().__init__(fact, "the sender may retry; nothing was stored")
        self.retry_after_s = retry_after_s


class JournalFullError(BusyError):
    """The journal has reached its limit: what it holds must be sealed or sent first; nothing was stored."""


class StoreFullError(BusyError):
    """The disk is full, or nearly: nothing was stored; reading goes on and ingest does once there is space again."""
