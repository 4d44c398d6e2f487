"""Scrape one page of 100,000 series every two seconds: infractl, store included, beside Prometheus itself.

Run `python benchmarks/scrape_cpu.py [SERVERS…]` (82 series each); it prints a markdown table. Needs the `prometheus`
binary. CPU of each process from /proc, user and system, by scrape: Prometheus with GOMAXPROCS=1, infractl as `serve`
scrapes (fetch, parse, end marks, append to a DuckDB file). Two pages alternate, so that every value changes. The first
scrapes, in which the series are met, are apart. The page server is a process of its own and not counted.
"""

import asyncio
import gzip
import multiprocessing
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from exposition_parser import page

from collector.prometheus.scrape import Scraper
from collector.prometheus.targets import Target
from store.database import Database
from store.writer import Writer

INTERVAL_S = 2.0
WARM, COUNTED, ROUNDS = 3, 8, 2
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
Bodies = tuple[bytes, bytes]


def serve(bodies: Bodies, zipped: bool, asked: "Synchronized[int]", port: Connection) -> None:
    """Answer every GET with the other page."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            if zipped:
                self.send_header("Content-Encoding", "gzip")
            body = bodies[asked.value % 2]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            asked.value += 1

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.send(server.server_address[1])
    server.serve_forever()


def scrape(port: int, directory: str) -> None:
    """Scrape as `serve` does, until killed."""

    async def run() -> None:
        instance = f"127.0.0.1:{port}"
        labels = {"job": "bench", "instance": instance}
        target = Target("bench", instance, f"http://{instance}/metrics", labels, INTERVAL_S, INTERVAL_S)
        await Scraper([target], Writer(Database(Path(directory))).submit).run()

    asyncio.run(run())


@contextmanager
def infractl(port: int, directory: Path) -> Iterator[int]:
    """Run infractl's scraper; give its process id."""
    process = multiprocessing.get_context("spawn").Process(target=scrape, args=(port, str(directory)))
    process.start()
    try:
        yield process.pid or 0
    finally:
        process.kill()
        process.join()


@contextmanager
def prometheus(port: int, directory: Path) -> Iterator[int]:
    """Run Prometheus on one core; give its process id."""
    config = directory / "prometheus.yml"
    config.write_text(
        f"scrape_configs: [{{job_name: bench, scrape_interval: {INTERVAL_S:g}s, scrape_timeout: {INTERVAL_S:g}s, "
        f"static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    )
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory}/tsdb", "--log.level=error"]
    process = subprocess.Popen(
        [*command, "--web.listen-address=127.0.0.1:0"], env={**os.environ, "GOMAXPROCS": "1"}, stderr=subprocess.DEVNULL
    )
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def cpu_s(pid: int) -> float:
    """CPU time of a process, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def peak_mb(pid: int) -> float:
    """Largest resident size of a process so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def wait_for(asked: "Synchronized[int]", count: int) -> None:
    """Wait until that many pages were asked for and there was time to store the last one. Raises TimeoutError."""
    until = time.monotonic() + 10 * count * INTERVAL_S
    while asked.value < count:
        if time.monotonic() > until:
            raise TimeoutError(f"{asked.value} of {count} pages were scraped")
        time.sleep(0.01)
    time.sleep(INTERVAL_S * 0.75)


def measure(peer: Callable[[int, Path], object], bodies: Bodies, zipped: bool) -> tuple[float, float, float]:
    """Return CPU of the warm-up, CPU of a scrape after it (seconds) and peak memory (MB)."""
    context = multiprocessing.get_context("fork")
    asked, (ours, theirs) = context.Value("i", 0), context.Pipe()
    server = context.Process(target=serve, args=(bodies, zipped, asked, theirs))
    server.start()
    try:
        with tempfile.TemporaryDirectory() as directory, peer(ours.recv(), Path(directory)) as pid:  # type: ignore[attr-defined]
            wait_for(asked, WARM)
            warm_s = cpu_s(pid)
            wait_for(asked, WARM + COUNTED)
            return warm_s, (cpu_s(pid) - warm_s) / COUNTED, peak_mb(pid)
    finally:
        server.kill()
        server.join()


def main() -> None:
    """Print the table."""
    if shutil.which("prometheus") is None:
        print("no prometheus binary here: nothing to compare with")
        return
    version = subprocess.run(["prometheus", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    print(f"Prometheus {version}, Python {platform.python_version()}\n")
    print(
        "| samples | page MB | transfer | process | CPU s until the third scrape | CPU s a scrape | ratio | peak MB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for servers in [int(text) for text in sys.argv[1:]] or [60, 1220]:
        plain = page(servers, 1), page(servers, 2)
        samples = sum(not line.startswith(b"#") for line in plain[0].splitlines())
        for zipped in (False, True):
            bodies = (gzip.compress(plain[0]), gzip.compress(plain[1])) if zipped else plain
            rounds = [[measure(peer, bodies, zipped) for peer in (prometheus, infractl)] for _ in range(ROUNDS)]
            theirs, ours = (
                [statistics.median(column) for column in zip(*peer, strict=True)] for peer in zip(*rounds, strict=True)
            )
            about = f"| {samples:,} | {len(plain[0]) / 1e6:.2f} | {'gzip' if zipped else 'plain'} |"
            for name, (warm_s, each_s, peak) in (("Prometheus", theirs), ("infractl", ours)):
                print(
                    f"{about} {name} | {warm_s:.2f} | {each_s:.3f} | {each_s / theirs[1]:.2f}x | {peak:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
