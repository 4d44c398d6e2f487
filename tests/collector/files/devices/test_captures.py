"""Public captures of the tools, imported whole: values read off the files by eye, in canonical units."""

import csv
import json
from datetime import datetime
from pathlib import Path

import pytest

from collector.files import FileKind, sniff
from store.errors import SourceError
from tests.collector.files.devices.taking import take

MIB = 2**20
FOLDERS = ("nvidia_smi_captures", "nvidia_smi_xml", "nvidia_smi_topo", "rocm_smi_json", "gpud_fixtures")
XML: dict[str, dict[str, float | None]] = {
    "netdata_a100-sxm4-mig.xml": {
        "gpu_power_watts": 66.92, "gpu_memory_bytes used": 38 * MIB, "gpu_clock_hz sm": 1.41e9, "gpu_lost": 0,
        "gpu_utilization_ratio graphics": None, "gpu_temperature_limit_celsius slowdown": 89,
    },
    "netdata_rtx-pro-6000-driver-580.xml": {
        "gpu_power_watts": 66.84, "gpu_fan_ratio": 0.4, "gpu_temperature_celsius gpu": 37, "gpu_performance_state": 8,
        "gpu_temperature_margin_celsius": 56,
    },
    "telegraf_a100-sxm4-v12.xml": {
        "gpu_power_watts": 67.03, "gpu_memory_bytes used": 50 * MIB, "gpu_clock_hz sm": 1.275e9,
        "gpu_temperature_celsius gpu": 27,
    },
    "telegraf_gtx-1070-ti.xml": {
        "gpu_fan_ratio": 1, "gpu_memory_bytes total": 4096 * MIB, "gpu_power_watts": None, "gpu_clock_hz sm": 1.35e8,
        "gpu_pcie_link_width current": 16,
    },
    "telegraf_gtx-1660-ti.xml": {
        "gpu_power_watts": 8.93, "gpu_temperature_celsius gpu": 40, "gpu_clock_hz sm": 3e8,
        "gpu_throttle_reasons_bitmask": 1,
    },
    "telegraf_quadro-p2000-v12.xml": {
        "gpu_power_watts": 4.61, "gpu_fan_ratio": 0.46, "gpu_pcie_link_width current": 8, "gpu_pcie_link_width max": 16,
        "gpu_pcie_link_generation current": 1,
    },
    "telegraf_quadro-p400.xml": {
        "gpu_power_watts": None, "gpu_fan_ratio": 0.34, "gpu_temperature_celsius gpu": 33, "gpu_clock_hz sm": 1.39e8,
    },
    "telegraf_rtx-3060-v12.xml": {
        "gpu_power_watts": 11.6, "gpu_memory_bytes used": 116 * MIB, "gpu_temperature_celsius gpu": 42,
    },
    "telegraf_rtx-3080-v12.xml": {
        "gpu_power_watts": 22.78, "gpu_memory_bytes used": 1128 * MIB, "gpu_temperature_celsius gpu": 31,
    },
    "telegraf_rtx-3080-v13.xml": {
        "gpu_power_watts": 139.62, "gpu_power_instant_watts": 142.33, "gpu_utilization_ratio graphics": 0.65,
        "gpu_pcie_bytes_per_second rx": 14_742_333_000, "gpu_power_limit_watts max": 336,
        "gpu_temperature_limit_celsius target": 83, "gpu_throttle_seconds_total power": 0,
    },
}  # fmt: skip


def test_every_capture_is_recognised_by_its_content(shared: Path) -> None:
    kinds = {sniff(path) for folder in FOLDERS for path in sorted((shared / "data" / folder).iterdir())}
    assert kinds == {
        FileKind.NVIDIA_SMI, FileKind.ROCM_SMI, FileKind.KERNEL_LOG, FileKind.FABRIC_MANAGER, FileKind.INFINIBAND,
    }  # fmt: skip


