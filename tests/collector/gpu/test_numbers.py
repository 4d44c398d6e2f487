"""Units, labels and names: what a hand-written recording must give."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

import collector.presets
from collector.gpu import faults, load, pcie, power
from collector.gpu.ask import Ask
from collector.gpu.nvml import NvmlReader
from collector.gpu.rocm import rocm_samples
from collector.prometheus.exposition import Sample
from tests.collector.gpu.captures import sections
from tests.collector.gpu.fake_nvml import FakeNvml
from tests.collector.gpu.recording import server_gpu

TABLES = (*load.UTILIZATION, *load.MEMORY, *power.POWER, *power.HEAT, *power.CLOCKS, *power.THROTTLED)
ASKED = (*TABLES, *pcie.LINK, *pcie.TRAFFIC, *faults.FAULTS)
SOURCE = Path(load.__file__).parent


@pytest.fixture
def samples() -> Iterator[list[Sample]]:
    reader = NvmlReader(FakeNvml(*(server_gpu(index) for index in range(2))))
    yield reader.read()
    reader.close()


def first(samples: list[Sample], name: str, **labels: str) -> float:
    [value] = [
        s.value for s in samples if s.name == name and s.labels["gpu"] == "0" and labels.items() <= s.labels.items()
    ]
    return value


def test_numbers_are_in_base_units(samples: list[Sample]) -> None:
    assert first(samples, "gpu_power_watts") == pytest.approx(612.345)
    assert first(samples, "gpu_power_instant_watts") == pytest.approx(600)
    assert first(samples, "gpu_energy_joules_total") == pytest.approx(7_200_000.5)
    assert first(samples, "gpu_utilization_ratio", engine="graphics") == pytest.approx(0.87)
    assert first(samples, "gpu_memory_bytes", state="reserved") == 500 * 1048576
    assert first(samples, "gpu_clock_hz", domain="sm") == 1_755_000_000
    assert first(samples, "gpu_throttle_reasons_bitmask") == 68
    assert first(samples, "gpu_throttle_seconds_total", reason="thermal") == pytest.approx(1)
    assert first(samples, "gpu_throttle_seconds_total", reason="reliability") == pytest.approx(5)
    assert first(samples, "gpu_temperature_celsius", sensor="memory") == 70
    assert first(samples, "gpu_retired_pages_total", kind="corrected") == 2
    assert first(samples, "gpu_ecc_errors_total", kind="corrected") == 3


def test_a_gpu_says_what_it_is_and_where_it_sits(samples: list[Sample]) -> None:
    info = next(s.labels for s in samples if s.name == "gpu_info")
    assert info["driver_version"] == "590.48.01"
    assert info["cuda_version"] == "13.1"
    assert info["architecture"] == "Hopper"
    assert info["compute_capability"] == "9.0"
    assert info["vbios"] == "96.00.00.00.01"
    place = next(s.labels for s in samples if s.name == "gpu_affinity_info")
    assert (place["cpus"], place["numa_node"]) == ("0-51,64-71", "0")
    modes = next(s.labels for s in samples if s.name == "gpu_mode_info")
    assert {k: modes[k] for k in ("mig", "ecc", "persistence", "compute")} == {
        "mig": "disabled", "ecc": "enabled", "persistence": "enabled", "compute": "exclusive_process",
    }  # fmt: skip


def test_every_series_is_once_on_a_page(samples: list[Sample]) -> None:
    seen = [(s.name, tuple(sorted(s.labels.items()))) for s in samples]
    assert len(seen) == len(set(seen))


def test_every_name_is_canonical_and_counters_alone_end_in_total(samples: list[Sample], shared: Path) -> None:
    canonical = tomllib.loads((Path(collector.presets.__file__).parent / "canonical.toml").read_text())
    rocm = rocm_samples((shared / "data" / "rocm_smi_json" / "telegraf_mi100_rocm571.json").read_text())
    named = {part.metric for ask in ASKED for part in ask.parts} | {s.name for s in (*samples, *rocm)}
    written = {name for file in SOURCE.glob("*.py") for name in re.findall(r'"(gpu_\w+)"', file.read_text())} - {
        "gpu_uuid",
        "gpu_model",
        "gpu_instance_id",
        "gpu_data",
    }
    for name in named | written:
        assert name in canonical, name
        assert name.endswith("_total") == (canonical[name]["semantic"] == "cumulative"), name


def calls(ask: Ask | None) -> Iterator[str]:
    while ask is not None:
        yield ask.call
        ask = ask.instead


def asked_functions() -> set[str]:
    written = {
        n
        for file in SOURCE.glob("*.py")
        for n in re.findall(r'"(nvml[A-Z]\w+)"|\.(nvml[A-Z]\w+)\(', file.read_text())
        for n in n
        if n
    }
    return written | {call for ask in ASKED for call in calls(ask)}


def test_every_function_that_is_asked_for_is_in_nvidia_ml_py() -> None:
    assert not {name for name in asked_functions() if not hasattr(pynvml, name)}


def test_every_function_that_is_asked_for_is_in_a_real_driver(shared: Path) -> None:
    path = shared / "data" / "nvidia_smi_captures" / "linux-x86_64__nvidia-h100-mig__590.48.01.txt.gz"
    exported = sections(path)["capabilities :: nvml-symbols"].split()
    plain = {re.sub(r"_v\d$", "", name) for name in exported}
    assert len(exported) > 300
    assert not {name for name in asked_functions() if re.sub(r"_v\d$", "", name) not in plain} - {"nvmlInit"}


def test_field_ids_are_those_of_nvidia_ml_py() -> None:
    ids = {
        "NVML_FI_DEV_MEMORY_TEMP": 82,
        "NVML_FI_DEV_POWER_AVERAGE": 185,
        "NVML_FI_DEV_POWER_INSTANT": 186,
        "NVML_FI_DEV_PERF_POLICY_POWER": 74,
        "NVML_FI_DEV_PERF_POLICY_RELIABILITY": 79,
        "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN": 270,
        "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN": 271,
        "NVML_FI_DEV_NVLINK_LINK_COUNT": 91,
        "NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON": 90,
        "NVML_FI_DEV_NVLINK_GET_SPEED": 164,
        "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX": 138,
        "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX": 139,
        "NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES": 202,
        "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES": 204,
        "NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY": 161,
        "NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY": 162,
        "NVML_FI_DEV_NVLINK_ERROR_DL_CRC": 163,
        "NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER": 169,
        "NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS": 173,
        "NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED": 174,
        "NVML_FI_DEV_PCIE_COUNT_NAKS_SENT": 177,
        "NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR": 179,
        "NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR": 180,
    }
    assert {name: getattr(pynvml, name) for name in ids} == ids
    source = "".join(file.read_text() for file in SOURCE.glob("*.py"))
    assert all(re.search(rf"\b{id_}\b", source) for name, id_ in ids.items() if not name.endswith("RELIABILITY"))
