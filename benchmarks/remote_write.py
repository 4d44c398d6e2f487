"""Receive remote write: infractl (decode, store, commit) beside Prometheus' own receiver, the same requests in one run.

Run `python benchmarks/remote_write.py [SERIES…]`; it prints a markdown table. CPU time of the whole receiving process
(user and system, all threads) from the kernel. "First" are requests in which every series is new, "steady" the later
ones, every value new. Needs `prometheus`; it runs with GOMAXPROCS=1, so that neither has more than one core for itself.
"""

import http.client
import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import cramjam
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[import-untyped]

PATH = "/api/v1/write"
PROMETHEUS = shutil.which("prometheus") or "prometheus"
PER_REQUEST = 2000  # what Prometheus 3 sends; 2.42 sends 500
SCRAPES = 12
SHARDS = 4
_HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
_TICKS = os.sysconf("SC_CLK_TCK")
Words = Sequence[str]


def labels(i: int) -> dict[str, str]:
    """Labels of one series: buckets of a latency, as an engine in Kubernetes has them."""
    return {
        "__name__": "vllm:time_to_first_token_seconds_bucket",
        "engine": "0",
        "instance": f"10.0.{i // 800 % 250}.{i // 40 % 20}:8000",
        "job": "vllm",
        "le": f"{2.0 ** (i % 40 - 20)}",
        "model_name": f"org/model-{i // 40 % 9}",
        "namespace": "prod",
        "pod": f"llm-{i // 40}",
    }


def requests(series: int, turn: int, at_ms: int) -> list[bytes]:
    """Return the bodies of one scrape of all series; every value differs from the scrape before."""
    bodies = []
    for first in range(0, series, PER_REQUEST):
        parts = []
        for i in range(first, min(first + PER_REQUEST, series)):
            fields = [_field(1, _field(1, n.encode()) + _field(2, v.encode())) for n, v in labels(i).items()]
            parts.append(_field(1, b"".join([*fields, _field(2, _sample(float(turn * 7 + i), at_ms))])))
        bodies.append(bytes(cramjam.snappy.compress_raw(b"".join(parts))))
    return bodies


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _VarintBytes(len(content)) + content


def _sample(value: float, at_ms: int) -> bytes:
    return (b"\x09" + struct.pack("<d", value) if value else b"") + b"\x10" + _VarintBytes(at_ms)


@contextmanager
def receiver(words: Words, port: int) -> Iterator[int]:
    """Run a receiver until its port answers; yield its process id."""
    quiet, env = subprocess.DEVNULL, os.environ | {"GOMAXPROCS": "1"}
    process = subprocess.Popen(words, stdout=quiet, stderr=quiet, env=env)
    try:
        while process.poll() is None:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        time.sleep(1)
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def send(port: int, bodies: Sequence[bytes]) -> None:
    """Send bodies over some connections at once, as Prometheus' shards do; each is answered after it is stored."""
    with ThreadPoolExecutor(SHARDS) as shards:
        list(shards.map(lambda i: _send(port, bodies[i::SHARDS]), range(SHARDS)))


def _send(port: int, bodies: Sequence[bytes]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for body in bodies:
        connection.request("POST", PATH, body, _HEADERS)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{answer.status} {text!r}")
    connection.close()


def measure(words: Callable[[int, Path], Words], scrapes: Sequence[Sequence[bytes]]) -> tuple[float, float]:
    """Return the CPU seconds of the first scrape and of the others."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        with receiver(words(port, Path(folder)), port) as pid:
            start = cpu_s(pid)
            send(port, scrapes[0])
            first = cpu_s(pid)
            for bodies in scrapes[1:]:
                send(port, bodies)
            return first - start, cpu_s(pid) - first


def peer(port: int, folder: Path) -> Words:
    """Return the command of Prometheus as a receiver."""
    config = folder / "prometheus.yml"
    config.write_text("global: {}\n")
    return (
        PROMETHEUS,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-remote-write-receiver",
    )


def ours(port: int, folder: Path) -> Words:
    """Return the command of this file as a receiver."""
    return sys.executable, __file__, "--receive", str(port), str(folder)


def receive(port: int, folder: Path) -> None:
    """Serve infractl's receiver over a store of its own."""
    import uvicorn
    from starlette.applications import Starlette

    from collector.remote_write.receiver import create_routes
    from store.database import Database
    from store.writer import Writer

    with Database(folder) as database:
        writer = Writer(database)
        app = Starlette(routes=create_routes(writer.submit))
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
        writer.close()


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--receive"]:
        receive(int(sys.argv[2]), Path(sys.argv[3]))
        return
    found = subprocess.run([PROMETHEUS, "--version"], capture_output=True, text=True, check=True)
    print(f"{found.stdout.split(' (')[0]}, Python {platform.python_version()}; CPU seconds per million samples.\n")
    print("| series | first: Prometheus | infractl | ratio | steady: Prometheus | infractl | ratio | samples/s/core |")
    print("|---|---|---|---|---|---|---|---|")
    for series in [int(text) for text in sys.argv[1:]] or [10_000, 50_000]:
        start_ms = int(time.time() * 1000) - SCRAPES * 1000
        scrapes = [requests(series, turn, start_ms + turn * 1000) for turn in range(SCRAPES)]
        first, steady = measure(peer, scrapes)
        own_first, own_steady = measure(ours, scrapes)
        new, later = series / 1e6, series * (SCRAPES - 1) / 1e6
        print(
            f"| {series:,} | {first / new:.2f} | {own_first / new:.2f} | {own_first / first:.1f}x "
            f"| {steady / later:.2f} | {own_steady / later:.2f} | {own_steady / steady:.2f}x "
            f"| {later * 1e6 / own_steady:,.0f} |"
        )


if __name__ == "__main__":
    main()
