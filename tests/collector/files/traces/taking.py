"""What tests ask of an imported export: its rows of `spans` by name."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collector.files import Imported, ImportOptions, load

AT = datetime(2026, 2, 3, 15, 20, tzinfo=UTC)
Row = dict[str, Any]


def take(folder: Path, document: object, **options: Any) -> tuple[Imported, list[Row]]:
    """Import a document as a file; how it was read, and its spans."""
    path = folder / "export.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return take_file(path, **options)


def take_file(path: Path, **options: Any) -> tuple[Imported, list[Row]]:
    imported = load(path, ImportOptions(**options))
    [batch] = imported.batches
    return imported, batch.frames["spans"].to_dicts()


def attributes(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row["attributes"] or "{}")
    return found
