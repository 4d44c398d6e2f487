"""NVLink and how GPUs are joined: per link, never added up twice, and as nvidia-smi draws the matrix."""

import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.gpu.library import Code
from collector.gpu.nvml import NvmlReader
from collector.gpu.topology import ranges
from collector.prometheus.exposition import Sample
from tests.collector.gpu.captures import sections
from tests.collector.gpu.fake_nvml import Err, FakeGpu, FakeNvml
from tests.collector.gpu.recording import ALL_LINKS, server_gpu


def read(*gpus: FakeGpu) -> list[Sample]:
    reader = NvmlReader(FakeNvml(*gpus))
    try:
        return reader.read()
    finally:
        reader.close()


def by(samples: list[Sample], name: str, *labels: str) -> dict[tuple[str, ...], float]:
    found = [s for s in samples if s.name == name]
    keyed = {tuple(s.labels.get(label, "") for label in labels): s.value for s in found}
    assert len(keyed) == len(found)
    return keyed


def joined(gpu: FakeGpu, peers: dict[int, int], ancestors: dict[int, int], gpus: list[FakeGpu]) -> None:
    """Lay links from a GPU: peer → number of links; and PCIe ancestors: peer → level."""
    link = 0
    for peer, count in peers.items():
        for _ in range(count):
            gpu.answers |= {
                ("nvmlDeviceGetNvLinkState", link): 1,
                ("nvmlDeviceGetNvLinkRemoteDeviceType", link): 0,
                ("nvmlDeviceGetNvLinkRemotePciInfo", link): gpus[peer].answers["nvmlDeviceGetPciInfo"],
            }
            link += 1
    gpu.fields[91, 0] = link
    for peer, level in ancestors.items():
        gpu.answers["nvmlDeviceGetTopologyCommonAncestor", gpus[peer]] = level


def test_a_link_has_state_version_speed_far_end_traffic_and_errors() -> None:
    samples = read(server_gpu(links=2))
    assert by(samples, "gpu_link_up", "kind", "link", "peer_type", "peer_pci_bus_id") == {
        ("nvlink", "0", "switch", "0000:c1:00.0"): 1,
        ("nvlink", "1", "switch", "0000:c1:00.0"): 1,
    }
    assert by(samples, "gpu_link_version", "link") == {("0",): 4, ("1",): 4}
    assert by(samples, "gpu_link_speed_bytes_per_second", "link") == {("0",): 26.562e9, ("1",): 26.562e9}
    assert by(samples, "gpu_link_bytes_total", "link", "direction") == {
        ("0", "tx"): 1024 * 1024, ("1", "tx"): 2 * 1024 * 1024,
        ("0", "rx"): 2048 * 1024, ("1", "rx"): 2 * 2048 * 1024,
    }  # fmt: skip
    errors = by(samples, "gpu_nvlink_errors_total", "link", "kind")
    assert errors["1", "crc_data"] == 13
    assert len(errors) == 8


def test_a_link_that_is_down_is_zero_and_tells_no_more() -> None:
    gpu = server_gpu(links=2)
    gpu.answers["nvmlDeviceGetNvLinkState", 1] = 0
    samples = read(gpu)
    assert by(samples, "gpu_link_up", "link", "peer_type") == {("0", "switch"): 1, ("1", ""): 0}
    assert by(samples, "gpu_link_speed_bytes_per_second", "link").keys() == {("0",)}


def test_a_driver_that_ignores_the_link_gives_one_number_for_all() -> None:
    gpu = server_gpu(links=3)
    for link in (0, 1, 2, ALL_LINKS):
        gpu.fields[138, link] = 600
    samples = read(gpu)
    traffic = by(samples, "gpu_link_bytes_total", "link", "direction")
    assert traffic["", "tx"] == 600 * 1024
    assert len([key for key in traffic if key[1] == "tx"]) == 1
    assert len([key for key in traffic if key[1] == "rx"]) == 3


