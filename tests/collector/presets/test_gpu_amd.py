"""AMD device-metrics-exporter: units, prefix, the order of the power metrics, partitions."""

from pathlib import Path

import pytest

from collector.presets.catalog import lookup
from tests.collector.presets.read_page import read

MI300X = 'gpu_id="3",serial_number="S3",card_model="0x74a1",hostname="n7",gpu_partition_id="0"'


def line(name: str, value: float | str, labels: str = MI300X) -> str:
    return f"# TYPE {name} gauge\n{name}{{{labels}}} {value}\n"


def test_the_small_capture_reads_in_base_units(shared: Path) -> None:
    page = read((shared / "data/gpu_metrics_text/amd_device-metrics-exporter_mini.prom").read_text())
    (power,) = page.of("gpu_power_watts")
    assert (power.name, power.value) == ("gpu_average_package_power", 41)
    assert power.labels["gpu_uuid"] == "6699c0a8-4200-4242-037f-f97e6cae0f09"
    assert page.value("gpu_memory_bytes", state="total") == pytest.approx(64 * 2**30, rel=1e-3)
    assert page.value("gpu_utilization_ratio", engine="graphics") == 0
    assert page.raw() == {"gpu_nodes_total", "gpu_power_usage"}


@pytest.mark.parametrize("prefix", ["", "amd_"])
def test_values_are_in_base_units_with_and_without_the_prefix(prefix: str) -> None:
    page = read(
        line(prefix + "gpu_energy_consumed", "7.5e12")
        + line(prefix + "gpu_used_vram", 98304)
        + line(prefix + "gpu_gfx_activity", 37)
        + line(prefix + "pcie_bandwidth", 64000)
        + line(prefix + "pcie_speed", 32)
        + line(prefix + "gpu_xgmi_link_tx", 2776148, MI300X + ',link_index="1"')
        + line(prefix + "gpu_clock", 2100, MI300X + ',clock_type="system",clock_index="0"')
        + line(prefix + "gpu_clock", 1300, MI300X + ',clock_type="memory",clock_index="8"')
        + line(prefix + "gpu_ecc_uncorrect_total", 2)
        + line(prefix + "gpu_violation_ppt_residency_percentage", 12)
        + line(prefix + "gpu_junction_temperature", 61)
        + line(prefix + "gpu_prof_tensor_active_percent", 55)
    )
    ids = {"gpu": "3", "gpu_uuid": "S3", "gpu_model": "0x74a1", "host": "n7"}
    assert page.value("gpu_energy_joules_total", **ids) == pytest.approx(7.5e6)
    assert page.value("gpu_memory_bytes", state="used", **ids) == 96 * 2**30
    assert page.value("gpu_utilization_ratio", engine="graphics", **ids) == pytest.approx(0.37)
    assert page.value("gpu_pcie_bytes_per_second", direction="both", **ids) == 8e9
    assert page.value("gpu_pcie_link_gt_per_second", kind="current", **ids) == 32
    assert page.value("gpu_link_bytes_total", kind="xgmi", direction="tx", link="1", **ids) == 2776148e3
    assert page.value("gpu_clock_hz", domain="sm", **ids) == 2.1e9
    assert page.value("gpu_clock_hz", domain="memory", **ids) == 1.3e9
    assert page.value("gpu_ecc_errors_total", kind="uncorrected", **ids) == 2
    assert page.value("gpu_throttle_ratio", reason="power", **ids) == pytest.approx(0.12)
    assert page.value("gpu_temperature_celsius", sensor="hotspot", **ids) == 61
    assert page.value("gpu_tensor_active_ratio", **ids) == pytest.approx(0.55)
    assert page.raw() == set()


def test_what_accumulates_is_cumulative_though_declared_a_gauge() -> None:
    names = ("gpu_energy_consumed", "gpu_ecc_correct_total", "pcie_replay_count", "gpu_xgmi_link_rx")
    assert {lookup(name)[0].semantic for name in names} == {"cumulative"}


def test_the_first_power_metric_that_a_page_has_is_the_power() -> None:
    older = line("gpu_average_package_power", 300) + line("gpu_power_usage", 290)
    assert read(line("gpu_power_usage", 290)).value("gpu_power_watts") == 290
    assert read(older).value("gpu_power_watts") == 300
    assert read(older + line("gpu_package_power", 310)).value("gpu_power_watts") == 310


def test_only_partition_0_counts() -> None:
    parts = [MI300X.replace('partition_id="0"', f'partition_id="{n}"') for n in range(8)]
    page = read("".join(line("gpu_package_power", 700 if n == 0 else 0, labels) for n, labels in enumerate(parts)))
    assert page.value("gpu_power_watts") == 700
    assert len(page.rows) == 8
    assert read(line("gpu_health", 1, 'gpu_id="0",gpu_partition_id="NA"')).value("gpu_healthy") == 1


@pytest.mark.parametrize(
    ("name", "value", "canonical"),
    [
        ("gpu_package_power", "65535", "gpu_power_watts"),
        ("gpu_junction_temperature", "4294967295", "gpu_temperature_celsius"),
        ("gpu_energy_consumed", "18446744073709551615", "gpu_energy_joules_total"),
        ("gpu_gfx_activity", "65535", "gpu_utilization_ratio"),
    ],
)
def test_all_bits_set_is_no_value(name: str, value: str, canonical: str) -> None:
    page = read(line(name, value))
    assert page.value(canonical) is None
    assert sum(page.drops.values()) == 1


def test_a_power_of_255_w_is_a_value() -> None:
    assert read(line("gpu_package_power", 255)).value("gpu_power_watts") == 255


def test_counts_per_block_are_not_added_to_the_total() -> None:
    page = read(line("gpu_ecc_correct_total", 5) + line("gpu_ecc_correct_umc", 4) + line("gpu_ecc_correct_gfx", 1))
    assert page.value("gpu_ecc_errors_total", kind="corrected") == 5
    assert page.raw() == {"gpu_ecc_correct_umc", "gpu_ecc_correct_gfx"}
