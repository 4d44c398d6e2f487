"""What `infractl maintain` does to a store, in this process or in the server that owns it."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.errors import UsageError
from store.nearest import nearest

if TYPE_CHECKING:
    from store.database import Database


def maintain(database: "Database", tasks: Sequence[str], verify: bool, backup: Path | None) -> dict[str, Any]:
    """Do it, and tell: `lines` for a person, `done` by task, `flaws` found. Raises UsageError, StoreError."""
    from store import backup as backups
    from store.upkeep import TASKS, upkeep
    from store.verify import verify as verified

    for name in tasks:
        if name not in TASKS:
            raise UsageError(f"there is no task {name!r}", nearest(name, TASKS, "tasks: " + ", ".join(TASKS)))
    done = upkeep(database, datetime.now(UTC), tasks)
    lines = [f"{item.task:<10} {item.error or item.what}  ({item.seconds:.1f} s)" for item in done]
    flaws = verified(database) if verify else ()
    if verify:
        lines += [f"damaged    {flaw.file}: {flaw.what}; {flaw.remedy}" for flaw in flaws]
        lines += [] if flaws else [f"verified   all {sum(database.counts().values())} rows are as they were written"]
        lines += [f"notice     {note.when:%Y-%m-%d %H:%M}Z {note.what}; {note.remedy}" for note in database.notices]
    if backup is not None:
        made = backups.backup(database, backup)
        lines.append(f"backup     {made.total_rows} rows in {backup}")
    return {"lines": lines, "done": [asdict(item) for item in done], "flaws": [asdict(flaw) for flaw in flaws]}
