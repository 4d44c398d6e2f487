"""dcgm-exporter: every field of its counter lists, its captures in canonical units, what doctor asks for."""

import re
from pathlib import Path

import pytest

from collector.presets.catalog import catalog, lookup
from tests.collector.presets.read_page import read

LISTS = ("default-counters.csv", "dcp-metrics-included.csv", "1.x-compatibility-metrics.csv")
DELIBERATELY_RAW = {
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": "a licence, no measurement of a GPU",
}
LINE = re.compile(r"#?\s*((?:DCGM|dcgm)_\w+)\s*,\s*(gauge|counter|label)\s*,\s*(\S.*)")


def fields(path: Path) -> dict[str, str]:
    """Field -> type of a counter list, those that are commented out among them."""
    return {m[1]: m[2] for line in path.read_text().splitlines() if (m := LINE.fullmatch(line.strip()))}


@pytest.mark.parametrize("name", LISTS)
def test_every_field_of_a_counter_list_has_a_meaning_or_a_reason_to_have_none(shared: Path, name: str) -> None:
    found = fields(shared / "data/dcgm_counters" / name)
    unknown = {field for field, kind in found.items() if kind != "label" and not lookup(field)}
    assert len(found) > 30
    assert unknown == DELIBERATELY_RAW.keys() & found.keys()


