"""OpenTelemetry hardware metrics of GPUs: dotted names, tasks and directions in attributes, the older names."""

import pytest

from collector.presets.catalog import meaning
from tests.collector.presets.read_page import read

GPU = '"hw.id"="GPU-a1","hw.name"="NVIDIA A100","hw.type"="gpu","gpu.index"="0","gpu.pci_address"="0000:01:00.0"'


@pytest.mark.parametrize(
    ("name", "labels", "canonical", "value"),
    [
        ("hw.gpu.utilization", '"hw.gpu.task"="general"', "gpu_utilization_ratio", 0.5),
        ("hw.gpu.memory.usage", "", "gpu_memory_bytes", 0.5),
        ("hw.power", "", "gpu_power_watts", 0.5),
        ("hw.gpu.power.draw", "", "gpu_power_watts", 0.5),
        ("hw.energy", "", "gpu_energy_joules_total", 0.5),
        ("hw.temperature", '"hw.sensor_location"="die"', "gpu_temperature_celsius", 0.5),
        ("hw.gpu.temperature", 'sensor="memory"', "gpu_temperature_celsius", 0.5),
        ("hw.gpu.speed", '"hw.gpu.clock_domain"="sm"', "gpu_clock_hz", 0.5),
        ("hw.gpu.clock.graphics", "", "gpu_clock_hz", 0.5e6),
        ("hw.gpu.io", '"network.io.direction"="transmit"', "gpu_pcie_bytes_total", 0.5),
        ("hw.gpu.pcie.throughput", '"network.io.direction"="receive"', "gpu_pcie_bytes_per_second", 0.5),
        ("hw.errors", '"error.type"="uncorrected"', "gpu_ecc_errors_total", 0.5),
        ("hw.errors", '"error.type"="pcie_replay"', "gpu_pcie_replay_total", 0.5),
        ("hw.errors", '"error.type"="xid"', "gpu_xid_events_total", 0.5),
    ],
)
def test_a_hardware_metric_is_canonical(name: str, labels: str, canonical: str, value: float) -> None:
    page = read(f'{{"{name}",{GPU}{"," + labels if labels else ""}}} 0.5\n')
    (row,) = page.of(canonical, gpu_uuid="GPU-a1", gpu="0", gpu_model="NVIDIA A100", pci_bus_id="0000:01:00.0")
    assert row.value == value


def test_a_page_in_between_may_have_folded_the_names() -> None:
    found = meaning("hw_gpu_utilization", {"hw_type": "gpu", "hw_gpu_task": "decoder"})
    assert found is not None
    assert (found.canonical, found.labels) == ("gpu_utilization_ratio", {"engine": "decoder"})


def test_the_power_of_something_that_is_no_gpu_is_not_a_gpus() -> None:
    assert meaning("hw.power", {"hw.type": "power_supply"}) is None


def test_an_error_that_is_none_of_a_gpus_stays_raw() -> None:
    assert meaning("hw.errors", {"hw.type": "gpu", "error.type": "thermal"}) is None