@pytest.mark.parametrize("name", XML)
def test_xml_gives_the_values_it_states(shared: Path, name: str) -> None:
    taken = take(shared / "data" / "nvidia_smi_xml" / name)
    for wanted, value in XML[name].items():
        metric, _, label = wanted.partition(" ")
        kinds = [{key: label} for one in taken.labels(metric) for key, text in one.items() if label == text][:1] or [{}]
        found = taken.values(metric, mig_instance="", **kinds[0])
        assert found == [pytest.approx(value) if value is not None else None], wanted
    assert taken.imported.refused == {}


def test_every_xml_file_holds_the_number_of_gpus_of_the_manifest(shared: Path) -> None:
    with (shared / "data" / "MANIFEST.tsv").open() as file:
        rows = [row for row in csv.reader(file, delimiter="\t") if row and row[0].startswith("nvidia_smi_xml/")]
    assert len(rows) == len(XML)
    for name, *_, count, _ in rows:
        assert len(take(shared / "data" / name).labels("gpu_lost")) == int(count), name


def test_mig_devices_of_an_a100_have_their_own_memory(shared: Path) -> None:
    taken = take(shared / "data" / "nvidia_smi_xml" / "netdata_a100-sxm4-mig.xml")
    assert [taken.value("gpu_memory_bytes", mig_instance=n, state="total") for n in "12"] == [19968 * MIB] * 2
    assert taken.value("gpu_ecc_errors_total", mig_instance="1", kind="uncorrected") == 0
    assert taken.labels("gpu_mode_info")[0]["mig"] == "enabled"
    assert taken.times == [datetime(2023, 1, 27, 11, 32, 31)]


def test_the_time_of_a_file_is_local_to_the_stated_zone(shared: Path) -> None:
    path = shared / "data" / "nvidia_smi_xml" / "telegraf_rtx-3080-v13.xml"
    assert take(path, time_zone="Europe/Berlin").times == [datetime(2026, 4, 10, 8, 23, 1)]


def test_a_session_of_an_h200_is_put_together_from_its_parts(shared: Path) -> None:
    taken = take(shared / "data" / "nvidia_smi_captures" / "linux-x86_64__nvidia-h200__590.48.01.txt.gz", at=None)
    gpu = {"gpu": "0", "gpu_uuid": "GPU-00000000-0000-0000-0000-000000000000", "pci_bus_id": "0000:83:00.0"}
    assert taken.values("gpu_link_up", **gpu) == [1] * 18
    assert taken.values("gpu_link_speed_bytes_per_second", link="17") == [26.562e9]
    assert taken.values("gpu_affinity_info", cpus="0-23", numa_node="0") == [1]
    power = taken.values("gpu_power_watts", **gpu)
    assert power[:2] == [77.67, 77.71]
    assert power[-5:] == [630, 628, 629, 632, 630]
    assert taken.values("gpu_utilization_ratio", engine="graphics", **gpu)[-5:] == [1] * 5
    assert taken.values("gpu_process_utilization_ratio", process="gpu_burn", engine="graphics")[0] == 0.99
    assert taken.values("gpu_row_remap_failed") == [0] * 4
    assert taken.values("gpu_fabric_state") == [3] * 4
    assert taken.imported.refused == {}
    assert any(note.startswith("not read: nvidia-smi --version") for note in taken.imported.notes)


def test_a_session_of_an_h100_with_mig_names_the_profiles(shared: Path) -> None:
    taken = take(shared / "data" / "nvidia_smi_captures" / "linux-x86_64__nvidia-h100-mig__590.48.01.txt.gz", at=None)
    totals = {one["mig_profile"] for one in taken.labels("gpu_memory_bytes") if "mig_profile" in one}
    assert totals == {"3g.40gb", "2g.20gb", "1g.10gb"}
    assert taken.values("gpu_memory_bytes", mig_instance="2", state="total") == [40448 * MIB] * 2
    memory = taken.values("gpu_process_memory_bytes", pid="21198", process="gpu_burn", mig_instance="2")
    assert memory == [7484 * MIB]
    assert taken.values("gpu_processes", type="compute") == [0, 3]
    assert taken.values("gpu_pcie_replay_total") == [9, 9]
    assert set(taken.values("gpu_utilization_ratio", engine="graphics")) == {None}
    assert "GPU 0: Nvlink queries are not supported for Devices in MIG mode" in taken.imported.notes


