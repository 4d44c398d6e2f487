"""On a machine with an NVIDIA GPU: the reader and `nvidia-smi -q -x` agree, here and now. Skipped elsewhere."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.gpu.nvml import NvmlReader
from collector.prometheus.exposition import Sample
from tests.collector.gpu.captures import Capture, from_xml
from tests.collector.gpu.test_captures import EXPECTED

pytestmark = pytest.mark.skipif(
    shutil.which("nvidia-smi") is None or bool(subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode),
    reason="no NVIDIA GPU here",
)
MOVES = {  # quantities that change from one moment to the next, and by how much they may
    "gpu_power_instant_watts": 0.5,
    "gpu_clock_hz": 1.0,
    "gpu_utilization_ratio": 1.0,
    "gpu_temperature_celsius": 0.2,
    "gpu_temperature_margin_celsius": 0.4,
    "gpu_memory_bytes": 0.02,
    "gpu_bar1_memory_bytes": 0.02,
    "gpu_fan_ratio": 0.5,
    "gpu_performance_state": 1.0,
    "gpu_pcie_link_generation": 1.0,
    "gpu_pcie_bytes_per_second": float("inf"),
    "gpu_throttle_seconds_total": 0.01,
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Sample], list[Capture], NvmlReader]]:
    path = tmp_path_factory.mktemp("smi") / "now.xml"
    reader = NvmlReader()
    reader.read()
    path.write_bytes(subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, check=True).stdout)
    yield reader.read(), from_xml(Path(path)), reader
    reader.close()


Both = tuple[list[Sample], list[Capture], NvmlReader]


def test_both_see_the_same_gpus(both: Both) -> None:
    samples, captures, _ = both
    seen = {s.labels["gpu_uuid"] for s in samples if s.name == "gpu_lost" and not s.value}
    assert seen == {capture.text("uuid") for capture in captures}


def test_every_number_agrees(both: Both) -> None:
    samples, captures, _ = both
    wrong = []
    for capture in captures:
        of_gpu = [s for s in samples if s.labels.get("gpu_uuid") == capture.text("uuid") and "pid" not in s.labels]
        for name, labels, quantity, factor in EXPECTED:
            found = [
                s.value
                for s in of_gpu
                if s.name == name and labels.items() <= s.labels.items() and "mig_instance" not in s.labels
            ]
            printed = capture.number(quantity)
            if name == "gpu_clock_limit_hz":
                found = [s.value for s in of_gpu if s.name == name and labels == {k: s.labels[k] for k in labels}]
            if printed is None:
                continue
            if not found or not agree(found[0], printed * factor, MOVES.get(name, 0.0), factor):
                wrong.append((capture.text("model"), name, labels, found, printed * factor))
    assert not wrong


def agree(found: float, printed: float, moves: float, step: float) -> bool:
    """Whether two numbers taken a moment apart agree: within a step of what is printed, or what may change."""
    return abs(found - printed) <= max(step * 1.01, moves * max(abs(found), abs(printed)), 0.01)


def test_a_read_is_within_its_budget_and_says_where_time_went(both: Both) -> None:
    _, _, reader = both
    timings = reader.timings_s()
    print({group: f"{seconds * 1000:.1f} ms" for group, seconds in timings.items()})  # noqa: T201 - for who runs it
    print(reader.absences())  # noqa: T201
    assert sum(timings.values()) < 8
