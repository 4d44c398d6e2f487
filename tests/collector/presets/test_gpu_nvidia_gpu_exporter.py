"""nvidia_gpu_exporter: captures of an H200, an H100 in MIG mode and an L40S, idle and under load."""

import re
from pathlib import Path

import pytest

from tests.collector.presets.read_page import Page, read

H200 = "nvidia-h200__590.48.01"
MIG = "nvidia-h100-mig__590.48.01"
L40S = "nvidia-l40s__595.80"


def page(shared: Path, machine: str, state: str) -> Page:
    return read(
        (shared / f"data/gpu_metrics_text/nvidia_gpu_exporter_linux-x86_64__{machine}__{state}.prom").read_text()
    )


@pytest.mark.parametrize(
    ("machine", "state", "power_w", "temperature_c", "used_bytes", "total_bytes", "limit_w"),
    [
        (H200, "load", 627.4, 52, 33934016512, 150754820096, 700),
        (MIG, "load", 433.78, 53, 11665408000, 85520809984, 700),
        (L40S, "load", 110.23, 54, 1294991360, 48305799168, 350),
    ],
)
def test_a_capture_under_load_has_the_right_values(
    shared: Path,
    machine: str,
    state: str,
    power_w: float,
    temperature_c: float,
    used_bytes: float,
    total_bytes: float,
    limit_w: float,
) -> None:
    found = page(shared, machine, state)
    assert found.value("gpu_power_watts") == power_w
    assert found.value("gpu_temperature_celsius", sensor="gpu") == temperature_c
    assert found.value("gpu_memory_bytes", state="used") == used_bytes
    assert found.value("gpu_memory_bytes", state="total") == total_bytes
    assert found.value("gpu_power_limit_watts", limit="enforced") == limit_w
    assert found.value("gpu_throttle_reasons_bitmask") == 0
    assert found.drops == {}


@pytest.mark.parametrize("machine", [H200, MIG, L40S])
def test_an_idle_gpu_runs_no_process(shared: Path, machine: str) -> None:
    idle, load = page(shared, machine, "idle"), page(shared, machine, "load")
    assert idle.value("gpu_processes") == 0
    assert (load.value("gpu_processes") or 0) > 0


@pytest.mark.parametrize("machine", [H200, MIG])
def test_an_idle_gpu_says_so_in_its_mask(shared: Path, machine: str) -> None:
    assert page(shared, machine, "idle").value("gpu_throttle_reasons_bitmask") == 1


def test_the_h200_is_busy_under_load(shared: Path) -> None:
    found = page(shared, H200, "load")
    assert found.value("gpu_utilization_ratio", engine="graphics") == 1
    assert found.value("gpu_utilization_ratio", engine="memory_copy") == 0.07
    assert found.value("gpu_clock_hz", domain="sm") == 1.98e9
    assert found.value("gpu_pcie_link_generation", kind="current") == 5
    assert found.value("gpu_pcie_link_width", kind="current") == 16
    assert found.value("gpu_fabric_state") == 3
    assert found.value("gpu_ecc_errors_total", kind="uncorrected") == 0
    assert found.value("gpu_row_remap_pending") == 0


def test_processes_have_their_memory(shared: Path) -> None:
    rows = page(shared, H200, "load").of("gpu_process_memory_bytes")
    assert {(r.labels["pid"], r.labels["process"], r.value) for r in rows} == {
        ("10291", "/root/tools/memhog", 2690646016),
        ("10293", "/root/tools/memhog", 1616904192),
        ("10309", "./gpu_burn", 29605494784),
    }


def test_a_gpu_in_mig_mode_has_no_utilisation_rather_than_0(shared: Path) -> None:
    assert page(shared, MIG, "load").of("gpu_utilization_ratio") == []


def test_the_encoder_of_the_l40s_is_busy(shared: Path) -> None:
    found = page(shared, L40S, "load")
    assert found.value("gpu_utilization_ratio", engine="encoder") == 0.6
    assert found.value("gpu_throttle_seconds_total", reason="sw_power_cap") == pytest.approx(204.642816)


def test_the_gpu_is_described(shared: Path) -> None:
    (row,) = page(shared, H200, "idle").of("gpu_info")
    assert (row.labels["name"], row.labels["gpu"], row.labels["driver_version"]) == ("NVIDIA H200", "0", "590.48.01")


def test_of_the_three_powers_one_is_canonical(shared: Path) -> None:
    (row,) = page(shared, H200, "load").of("gpu_power_watts")
    assert row.name == "nvidia_smi_power_draw_watts"
    assert {"nvidia_smi_power_draw_average_watts", "nvidia_smi_power_draw_instant_watts"} <= page(
        shared, H200, "load"
    ).raw()


@pytest.mark.parametrize("machine", [H200, MIG, L40S])
def test_the_bus_id_has_the_spelling_that_all_sources_have(shared: Path, machine: str) -> None:
    (row,) = page(shared, machine, "idle").of("gpu_info")
    assert re.fullmatch(r"0000:[0-9a-f]{2}:[0-9a-f]{2}\.0", row.labels["pci_bus_id"])
