"""Processes that use GPUs or serve models, and the CPUs they may run on. Format: proc_pid_status(5), proc_pid_fd(5).

Going through the open files of every process is the dearest thing a read does, so a process is gone through when it is
new and then every RECHECK reads.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from collector.host.cpulist import cpus_of
from collector.host.gpus import Gpu
from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

RECHECK = 8
_GPU_FILE = re.compile(r"/dev/(nvidia\d+|kfd)")
_ENGINE = re.compile(r"vllm|sglang|trtllm|tensorrt_llm|tritonserver", re.IGNORECASE)
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*|bash|sh|env")
_LONGEST_NAME = 64
_ARGUMENTS = 3
"""How far into a command line the name of an engine is looked for: `python -m vllm…`, `/usr/bin/vllm serve`."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process worth a series: what it is called and which files of GPUs it holds open."""

    name: str
    files: tuple[str, ...]


@dataclass(slots=True)
class Watch:
    """Remembers which processes are worth a series."""

    _reads: int = 0
    _known: dict[tuple[str, str], Process | None] = field(default_factory=dict)

    def read(
        self, tree: Tree, gpus: Mapping[str, Gpu], cpus_of_nodes: Mapping[str, frozenset[int]]
    ) -> Iterator[Sample]:
        """Yield process_affinity_info of every process that holds a GPU or is an engine by its name."""
        self._reads += 1
        before, self._known = self._known, {}
        for pid in (name for name in tree.names("/proc") if name.isdigit()):
            stat = tree.text(f"/proc/{pid}/stat")
            if stat is None:
                continue
            who = (pid, start_time(stat))
            fresh = who not in before or (self._reads + int(pid)) % RECHECK == 0
            process = self._known[who] = _look(tree, pid) if fresh else before[who]
            status = tree.text(f"/proc/{pid}/status") if process else None
            if process and status is not None:
                held = [gpus[file] for file in process.files if file in gpus]
                yield from samples(pid, process.name, allowed(status), held, cpus_of_nodes)


def _look(tree: Tree, pid: str) -> Process | None:
    arguments = [text for text in (tree.text(f"/proc/{pid}/cmdline") or "").split("\0") if text]
    if not arguments:  # a thread of the kernel
        return None
    base = f"/proc/{pid}/fd"
    links = {tree.link(f"{base}/{number}") for number in tree.names(base)}
    files = tuple(sorted(link for link in links if link))
    if any(_GPU_FILE.fullmatch(file) for file in files) or is_engine(arguments):
        return Process(called(arguments), files)
    return None


def start_time(stat: str) -> str:
    """Return when a process started, in ticks: it tells apart processes that had one number after the other."""
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def is_engine(arguments: Iterable[str]) -> bool:
    """Whether a command line is that of an inference engine."""
    return any(_ENGINE.search(argument) for argument in list(arguments)[:_ARGUMENTS])


def called(arguments: Iterable[str]) -> str:
    """Return a short name of a command line: the program, or the script or module that an interpreter runs."""
    first, *rest = arguments
    name = first.rpartition("/")[2]
    if _INTERPRETER.fullmatch(name):
        name = next((argument.rpartition("/")[2] for argument in rest if not argument.startswith("-")), name)
    return name[:_LONGEST_NAME]


def allowed(status: str) -> str:
    """Return Cpus_allowed_list of a status file; empty where it has none."""
    lines = (line.partition(":") for line in status.splitlines())
    return next((value.strip() for name, _, value in lines if name == "Cpus_allowed_list"), "")


def samples(
    pid: str, name: str, cpus: str, held: Iterable[Gpu], cpus_of_nodes: Mapping[str, frozenset[int]]
) -> Iterator[Sample]:
    """Yield process_affinity_info (pid, process, cpus, numa_nodes), once per GPU held (gpu, pci_bus_id, gpu_numa_node).

    `gpu` is the number in the GPU's device file. A process that holds no GPU has one series without those labels.
    """
    mine = cpus_of(cpus)
    nodes = ",".join(node for node, there in cpus_of_nodes.items() if mine & there)
    labels = {"pid": pid, "process": name, "cpus": cpus, "numa_nodes": nodes}
    for more in [gpu.labels for gpu in held] or [{}]:
        yield Sample("process_affinity_info", {**labels, **more}, 1.0, None)
