"""Fixtures for scraping: a page server, a store, and a scraper between them."""

from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from store.batch import Batch, Receipt
from store.database import Database
from store.query import MetricQuery
from store.window import Window
from tests.collector.prometheus.server import PageServer, serve

START = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Store:
    """A real store that commits at once; `fails` makes it refuse."""

    def __init__(self, directory: Path) -> None:
        self.database = Database(directory)
        self.batches: list[Batch] = []
        self.fails: Exception | None = None
        self.now = START

    def clock(self) -> datetime:
        """Fifteen seconds later at each call."""
        self.now += timedelta(seconds=15)
        return self.now

    def submit(self, batch: Batch) -> "Future[Receipt]":
        if self.fails:
            raise self.fails
        self.batches.append(batch)
        future: Future[Receipt] = Future()
        future.set_result(self.database.append([batch])[0])
        return future

    def values(self, *names: str) -> list[float | None]:
        window = Window(START, START + timedelta(days=1))
        return self.database.read(MetricQuery(names), window)["value"].to_list()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "data")
    yield made
    made.database.close()


@pytest.fixture
def pages() -> Iterator[PageServer]:
    with serve() as server:
        yield server
