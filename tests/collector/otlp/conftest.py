"""A real store behind the receivers."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette

from collector.otlp.receiver import Submit
from store.batch import Batch, Receipt
from store.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path) as opened:
        yield opened


@pytest.fixture
def submit(database: Database) -> Iterator[Submit]:
    """Append in a writer thread, as the serving process does."""
    with ThreadPoolExecutor(1) as writer:

        def append(batch: Batch) -> "Future[Receipt]":
            return writer.submit(lambda: database.append([batch])[0])

        yield append


class Served:
    """An ASGI app on a port of 127.0.0.1 (0: a free one), in a thread."""

    def __init__(self, app: Starlette, port: int = 0) -> None:
        config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the server did not start"
            self._thread.join(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
