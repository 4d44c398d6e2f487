"""Each area of a host, read from texts in the kernel's formats."""

import math
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.host import cpu, disks, interrupts, memory, network, numa, pressure, resctrl
from collector.host.cpulist import cpus_of
from collector.host.tree import Tree
from collector.prometheus.exposition import Sample
from tests.collector.host.conftest import finder
from tests.collector.host.tree_of import RESCTRL, write


def value(samples: Iterable[Sample], name: str, **labels: str) -> float:
    ((_, found),) = finder(list(samples))(name, **labels)
    return found


def test_cpu_time_is_in_seconds_and_guests_are_part_of_user(root: Path) -> None:
    found = finder(list(cpu.read(Tree(root), 100.0)))
    assert found("host_cpu_seconds_total", cpu="0", mode="user") == [({"cpu": "0", "mode": "user"}, 1.0)]
    assert found("host_cpu_seconds_total", cpu="1", mode="system")[0][1] == 0.4
    assert {labels["mode"] for labels, _ in found("host_cpu_seconds_total")} == set(cpu.MODES)
    assert {labels["cpu"] for labels, _ in found("host_cpu_seconds_total")} == {"0", "1"}
    assert found("host_context_switches_total") == [({}, 987654.0)]
    assert found("host_processes") == [({"state": "running"}, 3.0), ({"state": "blocked"}, 1.0)]
    assert found("host_load") == [({"window": "1m"}, 0.5), ({"window": "5m"}, 1.25), ({"window": "15m"}, 2.0)]
    assert found("host_cpu_hz") == [({"cpu": "0"}, 2.1e9), ({"cpu": "1"}, 3.4e9)]


def test_a_host_is_described(root: Path) -> None:
    labels = {"kernel": "6.8.0-test", "cpu_model": "Example CPU @ 2.0GHz", "cpus": "2", "sockets": "2"}
    assert cpu.info(Tree(root)) == Sample("host_info", labels, 1.0, None)


def test_memory_is_in_bytes_and_huge_pages_too(root: Path) -> None:
    found = list(memory.read(Tree(root)))
    assert value(found, "host_memory_bytes", state="total") == 16000000 * 1024
    assert value(found, "host_memory_bytes", state="hugepages_total") == 16 * 2 * 2**20
    assert value(found, "host_memory_bytes", state="hugepages_free") == 10 * 2 * 2**20
    assert finder(found)("host_memory_bytes", state="swap_total") == []


def test_pressure_is_in_seconds_and_shares_of_one(root: Path) -> None:
    found = list(pressure.read(Tree(root)))
    assert value(found, "host_pressure_seconds_total", resource="cpu", kind="some") == 1.5
    assert value(found, "host_pressure_seconds_total", resource="irq", kind="full") == 0.25
    assert value(found, "host_pressure_ratio", resource="cpu", kind="some", window="10s") == 0.125
    assert finder(found)("host_pressure_ratio", resource="cpu", kind="full") == []
    assert finder(found)("host_pressure_ratio", resource="memory") == []


def test_interrupts_of_watched_devices_are_told_apart_by_cpu(root: Path) -> None:
    found = finder(list(interrupts.read(Tree(root))))
    nvidia = {"irq": "121", "device": "nvidia"}
    assert found("host_interrupts_total", irq="121") == [({**nvidia, "cpu": "0"}, 5.0), ({**nvidia, "cpu": "1"}, 95.0)]
    mlx = {"irq": "120", "device": "mlx5_comp3@pci:0000:3b:00.0", "cpu": "0"}
    assert found("host_interrupts_total", irq="120") == [(mlx, 70000.0)]
    usb = {"irq": "16", "device": "ehci_hcd:usb1, i801_smbus"}
    assert found("host_interrupts_total", irq="16") == [(usb, 42.0)]
    assert found("host_interrupts_total", irq="122") == [({"irq": "122", "device": ""}, 9.0)]
    assert found("host_interrupts_total", irq="8") == []
    assert found("host_interrupts_total", irq="ERR")[0][1] == 7.0
    assert found("host_interrupts_total", irq="LOC") == [({"irq": "LOC", "device": "Local timer interrupts"}, 3000.0)]


def test_interrupts_add_up_the_same_by_interrupt_and_by_cpu(root: Path) -> None:
    cpus, lines = interrupts.parse((root / "proc/interrupts").read_text())
    found = finder(list(interrupts.samples(cpus, lines)))
    by_cpu = {labels["cpu"]: n for labels, n in found("host_cpu_interrupts_total")}
    assert by_cpu == {"0": 71046.0, "1": 2108.0}
    errors = 7
    assert sum(n for _, n in found("host_interrupts_total")) == sum(by_cpu.values()) + errors


def test_a_large_host_has_no_series_per_interrupt_and_cpu() -> None:
    cpus = [str(n) for n in range(256)]
    queues = [
        interrupts.Interrupt(str(n), f"mlx5_comp{n}", [n * (at == n % 256) for at in range(256)]) for n in range(1, 513)
    ]
    others = [interrupts.Interrupt(str(n), "virtio-input", [1] * 256) for n in range(600, 1600)]
    found = list(interrupts.samples(cpus, [*queues, *others]))
    assert len(found) == 512 + 1000 + 256


