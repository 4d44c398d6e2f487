"""Push more spans than the machine can take into a real `infractl serve` and check that no acknowledged one is lost.

Run `python benchmarks/soak.py [MINUTES]` (10 by default); it prints a markdown table. Four exporters, each a process
with many connections: OTLP/HTTP plain, gzip and zstd, and OTLP/gRPC. A refused request is sent again after the time
that the answer names, as the protocol asks. Afterwards the store is read: every acknowledged span must be there exactly
once.
"""

import gzip
import http.client
import multiprocessing
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import cramjam
import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

SPANS = 1024  # in a request
CONNECTIONS = 64  # of one exporter
MARK = b"\xf0MARKME\xf1"  # first half of every trace id, replaced by the number of the request
START, END = 0x1122334455667788, 0x1122334455667799  # replaced by the time of the request
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
Answer = tuple[str, float | None]
"""Outcome (`stored`, or the refusal) and the seconds after which to try again, where it says so."""


def template() -> bytes:
    """Return a request of SPANS spans of model requests, its trace ids to be filled in."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.append(KeyValue(key="service.name", value=AnyValue(string_value="soak")))
    spans = group.scope_spans.add().spans
    for i in range(SPANS):
        span = spans.add(trace_id=MARK + i.to_bytes(8, "big"), span_id=(i + 1).to_bytes(8, "big"), name="chat", kind=3)
        span.start_time_unix_nano, span.end_time_unix_nano = START, END
        for key, value in (
            ("gen_ai.operation.name", AnyValue(string_value="chat")),
            ("gen_ai.request.model", AnyValue(string_value=f"model-{i % 5}")),
            ("gen_ai.response.id", AnyValue(string_value=f"chatcmpl-{i:024}")),
            ("gen_ai.usage.input_tokens", AnyValue(int_value=i)),
            ("gen_ai.usage.output_tokens", AnyValue(int_value=i % 300)),
            ("gen_ai.response.time_to_first_chunk", AnyValue(double_value=0.1 + i / 1000)),
            ("server.address", AnyValue(string_value="api.example.com")),
            ("user.note", AnyValue(string_value=random.Random(i).randbytes(100).hex())),
        ):
            span.attributes.add(key=key, value=value)
    return request.SerializeToString()


def filled(body: bytes, tag: bytes) -> bytes:
    """Return the template as one request: spans that ran for the last second."""
    now_ns = time.time_ns()
    for mark, ns in ((START, now_ns - 10**9), (END, now_ns)):
        body = body.replace(struct.pack("<Q", mark), struct.pack("<Q", ns))
    return body.replace(MARK, tag)


class Http:
    """One connection of an OTLP/HTTP exporter."""

    def __init__(self, port: int, encoding: str | None) -> None:
        """Connect at the first request."""
        self._headers = {"Content-Type": "application/x-protobuf"}
        if encoding:
            self._headers["Content-Encoding"] = encoding
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def send(self, body: bytes) -> Answer:
        """Send one request."""
        try:
            self._connection.request("POST", "/v1/traces", body, self._headers)
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return f"no answer ({type(error).__name__})", 1.0
        retry = answer.getheader("Retry-After")
        outcome = "stored" if answer.status == 200 else f"HTTP {answer.status}{'' if retry else ' without Retry-After'}"
        return outcome, float(retry) if retry else None


class Grpc:
    """One stub of an OTLP/gRPC exporter; all of a process share a channel, as an SDK's do."""

    channels: ClassVar[dict[int, grpc.Channel]] = {}

    def __init__(self, port: int) -> None:
        """Connect at the first request."""
        channel = self.channels.setdefault(port, grpc.insecure_channel(f"127.0.0.1:{port}"))
        self._export = channel.unary_unary(METHOD)

    def send(self, body: bytes) -> Answer:
        """Send one request."""
        try:
            self._export(body, timeout=120)
        except grpc.RpcError as error:
            delay = _retry_delay(dict(error.trailing_metadata() or ()))
            name = error.code().name
            return f"gRPC {name}{'' if delay else ' without RetryInfo'}", delay
        return "stored", None


def _retry_delay(metadata: dict[str, Any]) -> float | None:
    for detail in Status.FromString(metadata.get("grpc-status-details-bin", b"")).details:
        info = RetryInfo()
        if detail.Unpack(info):
            return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
    return None


EXPORTERS: dict[str, Callable[[int, int], Http | Grpc]] = {
    "http": lambda port, _: Http(port, None),
    "http gzip": lambda port, _: Http(port, "gzip"),
    "http zstd": lambda port, _: Http(port, "zstd"),
    "grpc": lambda _, port: Grpc(port),
}
PACKS: dict[str, Callable[[bytes], bytes]] = {
    "http": bytes,
    "http gzip": lambda body: gzip.compress(body, 1),
    "http zstd": lambda body: bytes(cramjam.zstd.compress(body, 1)),
    "grpc": bytes,
}


