"""node_exporter and kubelet: captures in canonical units."""

import gzip
from pathlib import Path

import pytest

from collector.presets.catalog import lookup
from tests.collector.presets.read_page import Page, read


@pytest.fixture(scope="module")
def page(shared: Path) -> Page:
    with gzip.open(shared / "data/host_metrics_text/node_exporter_e2e-output.prom.gz", "rt") as file:
        return read(file.read())


def test_the_whole_page_is_taken_in(page: Page) -> None:
    assert len(page.rows) == 3027
    assert page.drops == {}


def test_cpu_and_load(page: Page) -> None:
    assert page.value("host_cpu_seconds_total", cpu="0", mode="idle") == 10870.69
    assert page.value("host_load", window="1m") == 0.21
    assert page.value("host_load", window="15m") == 0.39
    assert page.value("host_processes", state="running") == 2
    assert page.value("host_context_switches_total") == 38014093
    (clock,) = page.of("host_cpu_hz", cpu="0")
    assert (clock.name, clock.value) == ("node_cpu_scaling_frequency_hertz", 1.699981e9)


def test_memory_and_pressure(page: Page) -> None:
    assert page.value("host_memory_bytes", state="total") == 3831959552
    assert page.value("host_memory_bytes", state="swap_free") == 3231088640
    assert page.value("host_pressure_seconds_total", resource="cpu", kind="some") == pytest.approx(14.036781)
    assert page.value("host_pressure_seconds_total", resource="io", kind="full") == pytest.approx(159.229614)
    assert page.value("host_pressure_seconds_total", resource="irq", kind="full") == pytest.approx(0.008494)


def test_numa_nodes(page: Page) -> None:
    assert page.value("numa_memory_bytes", node="0", state="total") == 137402716160
    assert page.value("numa_pages_total", node="0", kind="miss") == 12624528
    assert page.value("numa_pages_total", node="0", kind="foreign") == 59858623300


def test_interrupts_have_number_device_and_cpu(page: Page) -> None:
    assert page.value("host_interrupts_total", irq="RTR", device="APIC ICR read retries", cpu="0") == 0
    row = page.of("host_softirqs_total", type="BLOCK", cpu="0")[0]
    assert (row.name, row.value) == ("node_softirqs_functions_total", 23776)
    assert not any("irq" in row.labels for row in page.of("host_softirqs_total"))


def test_infiniband_disks_and_network(page: Page) -> None:
    assert page.value("rdma_port_speed_bytes_per_second", device="i40iw0", port="1") == 1.25e9
    assert page.value("rdma_port_bytes_total", device="mlx4_0", port="1", direction="rx") == 18527668
    assert page.value("rdma_port_errors_total", device="mlx4_0", port="1", kind="port_xmit_discards") == 5
    assert page.value("disk_bytes_total", device="sda", direction="read") == 513713216512
    assert page.value("disk_operations_total", device="sda", direction="read") == 25354637
    assert page.value("disk_busy_seconds_total", device="sdc") == pytest.approx(10.73)
    assert page.value("network_errors_total", device="lo", direction="rx", kind="drops") == 0


def test_network_traffic_has_a_direction() -> None:
    found = read(
        'node_network_receive_bytes_total{device="eth0"} 7\nnode_network_transmit_bytes_total{device="eth0"} 9\n'
    )
    assert [found.value("network_bytes_total", device="eth0", direction=d) for d in ("rx", "tx")] == [7, 9]


def test_the_kernel_is_described() -> None:
    (row,) = read('node_uname_info{nodename="n1",release="6.8.0",machine="x86_64"} 1\n').of("host_info")
    assert (row.labels["host"], row.labels["kernel"], row.semantic) == ("n1", "6.8.0", "info")


def test_a_kubelet_page_is_kept_raw(shared: Path) -> None:
    kubelet = read((shared / "data/host_metrics_text/netdata_k8s_kubelet.prom").read_text())
    assert len(kubelet.rows) == 438
    assert {r.value for r in kubelet.rows if r.name == "kubelet_running_pod_count"} == {9}
    assert not lookup("kubelet_running_pod_count")
