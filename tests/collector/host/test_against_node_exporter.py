"""This machine, read here and by a real node_exporter: the two agree."""

import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest

from collector.host.reader import HostReader
from collector.prometheus.exposition import Sample
from tests.collector.presets.read_page import Page, read

Key = tuple[str, tuple[tuple[str, str], ...]]
NOT_MONOTONIC = ("idle", "iowait")  # modes that the kernel may take back, proc_stat(5)
TICK_S = 0.011


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    program = next((path for path in map(shutil.which, ("prometheus-node-exporter", "node_exporter")) if path), None)
    if program is None:
        pytest.skip("no node_exporter on this machine")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = [f"--web.listen-address=127.0.0.1:{port}", "--collector.interrupts", "--collector.meminfo_numa"]
    process = subprocess.Popen([program, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def readings(url: str) -> tuple[list[Sample], Page, list[Sample]]:
    """Read here, there, and here again."""
    reader = HostReader()
    before = list(reader.read())
    with urllib.request.urlopen(url) as answer:
        page = read(answer.read().decode())
    return before, page, list(reader.read())


def theirs(page: Page, sample: Sample) -> float | None:
    """What the exporter has for a sample of ours; ours may be the sum of several of theirs."""
    found = [row.value for row in page.of(sample.name, **sample.labels)]
    return sum(value or 0.0 for value in found) if found else None


def test_every_counter_of_the_exporter_is_between_two_of_ours(
    readings: tuple[list[Sample], Page, list[Sample]],
) -> None:
    before, page, after = readings
    later = {(s.name, tuple(sorted(s.labels.items()))): s.value for s in after}
    compared = set()
    for sample in before:
        value = theirs(page, sample) if sample.name.endswith("_total") else None
        if value is not None and sample.labels.get("mode") not in NOT_MONOTONIC:
            compared.add(sample.name)
            high = later[(sample.name, tuple(sorted(sample.labels.items())))]
            slack = TICK_S + 1e-9 * high
            assert sample.value - slack <= value <= high + slack, sample
    assert {"host_cpu_seconds_total", "host_context_switches_total", "host_interrupts_total"} <= compared
    assert {"network_bytes_total", "numa_pages_total"} <= compared


def test_memory_is_the_same(readings: tuple[list[Sample], Page, list[Sample]]) -> None:
    before, page, _ = readings
    found = {s.labels["state"]: (s, theirs(page, s)) for s in before if s.name == "host_memory_bytes"}
    for state in ("total", "swap_total"):
        assert found[state][1] == found[state][0].value
    assert found["available"][1] == pytest.approx(found["available"][0].value, rel=0.1)


def test_the_exporter_has_nothing_of_a_host_that_is_missing_here(
    readings: tuple[list[Sample], Page, list[Sample]],
) -> None:
    before, page, _ = readings
    names = {row.canonical for row in page.rows if row.canonical and row.canonical.startswith(("host_", "numa_"))}
    assert names <= {s.name for s in before}
