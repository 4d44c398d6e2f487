"""Real Prometheus and Alertmanager, a page to scrape and a webhook, all on free ports of 127.0.0.1."""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

PROMETHEUS = shutil.which("prometheus")
ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def wait_for(what: str, check: Callable[[], Any], timeout_s: float = 20.0) -> Any:
    """Return the first truthy answer; the last error or answer is in the failure."""
    end, last = time.monotonic() + timeout_s, None
    while time.monotonic() < end:
        try:
            if last := check():
                return last
        except httpx.HTTPError as error:
            last = error
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {timeout_s:.0f} s (last: {last!r})")


@contextlib.contextmanager
def program(log: Path, *words: str) -> Iterator[None]:
    """Run a program while the context lasts; its last words are printed when the test inside fails."""
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield
        except BaseException:
            sys.stderr.write(f"{words[0]} exit {process.poll()}: {log.read_text()[-3000:]}\n")
            raise
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def alertmanager(folder: Path, config: Path) -> Iterator[str]:
    """Yield the URL of an Alertmanager that is ready."""
    assert ALERTMANAGER
    address = f"127.0.0.1:{free_port()}"
    words = (
        ALERTMANAGER,
        f"--config.file={config}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    )
    with program(folder / "alertmanager.log", *words):
        url = f"http://{address}"
        wait_for("Alertmanager", lambda: httpx.get(f"{url}/-/ready").is_success)
        yield url


@contextlib.contextmanager
def prometheus(folder: Path, config: Path) -> Iterator[str]:
    """Yield the URL of a Prometheus that is ready."""
    assert PROMETHEUS
    address = f"127.0.0.1:{free_port()}"
    words = (
        PROMETHEUS,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address={address}",
        "--rules.alert.resend-delay=1s",
    )
    with program(folder / "prometheus.log", *words):
        url = f"http://{address}"
        wait_for("Prometheus", lambda: httpx.get(f"{url}/-/ready").is_success)
        yield url


@contextlib.contextmanager
def http_server(page: Callable[[], bytes] = bytes) -> Iterator[tuple[str, list[Any]]]:
    """Yield an address that answers GET with `page` and gathers the JSON of every POST in a list."""
    posts: list[Any] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(page())

        def do_POST(self) -> None:
            posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", posts
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
