"""Scrape 500 targets of 200 series each at 15 s into a real store, and the same with Prometheus: CPU, lag, duration.

Run `python benchmarks/scrape_500_targets.py [TARGETS [INTERVAL_S [ROUNDS]]]`; it prints a markdown table. One process
serves all pages on a port each and notes when each is asked for, so that both are judged by the same clock: lag is how
far two scrapes of a target lie from one interval apart. The first interval (connections, new series) is left out.
"""

import asyncio
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

SERIES = 200
_PROGRAM = [sys.executable, __file__]
_TICKS = os.sysconf("SC_CLK_TCK")


def page(target: int, turn: int) -> bytes:
    """One page of vLLM-like histograms and GPU gauges; nearly every value changes from turn to turn."""
    lines = ["# HELP vllm:e2e_request_latency_seconds Latency.", "# TYPE vllm:e2e_request_latency_seconds histogram"]
    for model in range(7):
        name = f'vllm:e2e_request_latency_seconds_bucket{{engine="0",model_name="org/model-{model}"'
        lines += [f'{name},le="{2.0**k}"}} {turn * (k + 20) + target}.0' for k in range(-10, 12)]
    lines += ["# HELP DCGM_FI_DEV_GPU_UTIL Utilisation.", "# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    for gpu in range(SERIES - 7 * 22):
        labels = f'gpu="{gpu}",UUID="GPU-{target:08d}-{gpu}",modelName="NVIDIA H100 80GB HBM3"'
        lines.append(f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {(turn * 7 + gpu + target) % 100}")
    return "\n".join([*lines, ""]).encode()


class _Page(asyncio.Protocol):
    """Answers one port, again and again."""

    def __init__(self, target: int, asked: list[float]) -> None:
        self.target, self.asked = target, asked

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not data.endswith(b"\r\n\r\n"):
            return
        self.asked.append(time.monotonic())
        body = page(self.target, len(self.asked))
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


async def serve(targets: int) -> None:
    """Serve all pages; print the ports; at the end of stdin print when each was asked for."""
    loop = asyncio.get_running_loop()
    asked: list[list[float]] = [[] for _ in range(targets)]

    def answering(target: int) -> Callable[[], _Page]:
        return lambda: _Page(target, asked[target])

    ports = []
    for target in range(targets):
        server = await loop.create_server(answering(target), "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps(ports), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(asked), flush=True)
        for times in asked:
            times.clear()


async def scrape(ports: list[int], interval_s: float, rounds: int) -> None:
    """Scrape into a store as `infractl serve` does, and print what it took."""
    from collector.prometheus.config import ScrapeConfig, StaticConfig
    from collector.prometheus.jobs import compile_jobs
    from collector.prometheus.scrape import Scraper
    from store.database import Database
    from store.writer import Writer

    static = StaticConfig([f"127.0.0.1:{port}" for port in ports])
    jobs = compile_jobs([ScrapeConfig("bench", [static], scrape_interval=f"{interval_s:g}s")])
    lags: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder)) as database:
        writer = Writer(database)
        scraper = Scraper((), writer.submit, jobs=jobs)
        running = asyncio.create_task(scraper.run())
        await asyncio.sleep(interval_s)
        cpu, start = time.process_time(), time.monotonic()
        for _ in range(rounds):
            await asyncio.sleep(interval_s)
            lags += [health.lag_s or 0.0 for health in scraper.health()]
        taken, wall = time.process_time() - cpu, time.monotonic() - start
        durations = [health.duration_s or 0.0 for health in scraper.health()]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        writer.close()
        found = {
            "cpu": taken / wall,
            "durations": durations,
            "failures": sum(health.failures + health.dropped for health in scraper.health()),
            "samples": database.counts()["metric_samples"],
            "ledger": database.counts()["ingest_batch"],
            "late": lags,
        }
    print(json.dumps(found))


def prometheus(ports: list[int], interval_s: float, rounds: int) -> dict[str, Any]:
    """Let Prometheus scrape the same, and return what it took."""
    with tempfile.TemporaryDirectory() as folder:
        targets = ",".join(f"'127.0.0.1:{port}'" for port in ports)
        job = f"- job_name: bench\n  scrape_interval: {interval_s:g}s\n  static_configs: [{{targets: [{targets}]}}]\n"
        Path(folder, "p.yml").write_text(f"global: {{scrape_timeout: 1s}}\nscrape_configs:\n{job}")
        address = f"127.0.0.1:{_free_port()}"
        options = [f"--config.file={folder}/p.yml", f"--storage.tsdb.path={folder}/data"]
        process = subprocess.Popen(
            ["prometheus", *options, f"--web.listen-address={address}"], stderr=subprocess.DEVNULL, env=_unbound()
        )
        try:
            time.sleep(interval_s + 6)  # it takes five seconds to look at its configuration
            cpu, start = _cpu_s(process.pid), time.monotonic()
            time.sleep(rounds * interval_s)
            share = (_cpu_s(process.pid) - cpu) / (time.monotonic() - start)
            durations = _query(address, "scrape_duration_seconds")
            failures = sum(value < 1 for value in _query(address, "up"))
        finally:
            process.terminate()
            process.wait()
    return {"cpu": share, "durations": durations, "failures": failures}


def _query(address: str, text: str) -> list[float]:
    url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': text})}"
    with urllib.request.urlopen(url) as answer:
        return [float(row["value"][1]) for row in json.load(answer)["data"]["result"]]


def _unbound() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "GOMAXPROCS"}


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _percentiles(values: Sequence[float]) -> str:
    """Median, P99 and largest in ms."""
    cuts = statistics.quantiles(values, n=100) if len(values) > 1 else [0.0] * 99
    return f"{cuts[49] * 1000:.1f} / {cuts[98] * 1000:.1f} / {max(values, default=0.0) * 1000:.1f}"


