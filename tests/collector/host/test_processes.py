"""Processes that hold GPUs or are engines, and their CPUs beside their GPU's node."""

from pathlib import Path

import pytest

from collector.host.processes import RECHECK, called, is_engine
from collector.host.reader import HostReader
from tests.collector.host.conftest import finder
from tests.collector.host.tree_of import process, write

ENGINE = ["/opt/venv/bin/python3", "-m", "vllm.entrypoints.openai.api_server", "--port", "8000"]


def affinities(reader: HostReader) -> list[dict[str, str]]:
    return [labels for labels, _ in finder(reader.read())("process_affinity_info")]


def test_a_process_on_the_other_socket_than_its_gpu_shows_both(root: Path) -> None:
    process(root, 700, ENGINE, "0", ["/dev/null", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"])
    assert affinities(HostReader(root)) == [
        {
            "pid": "700",
            "process": "vllm.entrypoints.openai.api_server",
            "cpus": "0",
            "numa_nodes": "0",
            "gpu": "0",
            "pci_bus_id": "0000:9b:00.0",
            "gpu_numa_node": "1",
        }
    ]


def test_an_amd_gpu_is_found_by_its_render_file(root: Path) -> None:
    write(root, {"/sys/class/drm/renderD129/dev": "226:129\n"})
    (root / "sys/class/drm/renderD129/device").symlink_to("../../../0000:c1:00.0")
    process(root, 701, ["/usr/bin/worker"], "0-1", ["/dev/kfd", "/dev/dri/renderD129"])
    (found,) = affinities(HostReader(root))
    assert (found["gpu"], found["pci_bus_id"], found["numa_nodes"]) == ("1", "0000:c1:00.0", "0,1")
    assert "gpu_numa_node" not in found


def test_an_engine_without_a_gpu_is_named_and_others_are_not(root: Path) -> None:
    process(root, 2, [], "0-1", [])
    process(root, 50, ["/usr/sbin/sshd", "-D"], "0-1", ["/dev/null"])
    process(root, 702, ["VLLM::EngineCore"], "0-1", [])
    assert affinities(HostReader(root)) == [
        {"pid": "702", "process": "VLLM::EngineCore", "cpus": "0-1", "numa_nodes": "0,1"}
    ]


def test_a_process_that_takes_a_gpu_later_is_seen_before_long(root: Path) -> None:
    process(root, 703, ["/usr/bin/worker"], "1", [])
    reader = HostReader(root)
    assert affinities(reader) == []
    (root / "proc/703/fd/9").symlink_to("/dev/nvidia0")
    seen = [affinities(reader) for _ in range(RECHECK)]
    assert [found["pid"] for found in seen[-1]] == ["703"]


def test_a_pid_used_again_is_another_process(root: Path) -> None:
    process(root, 704, ENGINE, "0", ["/dev/nvidia0"])
    reader = HostReader(root)
    assert len(affinities(reader)) == 1
    for file in (root / "proc/704").rglob("*"):
        if not file.is_dir():
            file.unlink()
    (root / "proc/704/fd").rmdir()
    process(root, 704, ["/bin/sleep", "9"], "0", [], started=6)
    assert affinities(reader) == []


def test_open_files_that_may_not_be_looked_at_are_counted(root: Path) -> None:
    process(root, 705, ENGINE, "0-1", [])
    (root / "proc/705/fd").rmdir()
    reader = HostReader(root)
    assert [found["pid"] for found in affinities(reader)] == ["705"]
    assert reader.skipped["/proc/*/fd"].files == 1


@pytest.mark.parametrize(
    ("arguments", "name", "engine"),
    [
        (["/usr/bin/python3.11", "-u", "/opt/sglang/launch_server.py"], "launch_server.py", True),
        (["/usr/local/bin/vllm", "serve", "m"], "vllm", True),
        (["trtllm-serve", "m"], "trtllm-serve", True),
        (["/usr/bin/less", "a", "b", "notes-on-vllm.txt"], "less", False),
        (["bash"], "bash", False),
    ],
)
def test_a_process_is_called_by_its_program_or_script(arguments: list[str], name: str, engine: bool) -> None:
    assert (called(arguments), is_engine(arguments)) == (name, engine)
