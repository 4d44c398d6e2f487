"""A real shared library: pynvml's own loading, structs, versions and strings, with a small NVML written in C."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fake_nvml.c")
READ = """
import json, time
from collector.gpu.nvml import NvmlReader
reader = NvmlReader()
reader.read()
time.sleep(0.2)
samples = [(s.name, dict(s.labels), s.value) for s in reader.read()]
absent = [[a.subject, a.what, a.reason] for a in reader.absences()]
reader.close()
print(json.dumps([samples, absent]))
"""
FAIL = """
from collector.gpu.nvml import NvmlReader
from store.errors import SourceError
try:
    NvmlReader().read()
except SourceError as error:
    print(f"{error}|{error.hint}")
"""


def run(script: str, folder: Path) -> str:
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[str, dict[str, str], float]], list[list[str]]]:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux: no gcc here")
    folder = tmp_path_factory.mktemp("nvml")
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Werror",
        "-o",
        str(folder / "libnvidia-ml.so.1"),
        str(SOURCE),
    ]
    subprocess.run(command, check=True, timeout=60)
    samples, absent = json.loads(run(READ, folder))
    return samples, absent


def value(page: tuple[list[tuple[str, dict[str, str], float]], list[list[str]]], name: str, **labels: str) -> float:
    [found] = [v for n, of, v in page[0] if n == name and labels.items() <= of.items()]
    return found


Page = tuple[list[tuple[str, dict[str, str], float]], list[list[str]]]


def test_structs_and_their_versions_are_read_as_nvml_lays_them_out(page: Page) -> None:
    assert value(page, "gpu_memory_bytes", gpu="0", state="used") == 60 * 2**30
    assert value(page, "gpu_memory_bytes", gpu="0", state="reserved") == 2**29
    assert value(page, "gpu_temperature_celsius", gpu="0", sensor="gpu") == 66
    assert value(page, "gpu_temperature_celsius", gpu="0", sensor="memory") == 71
    assert value(page, "gpu_temperature_margin_celsius", gpu="0") == -3
    assert value(page, "gpu_throttle_seconds_total", gpu="0", reason="thermal") == 2.5
    assert value(page, "gpu_energy_joules_total", gpu="0") == pytest.approx(5_000_000_000.123)
    assert value(page, "gpu_power_watts", gpu="0") == 312.5
    assert value(page, "gpu_power_instant_watts", gpu="0") == 300.25
    assert value(page, "gpu_fabric_state", gpu="0") == 3


def test_strings_are_read_whatever_bytes_they_hold(page: Page) -> None:
    [info] = [labels for name, labels, _ in page[0] if name == "gpu_info" and labels["gpu"] == "0"]
    assert info["driver_version"] == "590.48.01"
    assert info["gpu_uuid"] == "GPU-0"
    assert info["pci_bus_id"] == "0000:9b:00.0"
    assert value(page, "gpu_process_memory_bytes", pid="42", process="café") == 2**30
    assert value(page, "gpu_process_memory_bytes", pid="43", process="") != 0
    assert value(page, "gpu_affinity_info", gpu="0", cpus="64-67") == 1


def test_links_are_read_by_scope_and_join_the_two_gpus(page: Page) -> None:
    assert value(page, "gpu_link_bytes_total", gpu="0", link="1", direction="tx") == 20 * 1024
    assert value(page, "gpu_link_up", gpu="0", link="0", peer_type="gpu", peer_pci_bus_id="0000:9c:00.0") == 1
    assert value(page, "gpu_peer_link_info", gpu="0", peer="1", link="NV2") == 1


def test_a_gpu_that_falls_off_the_bus_leaves_the_other_and_its_xid(page: Page) -> None:
    assert value(page, "gpu_lost", gpu="0") == 0
    assert value(page, "gpu_lost", gpu="1", gpu_uuid="GPU-1", pci_bus_id="0000:9c:00.0") == 1
    assert value(page, "gpu_xid_events_total", gpu="1", xid="79") == 3
    assert value(page, "gpu_last_xid", gpu="1") == 79
    assert value(page, "gpu_last_xid", gpu="0") == 0


def test_a_function_that_the_library_lacks_is_absent_with_a_reason(page: Page) -> None:
    reasons = {(gpu, metric): reason for gpu, metric, reason in page[1]}
    assert "too old" in reasons["GPU 0", "gpu_fan_ratio"]
    assert not [name for name, _, _ in page[0] if name == "gpu_fan_ratio"]


def test_without_the_library_the_error_says_what_to_install(tmp_path: Path) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has the NVIDIA driver")
    assert run(FAIL, tmp_path).startswith("NVML: libnvidia-ml.so.1 is not here|install the NVIDIA driver")
