"""RDMA ports: a recorded tree of eight-port H100 hosts, and what ports of other kinds say."""

import json
from pathlib import Path

import pytest

from collector.host import rdma
from collector.host.tree import Tree
from tests.collector.host.conftest import Find, finder
from tests.collector.host.tree_of import write


@pytest.fixture
def h100(shared: Path, tmp_path: Path) -> Find:
    text = (shared / "data/gpud_fixtures/infiniband_sysfs_sys-class-infiniband-h100.0.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    root = write(tmp_path, {f"/sys/class/infiniband/{row['file']}": f"{row['value']}\n" for row in rows})
    return finder(list(rdma.read(Tree(root))))


def test_data_counters_are_words_of_four_bytes(h100: Find) -> None:
    port = {"device": "mlx5_0", "port": "1"}
    assert h100("rdma_port_bytes_total", **port, direction="rx")[0][1] == 230539874932483 * 4
    assert h100("rdma_port_bytes_total", **port, direction="tx")[0][1] == 230442669431839 * 4
    assert h100("rdma_port_packets_total", **port, direction="rx")[0][1] == 317548853677


def test_a_port_is_up_and_has_its_speed(h100: Find) -> None:
    port = {"device": "mlx5_0", "port": "1"}
    assert h100("rdma_port_up", **port) == [({**port, "link_layer": "InfiniBand"}, 1.0)]
    assert h100("rdma_port_speed_bytes_per_second", **port) == [(port, 50e9)]


def test_errors_and_congestion_are_told_apart(h100: Find) -> None:
    port = {"device": "mlx5_0", "port": "1"}
    errors = {labels["kind"]: n for labels, n in h100("rdma_port_errors_total", **port) if n}
    assert errors == {
        "excessive_buffer_overrun_errors": 15,
        "port_rcv_errors": 14,
        "port_rcv_switch_relay_errors": 1,
        "roce_adp_retrans": 3,
    }
    assert h100("rdma_port_congestion_total", **port, kind="port_xmit_wait")[0][1] == 2489603687


def test_every_port_of_the_recording_is_there(h100: Find, shared: Path) -> None:
    text = (shared / "data/gpud_fixtures/infiniband_sysfs_sys-class-infiniband-h100.0.jsonl").read_text()
    files = [json.loads(line)["file"] for line in text.splitlines()]
    ports = {file.split("/")[0] for file in files if file.endswith("/state")}
    assert {labels["device"] for labels, _ in h100("rdma_port_up")} == ports
    assert len(ports) > 7


def test_a_port_that_is_down_is_0_and_a_counter_that_it_lacks_is_absent() -> None:
    found = finder(list(rdma.port_samples({"device": "m", "port": "1"}, "1: DOWN", "40 Gb/sec (4X QDR)", "")))
    assert found("rdma_port_up")[0][1] == 0
    assert found("rdma_port_speed_bytes_per_second")[0][1] == 5e9
    assert list(rdma.counter_samples({}, {"port_rcv_data": "N/A (no PMA)", "lifespan": "12"})) == []


def test_the_tenths_of_an_old_speed_are_kept() -> None:
    found = finder(list(rdma.port_samples({}, "", "2.5 Gb/sec (1X SDR)", "")))
    assert found("rdma_port_speed_bytes_per_second")[0][1] == pytest.approx(312.5e6)