def test_a_session_of_an_l40s_has_no_nvlink(shared: Path) -> None:
    taken = take(shared / "data" / "nvidia_smi_captures" / "linux-x86_64__nvidia-l40s__595.80.txt.gz", at=None)
    assert taken.labels("gpu_link_up") == []
    assert taken.values("gpu_utilization_ratio", engine="encoder")[-5:-3] == [0.67, 0.59]
    assert taken.values("gpu_clock_hz", domain="memory")[-1] == 9.001e9


def test_the_matrix_of_eight_h100_joins_every_pair_by_18_links(shared: Path) -> None:
    taken = take(shared / "data" / "nvidia_smi_topo" / "ml-engineering_topo_4.txt")
    pairs = {(one["gpu"], one["peer"]): one["link"] for one in taken.labels("gpu_peer_link_info")}
    assert len(pairs) == 56
    assert set(pairs.values()) == {"NV18"}
    assert [(one["cpus"], one["numa_node"]) for one in taken.labels("gpu_affinity_info")] == [
        *[("0-51", "0")] * 4, *[("52-103", "1")] * 4,
    ]  # fmt: skip


def test_the_matrix_of_two_gpus_says_phb_and_knows_no_numa_node(shared: Path) -> None:
    taken = take(shared / "data" / "nvidia_smi_topo" / "ml-engineering_topo_2.txt")
    assert [(one["gpu"], one["peer"], one["link"]) for one in taken.labels("gpu_peer_link_info")] == [
        ("0", "1", "PHB"), ("1", "0", "PHB"),
    ]  # fmt: skip
    assert taken.labels("gpu_affinity_info") == [{"gpu": "0", "cpus": "0-11"}, {"gpu": "1", "cpus": "0-11"}]


def test_eight_a100_have_twelve_links_of_25_gigabytes_each(shared: Path) -> None:
    taken = take(shared / "data" / "gpud_fixtures" / "nvidia-smi.nvlink.status.a100.txt")
    for gpu in range(8):
        assert taken.values("gpu_link_up", gpu=str(gpu)) == [1] * 12
        assert sum(v or 0 for v in taken.values("gpu_link_speed_bytes_per_second", gpu=str(gpu))) == 300e9


def test_a_kernel_log_gives_its_five_xids(shared: Path) -> None:
    taken = take(shared / "data" / "gpud_fixtures" / "dmesg-with-xid-119.log", labels={"host": "node-7"})
    assert [(e["kind"], e["code"], e["severity"], e["entity"]) for e in taken.events] == [
        ("xid", "119", "critical", "0000:9b:00.0")
    ] * 5
    first = taken.events[0]
    assert (first["ts"], first["host"]) == (datetime(2025, 2, 23, 16, 24, 18), "node-7")
    assert json.loads(first["labels"]) == {
        "host": "node-7", "pci_bus_id": "0000:9b:00.0", "gpu_uuid": "GPU-509665ad-b600-ac93-3616-d754b23d636d",
        "pid": "2024380", "process": "nvidia-smi", "meaning": "GSP firmware does not answer",
    }  # fmt: skip
    assert taken.imported.notes == ("38 lines are no event",)


def test_a_fabric_manager_log_gives_every_entry_and_its_switch_error(shared: Path) -> None:
    taken = take(shared / "data" / "gpud_fixtures" / "fabricmanager.log")
    kinds = [(e["kind"], e["severity"]) for e in taken.events]
    assert kinds.count(("fabric_manager", "info")) == 53
    [error] = [e for e in taken.events if e["kind"] == "nvswitch_error"]
    assert (error["code"], error["entity"], error["severity"]) == ("12028", "0000:86:00.0", "warning")
    assert json.loads(error["labels"])["port"] == "61"
    assert "Team Handle:99c9f23d49236386" in taken.events[0]["message"]