def export(number: int, name: str, ports: tuple[int, int], until: float, results: Any) -> None:
    """Send until the time is over; tell the outcomes and the requests that were acknowledged."""
    body, outcomes, stored = template(), Counter[str](), []
    lock, numbers = threading.Lock(), iter(range(1 << 40))

    def connection() -> None:
        exporter = EXPORTERS[name](*ports)
        while time.time() < until:
            with lock:
                tag = (number << 48 | next(numbers)).to_bytes(8, "big")
            packed, outcome = PACKS[name](filled(body, tag)), ""
            while outcome != "stored":
                outcome, delay_s = exporter.send(packed)
                with lock:
                    outcomes[outcome] += 1
                if outcome != "stored":
                    if delay_s is None or time.time() + delay_s > until + 60:
                        break
                    time.sleep(delay_s)
            else:
                with lock:
                    stored.append(tag.hex())

    threads = [threading.Thread(target=connection) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put((name, dict(outcomes), stored))


@contextmanager
def serving(folder: Path, ports: tuple[int, int, int]) -> Iterator[subprocess.Popen[bytes]]:
    """Run `infractl serve` until it answers; it is asked to stop, and its store is whole, at the end."""
    words = [sys.executable, "-m", "infractl.main", "serve", "--data", str(folder), "--port", str(ports[0])]
    words += ["--otlp-http-port", str(ports[1]), "--otlp-grpc-port", str(ports[2])]
    with (folder.parent / "serve.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        while process.poll() is None and not all(map(_answers, ports)):
            time.sleep(0.2)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(600)  # an analysis under way is finished first


def _answers(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def free_ports(n: int) -> list[int]:
    """Return ports that nobody listens on."""
    socks = [socket.socket() for _ in range(n)]
    for sock in socks:
        sock.bind(("127.0.0.1", 0))
    ports = [sock.getsockname()[1] for sock in socks]
    for sock in socks:
        sock.close()
    return ports


def rss_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counted(port: int) -> Counter[str]:
    """Return the requests that the server says it answered, by outcome."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        lines = re.findall(r"^infractl_received_requests_total\{(.*)\} (\S+)$", page.read().decode(), re.MULTILINE)
    totals: Counter[str] = Counter()
    for labels, value in lines:
        if 'signal="traces"' in labels:
            outcome = re.search(r'outcome="(\w+)"', labels)
            totals[outcome[1] if outcome else "?"] += int(float(value))
    return totals


def spans_of_requests(folder: Path) -> dict[str, tuple[int, int]]:
    """Return spans and different spans of every request in the store."""
    from store.database import Database

    text = """
        SELECT substr(trace_id, 1, 16) AS request, count(*)::BIGINT, count(DISTINCT substr(trace_id, 17))::BIGINT
        FROM spans WHERE service = 'soak' GROUP BY 1
    """
    with Database(folder) as database:
        columns = [column.to_pylist() for column in database.sql(text).columns]
    return {request: (n, different) for request, n, different in zip(*columns, strict=True)}


def run(minutes: float) -> None:
    """Run the soak and print its tables; exit with 1 where a span is lost or stored twice."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "data"
        folder.mkdir()
        ports = free_ports(3)
        with serving(folder, (ports[0], ports[1], ports[2])) as server:
            results, idle, memory = context.Queue(), rss_mib(server.pid), list[float]()
            begun = time.time()
            until = begun + minutes * 60
            told: list[tuple[str, dict[str, int], list[str]]] = []
            for number, name in enumerate(EXPORTERS, 1):
                context.Process(target=export, args=(number, name, (ports[1], ports[2]), until, results)).start()
            while len(told) < len(EXPORTERS):
                memory.append(rss_mib(server.pid))
                time.sleep(0.5)
                while not results.empty():
                    told.append(results.get())
            took_s, answers, used_s = time.time() - begun, counted(ports[0]), cpu_s(server.pid)
        found = spans_of_requests(folder)
    report(told, found, answers, (took_s, used_s), (idle, memory))


def report(
    told: list[tuple[str, dict[str, int], list[str]]],
    found: dict[str, tuple[int, int]],
    answers: Counter[str],
    times: tuple[float, float],
    memory: tuple[float, list[float]],
) -> None:
    """Print what was sent, stored and held."""
    outcomes = sorted({outcome for _, by_outcome, _ in told for outcome in by_outcome} - {"stored"})
    print(f"| exporter | acknowledged | {' | '.join(outcomes)} |\n|{'---|' * (len(outcomes) + 2)}")
    for name, by_outcome, _ in sorted(told):
        cells = [f"{by_outcome.get(outcome, 0):,}" for outcome in ("stored", *outcomes)]
        print(f"| {name} | {' | '.join(cells)} |")
    acknowledged = [tag for _, _, stored in told for tag in stored]
    lost = sum(found.get(tag, (0, 0)) != (SPANS, SPANS) for tag in acknowledged)
    twice = sum(n != different for n, different in found.values())
    idle, samples = memory
    third, (took_s, used_s) = len(samples) // 3, times
    print(f"\n| | |\n|---|---|\n| spans acknowledged | {len(acknowledged) * SPANS:,} in {took_s:.0f} s |")
    print(f"| CPU of the server | {used_s:.0f} s: {len(acknowledged) * SPANS / used_s:,.0f} spans a CPU second |")
    print(f"| acknowledged requests not whole in the store | {lost} |\n| requests with a span twice | {twice} |")
    print(f"| stored without an acknowledgement | {len(found) - len(acknowledged)} |")
    print(f"| counted by the server | {', '.join(f'{k} {v:,}' for k, v in sorted(answers.items()))} |")
    print(f"| memory: idle, largest | {idle:.0f} MiB, {max(samples):.0f} MiB |")
    parts = [max(samples[i * third : (i + 1) * third]) for i in range(3)]
    print(f"| largest in each third of the run | {', '.join(f'{part:.0f}' for part in parts)} MiB |")
    if lost or twice:
        raise SystemExit(1)


if __name__ == "__main__":
    run(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