def _row(name: str, found: dict[str, Any], asked: list[list[float]], interval_s: float, rounds: int) -> str:
    scrapes = sum(map(len, asked))
    gaps = [b - a for times in asked for a, b in pairwise(times[1:])]
    lag = _percentiles([abs(gap - interval_s) for gap in gaps])
    rate = min(scrapes / len(asked), rounds + 1) * len(asked) * SERIES / ((rounds + 1) * interval_s)
    durations = _percentiles(found["durations"])
    return f"| {name} | {found['cpu']:.1%} | {lag} | {durations} | {rate:,.0f} | {found['failures']} |"


def main() -> None:
    """Print the table."""
    targets, interval_s, rounds = (int(text) for text in [*sys.argv[1:], *("500", "15", "4")[len(sys.argv) - 1 :]])
    server = subprocess.Popen(
        [*_PROGRAM, "--serve", str(targets)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    ports = json.loads(server.stdout.readline())

    def asked() -> list[list[float]]:
        assert server.stdin is not None
        assert server.stdout is not None
        print(file=server.stdin, flush=True)
        found: list[list[float]] = json.loads(server.stdout.readline())
        return found

    print(
        f"{targets} targets x {SERIES} series at {interval_s} s for {rounds} rounds, Python {platform.python_version()}"
    )
    print("\n| scraper | CPU of one core | lag ms (P50 / P99 / max) | scrape ms (P50 / P99 / max) | samples/s | lost |")
    print("|---|---|---|---|---|---|")
    command = [*_PROGRAM, "--scrape", json.dumps(ports), str(interval_s), str(rounds)]
    own = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(_row("infractl", own, asked(), interval_s, rounds), flush=True)
    if shutil.which("prometheus"):
        peer = prometheus(ports, interval_s, rounds)
        print(_row("Prometheus", peer, asked(), interval_s, rounds))
        print(f"\nCPU: infractl / Prometheus = {own['cpu'] / peer['cpu']:.2f}.", end="")
    print(f"\nActual start minus due of infractl: {_percentiles(own['late'])} ms (P50 / P99 / max).", end=" ")
    print(f"{own['samples']:,} samples in the store, {own['ledger']:,} rows in the ledger.")
    server.stdin.close()
    server.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(int(sys.argv[2])))
    elif sys.argv[1:2] == ["--scrape"]:
        asyncio.run(scrape(json.loads(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
    else:
        main()
