"""A store with rows of long ago to seal, and how a test sees them."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from store.batch import Batch
from store.database import Database
from store.settings import StoreSettings
from store.window import Window
from tests.store.rows import NOON, spans

NOW = (NOON + timedelta(days=1)).replace(tzinfo=UTC)
HOUR = timedelta(hours=1)
LATER = NOW + timedelta(days=365)
"""Well past every grace: files of a test have the time of the machine's clock."""


def opened(directory: Path, **settings: object) -> Database:
    return Database(directory, StoreSettings(min_free_bytes=0, node="n", **settings))  # type: ignore[arg-type]


def append(database: Database, ids: list[int], at: datetime = NOON, step: timedelta = timedelta(seconds=1)) -> int:
    """Append spans and return how many were new."""
    return database.append([Batch("t", {"spans": spans(ids, at, step)})])[0].stored["spans"]


def samples(ids: list[int], at: datetime = NOON) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "series_id": [i % 3 for i in ids],
            "ts": [at + timedelta(seconds=i) for i in ids],
            "value": [i / 7 for i in ids],
        },
        schema={"series_id": pl.UInt64, "ts": pl.Datetime("us"), "value": pl.Float64},
    )


def seen(database: Database) -> dict[str, object]:
    """All that a reader sees of the spans: rows of the view, the count, and rows hour by hour."""
    rows = database.table("spans").sort("trace_id")
    windows = [window(NOON + HOUR * n) for n in range(-1, 4)]
    return {
        "rows": rows.rows(),
        "count": database.counts()["spans"],
        "hourly": [sorted(database.table("spans", hour)["trace_id"]) for hour in windows],
        "sql": database.sql("SELECT count(*) AS n FROM spans").column("n").to_pylist(),
        "extent": database.extent("spans"),
    }


def window(hour: datetime) -> Window:
    return Window(hour.replace(tzinfo=UTC), (hour + HOUR).replace(tzinfo=UTC))


def repeated(database: Database) -> list[str]:
    counts = Counter(database.table("spans")["trace_id"])
    return [key for key, n in counts.items() if n > 1]


def files(database: Database) -> list[str]:
    root = Path(database.lake)
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def parts(database: Database) -> list[str]:
    return [path for path in files(database) if path.endswith(".parquet")]
