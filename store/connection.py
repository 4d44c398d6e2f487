"""Opens the DuckDB file with settings that no SQL can change, and says in words why it cannot."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.errors import StoreDamagedError, StoreError, StoreLockedError

if TYPE_CHECKING:
    import duckdb

LOG_REFUSED = "Failure while replaying WAL file"
"""What DuckDB says of a log that it cannot read."""
_PID = re.compile(r"\(PID (\d+)\)")
_DAMAGE = (
    "not a valid DuckDB database file",
    "Corrupt database file",
    "checksum",
    "Failed to load metadata pointer",
    "Could not read enough bytes",
    LOG_REFUSED,
)
_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}


def connect(path: Path, readable: list[str], settings: dict[str, Any]) -> "duckdb.DuckDBPyConnection":
    """Open (creating it where missing) a DuckDB file that reads no other files than those below `readable`.

    Raises StoreLockedError when another process has it open, StoreDamagedError when it is damaged, else StoreError.
    """
    import duckdb

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        con = duckdb.connect(str(path), config=_SETTINGS | settings)
    except OSError as error:
        raise StoreError(
            f"cannot use data directory {path.parent}: {error.strerror}", "choose another with --data DIR"
        ) from error
    except duckdb.Error as error:
        raise explained(path, first_line(error)) from error
    try:
        con.execute("SET allowed_directories = $1", [readable])
        for setting in (
            "SET enable_external_access = false",  # SQL from users must not read files or the network
            "SET allowed_configs = ['operator_memory_limit']",  # of one connection only; store.limits sets it
            "SET GLOBAL TimeZone = 'UTC'",
            "SET GLOBAL python_enable_replacements = false",  # a table name must never mean a Python variable
            "SET lock_configuration = true",
        ):
            con.execute(setting)
        return con
    except duckdb.Error as error:
        con.close()  # else DuckDB would give this instance, which may be past use, to the next who asks
        raise explained(path, first_line(error)) from error


def first_line(error: Exception) -> str:
    """Return what DuckDB says first; the rest is about its source."""
    return str(error).strip().splitlines()[0]


def explained(path: Path, text: str) -> StoreError:
    """Say in words what DuckDB said when it could not open or read a file."""
    if "Could not set lock" in text:
        found = _PID.search(text)
        pid = int(found[1]) if found else None
        owner = f"process {pid}" if pid else "another process"
        return StoreLockedError(
            f"{path} is in use by {owner}", "stop that process, or ask its server with --server URL", pid
        )
    if any(sign in text for sign in _DAMAGE):
        return StoreDamagedError(f"{path} is damaged: {text}", "infractl maintain --rebuild makes it anew", path)
    return StoreError(f"cannot open {path}: {text}", "move the file aside or choose another --data DIR")