def test_infiniband_ports_have_bytes_not_words(shared: Path) -> None:
    path = shared / "data" / "gpud_fixtures" / "infiniband_sysfs_sys-class-infiniband-h100.0.jsonl"
    taken = take(path)
    assert len(taken.labels("rdma_port_up")) == 9
    assert taken.value("rdma_port_up", device="mlx5_0", link_layer="InfiniBand") == 1
    assert taken.value("rdma_port_speed_bytes_per_second", device="mlx5_0") == 50e9
    assert taken.value("rdma_port_speed_bytes_per_second", device="mlx5_bond_0") == 25e9
    assert taken.value("rdma_port_bytes_total", device="mlx5_0", direction="rx") == 4 * 230539874932483
    assert taken.value("rdma_port_errors_total", device="mlx5_1", kind="link_downed") == 255


def test_rocm_smi_of_every_version_is_imported(shared: Path) -> None:
    temperatures = {}
    for path in sorted((shared / "data" / "rocm_smi_json").iterdir()):
        taken = take(path)
        assert taken.imported.kind is FileKind.ROCM_SMI
        temperatures[path.stem] = taken.values("gpu_temperature_celsius", gpu="0", sensor="edge")
    assert temperatures == {
        "telegraf_mi100_rocm571": [31], "telegraf_rx6700xt_rocm430": [45], "telegraf_rx6700xt_rocm571": [45],
        "telegraf_rx6700xt_rocm612": [45], "telegraf_vega-10-XT": [39], "telegraf_vega-20-WKS-GL-XE": [36],
    }  # fmt: skip


def test_intel_gpu_top_gives_engines_power_and_clock(shared: Path) -> None:
    taken = take(shared / "data" / "gpu_metrics_text" / "netdata_intel_gpu_top.json")
    assert taken.imported.kind is FileKind.INTEL_GPU_TOP
    assert taken.value("gpu_utilization_ratio", engine="graphics") == pytest.approx(0.96092944)
    assert taken.value("gpu_power_watts") == 3.233528
    assert taken.value("gpu_clock_hz") == pytest.approx(1253.085184e6)


def test_missing_tokens_and_a_lost_gpu_lose_nothing_else(shared: Path) -> None:
    case = shared / "cases" / "21-nvidia-smi-na-tokens"
    taken = take(case / "smi.csv")
    found = {
        name: [taken.value(name, gpu=gpu, **labels) for gpu in "012"]
        for name, labels in (
            ("gpu_utilization_ratio", {"engine": "graphics"}), ("gpu_memory_bytes", {"state": "used"}),
            ("gpu_power_watts", {}), ("gpu_fan_ratio", {}), ("gpu_ecc_errors_total", {"kind": "uncorrected"}),
            ("gpu_throttle_reasons_bitmask", {}), ("gpu_lost", {}),
        )
    }  # fmt: skip
    wanted = json.loads((case / "expected.json").read_text())
    assert found == {
        "gpu_utilization_ratio": [wanted[0]["util"] / 100, wanted[1]["util"], None],
        "gpu_memory_bytes": [wanted[0]["mem"] * MIB, wanted[1]["mem"] * MIB, None],
        "gpu_power_watts": [wanted[0]["power"], wanted[1]["power"], None],
        "gpu_fan_ratio": [wanted[0]["fan"], wanted[1]["fan"], None],
        "gpu_ecc_errors_total": [wanted[0]["ecc"], wanted[1]["ecc"], None],
        "gpu_throttle_reasons_bitmask": [wanted[0]["reasons"], wanted[1]["reasons"], None],
        "gpu_lost": [0, 0, 1],
    }
    assert wanted[2] == {"index": 2, "state": "lost"}
    assert taken.imported.refused == {}


def test_an_error_of_the_driver_is_named_as_such(shared: Path) -> None:
    path = shared / "cases" / "21-nvidia-smi-na-tokens" / "smi-failed.txt"
    with pytest.raises(SourceError, match="couldn't communicate with the NVIDIA driver") as raised:
        take(path)
    assert str(raised.value).startswith(f"{path}:1: nvidia-smi printed an error")
    assert "dmesg | grep NVRM" in raised.value.hint