def test_newer_links_count_in_bytes_and_errors_by_field() -> None:
    gpu = server_gpu(links=1)
    for key in [key for key in gpu.answers if "ErrorCounter" in str(key)]:
        del gpu.answers[key]
    for field, scope in [key for key in gpu.fields if key[0] in (138, 139, 164)]:
        del gpu.fields[field, scope]
    gpu.fields |= {(202, 0): 777, (204, 0): 888, (90, 0): 53_125, (161, 0): 1, (162, 0): 2, (163, 0): 3}
    samples = read(gpu)
    assert by(samples, "gpu_link_bytes_total", "link", "direction") == {("0", "tx"): 777, ("0", "rx"): 888}
    assert by(samples, "gpu_link_speed_bytes_per_second", "link") == {("0",): 53.125e9}
    assert by(samples, "gpu_nvlink_errors_total", "kind") == {("replay",): 1, ("recovery",): 2, ("crc",): 3}


def test_a_gpu_without_nvlink_has_no_link_series_rather_than_zeros() -> None:
    gpu = server_gpu(links=0)
    del gpu.fields[91, 0]
    assert not {s.name for s in read(gpu)} & {"gpu_link_up", "gpu_link_bytes_total", "gpu_nvlink_errors_total"}


def test_a_counter_that_gives_no_value_now_is_not_zero() -> None:
    gpu = server_gpu(links=1)
    gpu.answers["nvmlDeviceGetNvLinkErrorCounter", 0, 0] = Err(Code.NO_DATA)
    assert math.isnan(by(read(gpu), "gpu_nvlink_errors_total", "kind")["replay",])


def test_links_of_a_real_h200_and_of_eight_a100s(shared: Path) -> None:
    h200 = shared / "data" / "nvidia_smi_captures" / "linux-x86_64__nvidia-h200__590.48.01.txt.gz"
    a100 = shared / "data" / "gpud_fixtures" / "nvidia-smi.nvlink.status.a100.txt"
    for text, gpus, links, total in (
        (sections(h200)["capabilities :: nvlink -s"], 1, 18, 478.116e9),
        (a100.read_text(), 8, 12, 300e9),
    ):
        speeds = [
            re.findall(r"Link (\d+): ([\d.]+) GB/s", part)
            for part in re.split(r"^GPU \d", text, flags=re.MULTILINE)[1:]
        ]
        fakes = []
        for index, of_gpu in enumerate(speeds):
            gpu = server_gpu(index, links=len(of_gpu))
            gpu.fields |= {(164, int(link)): round(float(speed) * 1000) for link, speed in of_gpu}
            fakes.append(gpu)
        samples = read(*fakes)
        found = by(samples, "gpu_link_speed_bytes_per_second", "gpu", "link")
        assert len(found) == gpus * links
        for gpu in range(gpus):
            assert sum(v for (of, _), v in found.items() if of == str(gpu)) == pytest.approx(total)


def test_the_matrix_of_eight_h100s_behind_switches(shared: Path) -> None:
    text = (shared / "data" / "nvidia_smi_topo" / "ml-engineering_topo_4.txt").read_text()
    rows = [line.split() for line in text.splitlines() if re.match(r"GPU\d\s", line)]
    gpus = [server_gpu(index, links=18) for index in range(8)]
    samples = read(*gpus)
    drawn = {(str(i), str(j)): row[1 + j] for i, row in enumerate(rows) for j in range(8) if i != j}
    found = {(s.labels["gpu"], s.labels["peer"]): s.labels["link"] for s in samples if s.name == "gpu_peer_link_info"}
    assert found == drawn
    nodes = {s.labels["gpu"]: s.labels["numa_node"] for s in samples if s.name == "gpu_affinity_info"}
    assert nodes == {str(i): row[-1] for i, row in enumerate(rows)}


