"""Pages of metrics through the real path: text, decoder, store, query."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from collector.prometheus.series import to_batch
from collector.prometheus.text import parse
from store.database import Database
from store.query import MetricQuery
from store.window import Window

START = datetime(2026, 11, 30, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """So many seconds after START."""
    return START + timedelta(seconds=seconds)


def span(first_s: float, last_s: float) -> Window:
    """Window that holds the samples of both seconds."""
    return Window(at(first_s), at(last_s) + timedelta(microseconds=1))


def stored(
    folder: Path,
    pages: Mapping[float, str] | Sequence[tuple[float, str]],
    names: Sequence[str],
    target: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Store pages by their second and read the names back; `target` labels are job and instance."""
    labels = {"job": "llm", "instance": "10.0.0.1:8000"} | dict(target or {})
    with Database(folder) as database:
        for second, text in pages.items() if isinstance(pages, Mapping) else pages:
            page = parse(text.encode())
            assert not page.rejected
            database.append([to_batch("test", page, at(second), labels)])
        return database.read(MetricQuery(tuple(names)), Window(at(-86400), at(86400)))
