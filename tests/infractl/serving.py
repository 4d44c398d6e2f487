"""Starts a real `infractl serve` process for tests, and small real servers for it to scrape."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import orjson

from tests.rules.servers import free_port

ROOT = Path(__file__).parents[2]


def command_line(*args: str) -> list[str]:
    return [sys.executable, "-m", "infractl.main", *args]


@dataclass
class Served:
    """A running process and where it listens."""

    process: subprocess.Popen[str]
    data: Path
    port: int
    otlp_http: int
    otlp_grpc: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cli(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside the server, on its data directory."""
        full = command_line(*args, "--data", str(self.data))
        where = self.data.parent
        return subprocess.run(full, cwd=where, env=environment(), capture_output=True, text=True, timeout=120)

    def sql(self, text: str) -> list[dict[str, object]]:
        done = self.cli("sql", text, "--format", "json")
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, object]] = orjson.loads(done.stdout)
        return rows

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@contextlib.contextmanager
def serving(folder: Path, config: str = "", *options: str) -> Iterator[Served]:
    """Run `infractl serve` on free ports until the block ends; its log is shown when it fails to start."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "infractl.yaml").write_text(config)
    ports = free_port(), free_port(), free_port()
    args = ("--port", "--otlp-http-port", "--otlp-grpc-port")
    named = [word for option, port in zip(args, ports, strict=True) for word in (option, str(port))]
    log = (folder / "serve.log").open("w")
    process = subprocess.Popen(
        command_line("serve", "--data", str(folder / "data"), *named, *options),
        cwd=folder,
        env=environment(),
        stdout=log,
        stderr=subprocess.STDOUT,
        text=True,
    )
    served = Served(process, folder / "data", *ports)
    try:
        wait_for(lambda: answers(served.url + "/healthz") or process.poll() is not None, 60)
        assert process.poll() is None, (folder / "serve.log").read_text()
        yield served
    finally:
        log.close()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def wait_for(condition, seconds: float = 30):
    """Poll until the condition gives something true; fail after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"did not happen within {seconds} s")


@contextlib.contextmanager
def replaying(pages: list[bytes], content_type: str = "text/plain; version=0.0.4") -> Iterator[str]:
    """Serve pages in turn at /metrics (the last one again and again); gives host:port."""
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    for page in pages:
        waiting.put(page)
    last = [pages[-1]]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(queue.Empty):
                last[0] = waiting.get_nowait()
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.end_headers()
            self.wfile.write(last[0])

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
