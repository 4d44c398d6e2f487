"""Rows for tests of the store, and a seal of a given time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from store.database import Database
from store.lake.seal import seal

NOON = datetime(2026, 11, 30, 12)


def spans(ids: Sequence[int], at: datetime = NOON, step: timedelta = timedelta(seconds=1)) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "trace_id": [f"{i:032x}" for i in ids],
            "span_id": [f"{i:016x}" for i in ids],
            "ts": [at + step * n for n in range(len(ids))],
            "service": ["chat"] * len(ids),
            "operation": ["chat"] * len(ids),
        },
        schema_overrides={"ts": pl.Datetime("us")},
    )


def event(name: str, at: datetime = NOON) -> pl.DataFrame:
    return pl.DataFrame({"event_id": [name], "ts": [at]})


def span_ids(database: Database) -> list[str]:
    return sorted(database.table("spans")["span_id"])


def seal_hour(database: Database, hour: datetime) -> Path | None:
    """Seal what is hot up to the end of an hour; return the newest file."""
    sealed = seal(database, (hour + timedelta(hours=1)).replace(tzinfo=UTC), hot=timedelta(0))
    return Path(database.lake, sealed[-1].path) if sealed else None
