"""Kernel and fabric logs: every format of time, what is an event and how grave it is."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.files import FileKind
from store.errors import SourceError, UsageError
from tests.collector.files.devices.taking import take_text

XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
BOOT = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "moment", "host"),
    [
        (f"[Mon Nov 30 11:00:01 2026] {XID}", datetime(2026, 11, 30, 11, 0, 1), None),
        (f"[39601.500000] {XID}", datetime(2026, 11, 30, 11, 0, 1, 500_000), None),
        (f"<4>[39601.500000] [ T123] {XID}", datetime(2026, 11, 30, 11, 0, 1, 500_000), None),
        (f"4,1234,39601500000,-;{XID}", datetime(2026, 11, 30, 11, 0, 1, 500_000), None),
        (f"2026-11-30T12:00:01,500000+01:00 {XID}", datetime(2026, 11, 30, 11, 0, 1, 500_000), None),
        (f"2026-11-30T11:00:01+0000 node-1 kernel: {XID}", datetime(2026, 11, 30, 11, 0, 1), "node-1"),
        (f"Nov 30 11:00:01 node-1 kernel: [39601.500000] {XID}", datetime(2026, 11, 30, 11, 0, 1), "node-1"),
    ],
)
def test_every_way_to_save_a_kernel_log_is_read(tmp_path: Path, line: str, moment: datetime, host: str | None) -> None:
    taken = take_text(tmp_path, f"{line}\n", start=BOOT)
    assert taken.imported.kind is FileKind.KERNEL_LOG
    [event] = taken.events
    assert (event["ts"], event["host"], event["kind"], event["code"]) == (moment, host, "xid", "79")
    assert (event["severity"], event["entity"]) == ("critical", "0000:9b:00.0")


def test_times_since_boot_need_the_start_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="times count from the start of the machine") as raised:
        take_text(tmp_path, f"[39601.500000] {XID}\n")
    assert "--start" in raised.value.hint


def test_times_without_a_year_need_the_time_of_the_log(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name no year"):
        take_text(tmp_path, f"Nov 30 11:00:01 node-1 kernel: {XID}\n", at=None)


@pytest.mark.parametrize(
    ("said", "kind", "severity", "entity"),
    [
        ("Out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:8kB", "oom_kill", "critical", "python3"),
        ("Memory cgroup out of memory: Killed process 7 (vllm) total-vm:9kB", "oom_kill", "critical", "vllm"),
        ("pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer", "pcie_error", "info",
         "0000:00:01.0"),
        ("nvidia 0000:9b:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer", "pcie_error",
         "warning", "0000:9b:00.0"),
        ("nvidia 0000:9b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data Link", "pcie_error", "critical",
         "0000:9b:00.0"),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress error", "nvswitch_error",
         "warning", "0000:c1:00.0"),
        ("nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "nvswitch_error",
         "critical", "0000:c4:00.0"),
        ("mlx5_core 0000:1a:00.0 ibp26s0: Link down", "network_link_down", "warning", "ibp26s0"),
        ("mlx5_core 0000:1a:00.0: ibp26s0: Link up", "network_link_up", "info", "ibp26s0"),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:42]", "soft_lockup", "critical", "CPU#3"),
        ("INFO: task nv_queue:123 blocked for more than 120 seconds.", "hung_task", "warning", "nv_queue"),
        ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0", "memory_error", "critical", "EDAC MC0"),
        ("NVRM: Xid (PCI:0000:9b:00): 13, pid=7, name=python, Graphics SM Warp Exception", "xid", "warning",
         "0000:9b:00.0"),
    ],
)  # fmt: skip
def test_what_is_worth_keeping_is_an_event(tmp_path: Path, said: str, kind: str, severity: str, entity: str) -> None:
    taken = take_text(tmp_path, f"[Mon Nov 30 11:00:01 2026] {said}\n[Mon Nov 30 11:00:02 2026] usb 1-1: new device\n")
    assert [(e["kind"], e["severity"], e["entity"]) for e in taken.events] == [(kind, severity, entity)]
    assert taken.imported.notes == ("1 lines are no event",)


def test_a_log_without_events_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nothing to import: 1 lines are no event"):
        take_text(tmp_path, "[Mon Nov 30 11:00:02 2026] usb 1-1: new device\n")


def test_equal_lines_of_one_second_stay_two_events_with_the_same_ids_every_time(tmp_path: Path) -> None:
    line = f"[Mon Nov 30 11:00:01 2026] {XID}\n"
    first, second = (take_text(tmp_path, line * 2).batch.frames["events"]["event_id"].to_list() for _ in range(2))
    assert first == second
    assert len(set(first)) == 2


def test_a_switch_error_names_its_port(tmp_path: Path) -> None:
    line = "[Mon Nov 30 11:00:01 2026] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress\n"
    [event] = take_text(tmp_path, line).events
    assert json.loads(event["labels"]) == {"pci_bus_id": "0000:c1:00.0", "port": "32"}


def test_the_level_of_the_fabric_manager_is_the_severity(tmp_path: Path) -> None:
    levels = ("INFO", "WARNING", "ERROR", "CRITICAL")
    text = "".join(f"[Feb 25 2025 13:59:4{n}] [{level}] [tid 1] said\n" for n, level in enumerate(levels))
    taken = take_text(tmp_path, text, time_zone="Europe/Berlin")
    assert [e["severity"] for e in taken.events] == ["info", "warning", "critical", "critical"]
    assert taken.events[0]["ts"] == datetime(2025, 2, 25, 12, 59, 40)


def test_ports_saved_with_grep_are_read_like_files(tmp_path: Path) -> None:
    base = "/sys/class/infiniband/mlx5_0/ports/1"
    text = f"{base}/state:1: DOWN\n{base}/link_layer:InfiniBand\n{base}/rate:100 Gb/sec (4X EDR)\n"
    taken = take_text(tmp_path, text + f"{base}/counters/port_xmit_data:25\n{base}/counters/symbol_error:many\n")
    assert taken.value("rdma_port_up", device="mlx5_0", port="1", link_layer="InfiniBand") == 0
    assert taken.value("rdma_port_bytes_total", direction="tx") == 100
    assert taken.value("rdma_port_speed_bytes_per_second") == 12.5e9
    assert {why: r.first[-2:] for why, r in taken.imported.refused.items()} == {"unreadable value": ":5"}