def test_without_links_the_closest_pcie_ancestor_is_named() -> None:
    gpus = [server_gpu(index, links=0) for index in range(7)]
    levels = {1: 0, 2: 10, 3: 20, 4: 30, 5: 40, 6: 50}
    joined(gpus[0], {}, levels, gpus)
    samples = read(*gpus)
    found = {s.labels["peer"]: s.labels["link"] for s in samples if s.name == "gpu_peer_link_info"}
    assert found == {"1": "PIX", "2": "PIX", "3": "PXB", "4": "PHB", "5": "NODE", "6": "SYS"}


def test_direct_links_count_per_peer_and_go_before_pcie() -> None:
    gpus = [server_gpu(index, links=0) for index in range(3)]
    joined(gpus[0], {1: 4, 2: 2}, {1: 50, 2: 50}, gpus)
    found = {s.labels["peer"]: s.labels["link"] for s in read(*gpus) if s.name == "gpu_peer_link_info"}
    assert found == {"1": "NV4", "2": "NV2"}


def test_peer_to_peer_states_are_spelt_as_dcgm_exporter_does() -> None:
    gpus = [server_gpu(0), server_gpu(1)]
    gpus[0].answers["nvmlDeviceGetP2PStatus", gpus[1], 0] = 0
    gpus[1].answers["nvmlDeviceGetP2PStatus", gpus[0], 0] = 3
    found = {(s.labels["gpu"], s.labels["status"]) for s in read(*gpus) if s.name == "gpu_p2p_info"}
    assert found == {("0", "OK"), ("1", "TopologyNotSupported")}


@given(st.sets(st.integers(0, 4095)))
def test_ranges_name_every_number_once(numbers: set[int]) -> None:
    ends = [part.split("-") for part in ranges(sorted(numbers)).split(",") if part]
    spelt = [n for pair in ends for n in range(int(pair[0]), int(pair[-1]) + 1)]
    assert spelt == sorted(numbers)


def test_compute_instances_that_share_a_gpu_instance_have_its_memory_once() -> None:
    def part(instance: int, name: str, used: int) -> FakeGpu:
        memory = SimpleNamespace(total=100, used=used, free=100 - used, reserved=0)
        return FakeGpu(
            {
                "nvmlDeviceGetGpuInstanceId": instance,
                "nvmlDeviceGetName": f"NVIDIA Example MIG {name}",
                ("nvmlDeviceGetMemoryInfo", 0x02000028): memory,
            }
        )

    gpu = server_gpu(nvmlDeviceGetMigMode=[1, 1], nvmlDeviceGetMaxMigDeviceCount=7)
    gpu.mig = [part(2, "1c.3g.40gb", 7), part(2, "1c.3g.40gb", 7), part(5, "1g.10gb+me", 9)]
    samples = [s for s in read(gpu) if s.labels.get("mig_instance")]
    assert by(samples, "gpu_memory_bytes", "mig_instance", "mig_profile", "state")["2", "3g.40gb", "used"] == 7
    assert {s.labels["mig_profile"] for s in samples} == {"3g.40gb", "1g.10gb+me"}


def test_a_process_that_computes_and_draws_has_its_memory_once() -> None:
    both = SimpleNamespace(pid=7, usedGpuMemory=1000, gpuInstanceId=0xFFFFFFFF)
    unknown = SimpleNamespace(pid=8, usedGpuMemory=None, gpuInstanceId=0xFFFFFFFF)
    gpu = server_gpu(
        nvmlDeviceGetComputeRunningProcesses_v3=[both, unknown], nvmlDeviceGetGraphicsRunningProcesses_v3=[both]
    )
    samples = read(gpu)
    assert by(samples, "gpu_processes", "type") == {("compute",): 2, ("graphics",): 1}
    memory = by(samples, "gpu_process_memory_bytes", "pid")
    assert memory["7",] == 1000
    assert math.isnan(memory["8",])