def test_soft_interrupts_have_type_and_cpu(root: Path) -> None:
    found = finder(list(interrupts.read(Tree(root))))
    assert found("host_softirqs_total", type="NET_RX", cpu="0")[0][1] == 20403
    assert len(found("host_softirqs_total")) == 4


def test_an_interrupt_says_where_it_may_go(root: Path) -> None:
    found = finder(list(interrupts.read(Tree(root))))
    where = {"cpus": "0-1", "effective_cpus": "1", "numa_node": "1"}
    assert found("host_irq_affinity_info", irq="121") == [({"irq": "121", "device": "nvidia", **where}, 1.0)]
    assert found("host_irq_affinity_info", irq="16")[0][0] == {
        "irq": "16",
        "device": "ehci_hcd:usb1, i801_smbus",
        "cpus": "0",
    }
    assert found("host_irq_affinity_info", irq="LOC") == []


def test_numa_nodes_have_distances_memory_and_pages(root: Path) -> None:
    found = list(numa.read(Tree(root)))
    assert value(found, "numa_distance", node="0", peer="2") == 30
    assert value(found, "numa_memory_bytes", node="2", state="used") == 1000000 * 1024
    assert value(found, "numa_memory_bytes", node="2", state="cached") == 200000 * 1024
    assert value(found, "numa_pages_total", node="1", kind="miss") == 30
    assert value(found, "numa_pages_total", node="1", kind="interleave") == 2


def test_a_node_of_memory_alone_has_no_cpus(root: Path) -> None:
    found = finder(list(numa.read(Tree(root))))
    assert [labels["cpus"] for labels, _ in found("numa_node_info")] == ["0", "1", ""]


def test_a_node_without_a_list_of_cpus_is_not_taken_for_one_of_memory_alone(root: Path) -> None:
    (root / "sys/devices/system/node/node1/cpulist").unlink()
    assert finder(list(numa.read(Tree(root))))("numa_node_info", node="1") == []


def test_disks_are_counted_once(root: Path) -> None:
    found = finder(list(disks.read(Tree(root))))
    assert found("disk_bytes_total") == [
        ({"device": "nvme0n1", "direction": "read"}, 40000 * 512.0),
        ({"device": "nvme0n1", "direction": "write"}, 16000 * 512.0),
    ]
    assert [n for _, n in found("disk_operations_total")] == [1000.0, 500.0]
    assert found("disk_busy_seconds_total") == [({"device": "nvme0n1"}, 1.234)]


def test_network_has_both_directions_and_no_ends_of_pods(root: Path) -> None:
    found = finder(list(network.read(Tree(root))))
    assert [(labels["device"], labels["direction"], n) for labels, n in found("network_bytes_total")] == [
        ("eth0", "rx", 5000.0),
        ("eth0", "tx", 7000.0),
    ]
    assert found("network_errors_total", direction="tx", kind="drops")[0][1] == 4.0


def test_a_host_mounted_elsewhere_has_the_network_of_its_first_process(root: Path) -> None:
    write(root, {"/proc/1/net/dev": "  eth7: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n"})
    found = finder(list(network.read(Tree(root))))
    assert {labels["device"] for labels, _ in found("network_bytes_total")} == {"eth7"}


def test_resctrl_groups_are_named_like_their_path(root: Path) -> None:
    write(root, RESCTRL)
    found = finder(list(resctrl.read(Tree(root))))
    assert found("llc_occupancy_bytes", group="/", domain="0")[0][1] == 30000000
    assert found("llc_occupancy_bytes", group="/engine", domain="0")[0][1] == 20000000
    assert found("memory_traffic_bytes_total", group="/", domain="0", scope="local")[0][1] == 3000
    assert found("memory_traffic_bytes_total", group="batch", scope="total")[0][1] == 77
    assert found("memory_traffic_bytes_total", group="batch/one", scope="total")[0][1] == 70
    assert found("memory_traffic_bytes_total", group="batch", scope="local") == []


def test_a_monitor_without_a_value_is_not_available(root: Path) -> None:
    write(root, RESCTRL)
    found = finder(list(resctrl.read(Tree(root))))
    assert math.isnan(found("llc_occupancy_bytes", group="/", domain="1")[0][1])


@given(st.sets(st.integers(0, 300)))
def test_a_list_of_cpus_is_read_back(cpus: set[int]) -> None:
    assert cpus_of(",".join(map(str, sorted(cpus))) + "\n") == cpus


@pytest.mark.parametrize(("text", "cpus"), [("", set()), ("0-3,8", {0, 1, 2, 3, 8}), ("5\n", {5})])
def test_a_list_of_cpus_has_ranges(text: str, cpus: set[int]) -> None:
    assert cpus_of(text) == cpus
