"""GPUs that are lost, hang, are taken out and put back; calls that are refused: the other numbers go on."""

import math
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest

from collector.gpu import fleet
from collector.gpu.library import Code
from collector.gpu.nvml import GROUPS, NvmlReader
from collector.prometheus.exposition import Sample
from collector.prometheus.targets import EVERYTHING, Absence
from store.errors import SourceError
from tests.collector.gpu.fake_nvml import Err, FakeGpu, FakeNvml
from tests.collector.gpu.recording import server_gpu

Start = Callable[..., tuple[NvmlReader, FakeNvml]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a reader over GPUs; closed at the end."""
    readers = []

    def started(*gpus: FakeGpu, budget_s: float = 5.0, **system: Any) -> tuple[NvmlReader, FakeNvml]:
        nvml = FakeNvml(*gpus, **system)
        readers.append(NvmlReader(nvml, budget_s))
        return readers[-1], nvml

    yield started
    for reader in readers:
        reader.close()


def lost(samples: list[Sample]) -> dict[str, float]:
    return {s.labels["gpu"]: s.value for s in samples if s.name == "gpu_lost"}


def names(samples: list[Sample], gpu: str = "0") -> set[str]:
    return {s.name for s in samples if s.labels["gpu"] == gpu}


@pytest.mark.parametrize("code", [Code.GPU_IS_LOST, Code.GPU_NOT_FOUND, Code.RESET_REQUIRED, Code.UNKNOWN])
def test_a_lost_gpu_keeps_its_identity_and_the_others_go_on(start: Start, code: Code) -> None:
    gpus = [server_gpu(0), server_gpu(1), server_gpu(2)]
    reader, _ = start(*gpus)
    reader.read()
    gpus[1].fails = code
    samples = reader.read()
    assert lost(samples) == {"0": 0, "1": 1, "2": 0}
    assert names(samples, "1") == {"gpu_lost", "gpu_last_xid", "gpu_xid_events_total"}
    gone = next(s for s in samples if s.name == "gpu_lost" and s.value)
    assert gone.labels["gpu_uuid"].startswith("GPU-00000001")
    assert gone.labels["pci_bus_id"] == "0000:1b:00.0"
    assert "gpu_power_watts" in names(samples, "2")
    (missing,) = [a for a in reader.absences() if a.what == EVERYTHING]
    assert missing.subject == "GPU 1"
    gpus[1].fails = None
    assert lost(reader.read()) == {"0": 0, "1": 0, "2": 0}


def test_one_unknown_error_is_one_value_not_available(start: Start) -> None:
    reader, _ = start(server_gpu(nvmlDeviceGetFanSpeed=Err(Code.UNKNOWN)))
    samples = reader.read()
    assert lost(samples) == {"0": 0}
    assert math.isnan(next(s.value for s in samples if s.name == "gpu_fan_ratio"))


def test_a_gpu_lost_before_the_first_read_is_known_by_its_place(start: Start) -> None:
    dead = server_gpu(0)
    dead.fails = Code.GPU_IS_LOST
    reader, _ = start(dead, server_gpu(1))
    samples = reader.read()
    assert lost(samples) == {"0": 1, "1": 0}
    assert next(s.labels for s in samples if s.name == "gpu_lost" and s.value) == {"gpu": "0"}


def test_a_gpu_taken_out_is_missed_under_its_name_and_welcome_back(start: Start) -> None:
    gpus = [server_gpu(0), server_gpu(1)]
    reader, nvml = start(*gpus)
    reader.read()
    nvml.gpus = gpus[1:]
    samples = reader.read()
    by_uuid = {s.labels["gpu_uuid"][:12]: (s.labels["gpu"], s.value) for s in samples if s.name == "gpu_lost"}
    assert by_uuid == {"GPU-00000000": ("0", 1), "GPU-00000001": ("0", 0)}
    nvml.gpus = gpus
    assert lost(reader.read()) == {"0": 0, "1": 0}
    assert nvml.started == 1


def test_while_a_gpu_is_missing_nvml_is_started_anew_now_and_then(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "LOOK_AGAIN", 3)
    gpus = [server_gpu(0), server_gpu(1)]
    reader, nvml = start(*gpus)
    reader.read()
    gpus[0].fails = Code.GPU_IS_LOST
    for _ in range(7):
        assert lost(reader.read()) == {"0": 1, "1": 0}
    assert 2 <= nvml.count("nvmlInit") <= 4


def test_what_a_device_does_not_support_is_asked_once_and_can_be_told(start: Start) -> None:
    reader, nvml = start(server_gpu())
    for _ in range(3):
        assert "gpu_fan_ratio" not in names(reader.read())
    assert nvml.count("nvmlDeviceGetFanSpeed") == 1
    assert nvml.count("nvmlDeviceGetPowerUsage") == 3
    assert Absence("GPU 0", "gpu_fan_ratio", "not supported by this device") in reader.absences()


def test_no_permission_and_an_old_driver_are_told_apart(start: Start) -> None:
    reader, nvml = start(server_gpu(nvmlDeviceGetTotalEnergyConsumption=Err(Code.NO_PERMISSION)))
    nvml.unknown_functions = {"nvmlDeviceGetMarginTemperature"}
    samples = reader.read()
    reasons = {a.what: a.reason for a in reader.absences()}
    assert "gpu_energy_joules_total" not in names(samples)
    assert reasons["gpu_energy_joules_total"].startswith("no permission")
    assert "too old" in reasons["gpu_temperature_margin_celsius"]


def test_an_old_driver_is_asked_by_the_old_calls(start: Start) -> None:
    gpu = server_gpu(
        nvmlDeviceGetCurrentClocksThrottleReasons=0x1,
        nvmlDeviceGetMemoryInfo=server_gpu().answers["nvmlDeviceGetMemoryInfo", 0x02000028],
    )
    gpu.answers["nvmlDeviceGetTemperature", 0] = 55
    del gpu.answers["nvmlDeviceGetMemoryInfo", 0x02000028]
    reader, nvml = start(gpu)
    nvml.unknown_functions = {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTemperatureV"}
    samples = reader.read()
    assert next(s.value for s in samples if s.name == "gpu_throttle_reasons_bitmask") == 1
    assert next(s.value for s in samples if s.labels.get("sensor") == "gpu") == 55
    assert {s.labels["state"] for s in samples if s.name == "gpu_memory_bytes"} == {"used", "free", "total"}


def test_a_call_that_hangs_costs_its_own_gpu_only_and_no_second_thread(start: Start) -> None:
    release = Event()
    hangs = server_gpu(0, nvmlDeviceGetPowerUsage=lambda: release.wait(30) and 1)
    reader, nvml = start(hangs, server_gpu(1), budget_s=0.3)
    for _ in range(3):
        assert lost(reader.read()) == {"0": 1, "1": 0}
    assert "nvmlDeviceGetPowerUsage has not answered" in reader.absences()[0].reason
    assert sum(name == "nvmlDeviceGetPowerUsage" and args[0] is hangs for name, args in nvml.calls) == 1
    hangs.answers["nvmlDeviceGetPowerUsage"] = 500_000
    release.set()
    while lost(reader.read())["0"]:
        pass


def test_a_driver_that_hangs_is_an_error_that_says_so(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    release = Event()
    reader, nvml = start(server_gpu(), budget_s=0.2)
    reader.read()
    monkeypatch.setattr(nvml, "_nvmlDeviceGetCount", lambda: release.wait(30) and 1)
    for _ in range(2):
        with pytest.raises(SourceError, match="NVML has not answered for") as error:
            reader.read()
        assert "dmesg" in error.value.hint
    release.set()


@pytest.mark.parametrize(
    ("code", "fact", "hint"),
    [
        (Code.LIBRARY_NOT_FOUND, "libnvidia-ml.so.1 is not here", "NVIDIA_DRIVER_CAPABILITIES"),
        (Code.DRIVER_NOT_LOADED, "not loaded", "modprobe"),
        (Code.LIB_RM_VERSION_MISMATCH, "different versions", "reboot"),
        (Code.UNKNOWN, "unknown error", "restart it"),
        (77, "77", "nvidia-smi"),
    ],
)
def test_nvml_that_does_not_start_says_why_and_what_to_do(start: Start, code: int, fact: str, hint: str) -> None:
    reader, nvml = start(server_gpu())
    nvml.fails = code
    with pytest.raises(SourceError, match=fact) as error:
        reader.read()
    assert hint in error.value.hint
    nvml.fails = None
    assert lost(reader.read()) == {"0": 0}


@pytest.mark.parametrize("code", [Code.UNINITIALIZED, Code.DRIVER_NOT_LOADED])
def test_a_driver_unloaded_between_two_reads_is_an_error_and_comes_back(start: Start, code: Code) -> None:
    gpu = server_gpu()
    reader, _ = start(gpu)
    reader.read()
    gpu.answers["nvmlDeviceGetPowerUsage"] = Err(code)
    with pytest.raises(SourceError):
        reader.read()
    gpu.answers["nvmlDeviceGetPowerUsage"] = 1000
    assert "gpu_power_watts" in names(reader.read())


def test_a_machine_without_gpus_is_an_error(start: Start) -> None:
    with pytest.raises(SourceError, match="NVML sees no GPU"):
        start()[0].read()


def test_a_gpu_that_may_not_be_used_is_told_and_is_not_lost(start: Start) -> None:
    mine, other = server_gpu(0), server_gpu(1)
    other.fails = Code.NO_PERMISSION
    reader, _ = start(mine, other)
    assert lost(reader.read()) == {"0": 0}
    assert [a.subject for a in reader.absences() if a.what == EVERYTHING] == ["GPU 1"]


def test_a_closed_reader_reads_no_more_and_closing_twice_is_fine(start: Start) -> None:
    reader, nvml = start(server_gpu())
    reader.read()
    reader.close()
    reader.close()
    assert nvml.started == 0
    with pytest.raises(SourceError, match="closed"):
        reader.read()


def test_sentinels_and_impossible_numbers_are_not_available(start: Start) -> None:
    from types import SimpleNamespace

    reader, _ = start(
        server_gpu(
            nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=4294967295, memory=152311),
            nvmlDeviceGetTotalEnergyConsumption=2**64 - 1,
            nvmlDeviceGetPerformanceState=32,
        )
    )
    samples = reader.read()
    for name in ("gpu_utilization_ratio", "gpu_energy_joules_total", "gpu_performance_state"):
        found = [s.value for s in samples if s.name == name]
        assert found
        assert all(map(math.isnan, found))


def test_the_time_of_every_group_is_known(start: Start) -> None:
    reader, _ = start(server_gpu())
    assert set(reader.timings_s().values()) == {0.0}
    reader.read()
    assert set(reader.timings_s()) == set(GROUPS)
    assert all(reader.timings_s().values())


def test_facts_are_asked_once(start: Start) -> None:
    reader, nvml = start(server_gpu(0), server_gpu(1))
    for _ in range(3):
        assert {"gpu_info", "gpu_affinity_info", "gpu_peer_link_info"} <= names(reader.read())
    assert nvml.count("nvmlDeviceGetSerial") == 2
    assert nvml.count("nvmlDeviceGetTopologyCommonAncestor") == 2