def test_a_1x_name_means_what_the_new_one_means() -> None:
    pairs = {
        "dcgm_fb_used": "DCGM_FI_DEV_FB_USED",
        "dcgm_ecc_dbe_volatile_total": "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "dcgm_fi_prof_pcie_tx_bytes": "DCGM_FI_PROF_PCIE_TX_BYTES",
        "dcgm_low_util_violation": "DCGM_FI_DEV_LOW_UTIL_VIOLATION",
        "dcgm_nvlink_data_crc_error_count_total": "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    }
    for old, new in pairs.items():
        assert [p.means_the_same(q) for p, q in zip(lookup(old), lookup(new), strict=True)] == [True], old


def test_all_known_fields_of_dcgm_that_are_sums_of_others_stay_raw(shared: Path) -> None:
    names = (shared / "data/gpu_metrics_text/netdata_dcgm_all_fields_nonlabel.txt").read_text().split()
    known = {name for name in names if lookup(name)}
    assert len(names) == 623
    assert len(known) > 200
    assert not any(re.search(r"ECC_[SD]BE_(VOL|AGG)_(?!TOTAL)", name) for name in known)
    links = [name for name in names if re.search(r"NVLINK_\w+_L\d+$", name) and "_BANDWIDTH_L" not in name]
    assert len(links) == 72
    assert {lookup(name)[0].canonical for name in links} == {"gpu_nvlink_errors_total"}


@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_readme_pages_have_a_blank_memory_temperature(shared: Path, n: int) -> None:
    page = read((shared / f"data/gpu_metrics_text/dcgm_exporter_readme_{n}.prom").read_text())
    assert page.value("gpu_clock_hz", domain="sm") == 139e6
    assert page.value("gpu_clock_hz", domain="memory") == 405e6
    assert page.value("gpu_temperature_celsius", sensor="memory") is None
    assert page.drops == {"blank_value": 1}
    assert {r.labels["gpu_uuid"] for r in page.rows} == {"GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"}
    assert {r.labels.get("workload_pod") for r in page.rows} == {None}


def test_the_t4_page_reads_in_base_units(shared: Path) -> None:
    text = (shared / "data/gpu_metrics_text/datadog_dcgm_exporter_t4.prom").read_text()
    page = read(text[: text.index("# NOTE The following metrics all have dummy values")])
    t4 = {"gpu_model": "Tesla T4", "gpu": "0", "host": "424773df46e0"}
    assert page.value("gpu_temperature_celsius", sensor="gpu", **t4) == 25
    assert page.value("gpu_power_watts", **t4) == 8.969
    assert page.value("gpu_clock_hz", domain="sm", **t4) == 300e6
    assert page.value("gpu_energy_joules_total", **t4) == pytest.approx(128996.013)
    assert page.value("gpu_memory_bytes", state="free", **t4) == 15109 * 2**20
    assert page.value("gpu_last_xid", **t4) == 0
    assert page.value("gpu_temperature_limit_celsius", limit="slowdown") == 93
    assert page.value("gpu_power_limit_watts", limit="requested") == 70
    assert page.value("gpu_performance_state") == 8
    assert page.value("gpu_memory_bytes", state="total") == 15109 * 2**20
    assert page.value("gpu_throttle_reasons_bitmask") == 1
    assert page.drops == {}
    assert page.raw() == {"DCGM_FI_DEV_VGPU_LICENSE_STATUS", "DCGM_FI_DEV_COUNT", "DCGM_FI_DEV_FB_USED_PERCENT"}


def test_the_whole_t4_page_has_a_workload_on_its_last_line(shared: Path) -> None:
    page = read((shared / "data/gpu_metrics_text/datadog_dcgm_exporter_t4.prom").read_text())
    (row,) = page.of("gpu_dram_active_ratio")
    assert row.value == 3e-06
    assert (row.labels["workload_namespace"], row.labels["workload_pod"]) == ("ray-llm", "ray-1111111")


def test_the_netdata_page_reads_in_base_units(shared: Path) -> None:
    page = read((shared / "data/gpu_metrics_text/netdata_dcgm_metrics_valid.prom").read_text())
    assert page.value("gpu_utilization_ratio", mig_instance="2", mig_profile="1g.10gb") == pytest.approx(0.6)
    assert sorted(r.value or 0 for r in page.of("gpu_utilization_ratio")) == pytest.approx([0.6, 0.8])
    assert page.value("gpu_memory_bytes", state="used", host="host1") == 2**30
    assert page.value("gpu_throttle_seconds_total", reason="power") == pytest.approx(0.002)
    assert page.value("gpu_throttle_seconds_total", reason="thermal") == pytest.approx(0.005)
    assert page.value("gpu_last_xid") == 31
    assert page.value("gpu_remapped_rows_total", kind="uncorrected") == 7
    assert page.value("gpu_row_remap_failed") == 1
    assert page.value("gpu_pcie_bytes_per_second", direction="tx") == 123456
    assert page.value("gpu_nvlink_errors_total", kind="replay", link="1", gpu_uuid="GPU-aaa") == 4
    assert page.value("gpu_temperature_celsius", sensor="memory") is None
    assert page.raw() == {"go_gc_duration_seconds"}


def test_a_field_of_one_link_yields_to_the_field_of_all_links() -> None:
    one = 'DCGM_FI_PROF_NVLINK_L3_TX_BYTES{gpu="0"} 5e9\n'
    assert read(one).value("gpu_nvlink_bytes_per_second", direction="tx", link="3") == 5e9
    page = read(one + 'DCGM_FI_PROF_NVLINK_TX_BYTES{gpu="0"} 9e10\n')
    assert page.value("gpu_nvlink_bytes_per_second", direction="tx") == 9e10
    assert page.raw() == {"DCGM_FI_PROF_NVLINK_L3_TX_BYTES"}


def test_peer_to_peer_state_has_the_pair_in_its_labels() -> None:
    page = read('DCGM_EXP_P2P_STATUS{gpu="0",UUID="GPU-a",peer_gpu="1",link_status="TopologyNotSupported"} 4\n')
    (row,) = page.of("gpu_p2p_info", gpu="0", peer="1", status="TopologyNotSupported")
    assert row.semantic == "info"


def test_new_and_old_labels_say_the_same() -> None:
    old = read('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",Hostname="n1",pod_name="p",pod_namespace="ns"} 40\n')
    new = read('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",hostname="n1",pod="p",namespace="ns"} 40\n')
    added = ("gpu_uuid", "host", "workload_pod", "workload_namespace")
    assert [[p.rows[0].labels[name] for name in added] for p in (old, new)] == [["GPU-a", "n1", "p", "ns"]] * 2


def test_every_line_that_doctor_asks_for_is_a_line_of_a_counter_list() -> None:
    expected = catalog().files["dcgm"].expect
    assert len(expected) > 8
    for block in expected:
        assert block.lines, block.metrics
        for line in block.lines:
            match = LINE.fullmatch(line)
            assert match is not None, line
            assert lookup(match[1]), line
        assert set(block.metrics) <= {line.split(",")[0] for line in block.lines}


def test_doctor_asks_for_fields_that_are_off_by_default(shared: Path) -> None:
    shipped = (shared / "data/dcgm_counters/default-counters.csv").read_text().splitlines()
    on = {m[1] for line in shipped if not line.startswith("#") and (m := LINE.fullmatch(line.strip()))}
    asked = {name for block in catalog().files["dcgm"].expect for name in block.metrics}
    assert {"DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"} <= asked - on
