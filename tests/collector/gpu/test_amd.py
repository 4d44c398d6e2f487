"""amd-smi: its JSON of ROCm 6 and 7, and running it: missing, failing, slow."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from collector.gpu import amd
from collector.gpu.amd import AmdReader
from collector.gpu.amdsmi import amd_smi_samples
from collector.prometheus.exposition import Sample
from store.errors import SourceError


def unit(value: float, name: str) -> dict[str, Any]:
    return {"value": value, "unit": name}


METRIC = {
    "gpu": 0,
    "usage": {
        "gfx_activity": unit(91, "%"),
        "umc_activity": unit(66, "%"),
        "mm_activity": "N/A",
        "vcn_activity": ["N/A"],
    },
    "power": {"socket_power": unit(742, "W"), "gfx_voltage": "N/A", "throttle_status": "THROTTLED"},
    "clock": {
        "gfx_0": {"clk": unit(2100, "MHz"), "min_clk": unit(500, "MHz"), "max_clk": unit(2100, "MHz")},
        "gfx_1": {"clk": unit(1900, "MHz"), "min_clk": unit(500, "MHz"), "max_clk": unit(2100, "MHz")},
        "gfx_2": {"clk": "N/A", "min_clk": "N/A", "max_clk": "N/A"},
        "mem_0": {"clk": unit(1300, "MHz"), "min_clk": "N/A", "max_clk": unit(0, "MHz")},
    },
    "temperature": {"edge": "N/A", "hotspot": unit(78, "C"), "mem": unit(64, "C")},
    "pcie": {
        "width": 16,
        "speed": unit(32, "GT/s"),
        "bandwidth": unit(800, "Mb/s"),
        "replay_count": 2,
        "l0_to_recovery_count": 1,
        "nak_sent_count": "N/A",
    },
    "ecc": {"total_correctable_count": 5, "total_uncorrectable_count": 0, "total_deferred_count": 0},
    "fan": {"usage": "N/A"},
    "energy": {"total_energy_consumption": unit(123456.5, "J")},
    "mem_usage": {"total_vram": unit(196592, "MB"), "used_vram": unit(1000, "MB"), "free_vram": unit(195592, "MB")},
    "throttle": {"ppt_violation_activity": unit(12, "%"), "prochot_violation_activity": "N/A"},
}
STATIC = {
    "gpu": 0,
    "asic": {"market_name": "AMD Instinct Example", "asic_serial": "0x00AB12CD"},
    "bus": {"bdf": "0000:0C:00.0", "max_pcie_width": 16, "max_pcie_speed": unit(32, "GT/s")},
    "vbios": {"version": "022.040.003"},
    "limit": {
        "max_power": unit(750, "W"),
        "min_power": unit(0, "W"),
        "socket_power": unit(700, "W"),
        "slowdown_hotspot_temperature": unit(100, "C"),
        "shutdown_hotspot_temperature": "N/A",
    },
    "driver": {"name": "amdgpu", "version": "6.12.12"},
    "numa": {"node": 1, "affinity": 1},
}


def figures(samples: list[Sample]) -> dict[tuple[str, ...], float]:
    own = {"gpu", "gpu_uuid", "gpu_model", "pci_bus_id"}
    return {(s.name, *(v for k, v in s.labels.items() if k not in own)): s.value for s in samples}


@pytest.mark.parametrize("wrapped", [False, True])
def test_figures_are_in_base_units_in_the_form_of_rocm_6_and_7(wrapped: bool) -> None:
    metric, static = ({"gpu_data": [entry]} if wrapped else [entry] for entry in (METRIC, STATIC))
    samples = amd_smi_samples(json.dumps(metric), json.dumps(static))
    assert figures(samples) | {
        ("gpu_utilization_ratio", "graphics"): pytest.approx(0.91),
        ("gpu_utilization_ratio", "memory_copy"): pytest.approx(0.66),
        ("gpu_power_watts",): 742,
        ("gpu_power_limit_watts", "max"): 750,
        ("gpu_power_limit_watts", "enforced"): 700,
        ("gpu_clock_hz", "graphics"): 2000e6,
        ("gpu_clock_hz", "memory"): 1300e6,
        ("gpu_clock_limit_hz", "graphics", "max"): 2100e6,
        ("gpu_temperature_celsius", "hotspot"): 78,
        ("gpu_temperature_limit_celsius", "slowdown"): 100,
        ("gpu_memory_bytes", "total"): 196592 * 1048576,
        ("gpu_energy_joules_total",): 123456.5,
        ("gpu_pcie_bytes_per_second", "both"): 100e6,
        ("gpu_pcie_replay_total",): 2,
        ("gpu_pcie_errors_total", "recovery"): 1,
        ("gpu_ecc_errors_total", "corrected"): 5,
        ("gpu_throttle_ratio", "power"): pytest.approx(0.12),
        ("gpu_affinity_info", "", "1"): 1,
    } == figures(samples)
    labels = samples[0].labels
    assert (labels["gpu_uuid"], labels["pci_bus_id"]) == ("0xab12cd", "0000:0c:00.0")
    assert (labels["gpu_model"], labels["driver_version"]) == ("AMD Instinct Example", "6.12.12")


def test_what_is_not_available_is_absent_and_a_limit_of_zero_is_none() -> None:
    found = figures(amd_smi_samples(json.dumps([METRIC]), json.dumps([STATIC])))
    for absent in (
        ("gpu_temperature_celsius", "edge"),
        ("gpu_fan_ratio",),
        ("gpu_pcie_errors_total", "nack_sent"),
        ("gpu_clock_limit_hz", "memory", "max"),
        ("gpu_throttle_ratio", "hw_thermal"),
    ):
        assert absent not in found


def test_without_the_static_part_numbers_are_kept_under_their_index() -> None:
    samples = amd_smi_samples(json.dumps([METRIC, {"gpu": 1, "power": {"socket_power": "141 W"}}]))
    assert [(s.labels["gpu"], s.value) for s in samples if s.name == "gpu_power_watts"] == [("0", 742), ("1", 141)]


@pytest.mark.parametrize("text", ["", "AMDSMI_STATUS_NO_DRV", "[{]", "[]", "{}"])
def test_what_is_no_output_of_amd_smi_is_an_error(text: str) -> None:
    with pytest.raises(SourceError, match="amd-smi"):
        amd_smi_samples(text)


def tool(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho run >> {folder}/runs\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def amd_smi(folder: Path) -> str:
    (folder / "metric").write_text(json.dumps([METRIC]))
    (folder / "static").write_text(json.dumps([STATIC]))
    return tool(folder, "amd-smi", f'cat "{folder}/$1"')


def test_the_static_part_is_asked_for_once(tmp_path: Path) -> None:
    reader = AmdReader(amd_smi(tmp_path))
    for _ in range(3):
        assert ("gpu_power_watts",) in figures(reader.read())
    reader.close()
    assert (tmp_path / "runs").read_text().count("run") == 4


def test_rocm_smi_is_used_where_amd_smi_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(amd, "_PLACE", str(tmp_path))
    tool(tmp_path, "rocm-smi", """echo 'WARNING: x'; echo '{"card0": {"GPU use (%)": "97"}}'""")
    assert figures(AmdReader().read())["gpu_utilization_ratio", "graphics"] == pytest.approx(0.97)
    amd_smi(tmp_path)
    assert ("gpu_power_watts",) in figures(AmdReader().read())


def test_no_tool_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(amd, "_PLACE", str(tmp_path))
    with pytest.raises(SourceError, match="none of amd-smi, rocm-smi") as error:
        AmdReader().read()
    assert "device-metrics-exporter" in error.value.hint


def test_a_tool_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="failed: no amdgpu driver"):
        AmdReader(tool(tmp_path, "amd-smi", "echo no amdgpu driver >&2; exit 255")).read()
    with pytest.raises(SourceError, match="No such file"):
        AmdReader(str(tmp_path / "missing")).read()


def test_a_tool_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"took longer than 0\.2 s"):
        AmdReader(tool(tmp_path, "amd-smi", "exec sleep 30"), timeout_s=0.2).read()
