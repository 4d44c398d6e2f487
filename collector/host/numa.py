"""NUMA nodes: CPUs, distances, memory, where pages came from. Format: admin-guide/numastat.rst, sysfs-devices-node."""

from collections.abc import Iterator, Sequence

from collector.host.memory import sizes
from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

BASE = "/sys/devices/system/node"

_STATES = {
    "MemTotal": "total",
    "MemFree": "free",
    "MemUsed": "used",
    "FilePages": "cached",
    "Dirty": "dirty",
    "AnonPages": "anonymous",
    "Shmem": "shmem",
    "Slab": "slab",
}
_KINDS = {
    "numa_hit": "hit",
    "numa_miss": "miss",
    "numa_foreign": "foreign",
    "local_node": "local",
    "other_node": "other",
    "interleave_hit": "interleave",
}


def nodes(tree: Tree) -> list[str]:
    """Return the numbers of the nodes that are online, in numeric order."""
    return [name.removeprefix("node") for name in tree.names(BASE) if name.removeprefix("node").isdigit()]


def read(tree: Tree) -> Iterator[Sample]:
    """Yield all of every node."""
    found = nodes(tree)
    for node in found:
        base = f"{BASE}/node{node}"
        cpus = tree.text(f"{base}/cpulist")
        if cpus is not None:
            yield info_sample(node, cpus)
        yield from distance_samples(node, found, tree.text(f"{base}/distance") or "")
        yield from memory_samples(node, tree.text(f"{base}/meminfo") or "")
        yield from page_samples(node, tree.text(f"{base}/numastat") or "")


def info_sample(node: str, cpulist: str) -> Sample:
    """Return numa_node_info (node, cpus); a node of memory alone (CXL, HBM) has an empty list of CPUs."""
    return Sample("numa_node_info", {"node": node, "cpus": cpulist.strip()}, 1.0, None)


def distance_samples(node: str, online: Sequence[str], text: str) -> Iterator[Sample]:
    """Yield numa_distance (node, peer); the file has one number per node that is online."""
    for peer, distance in zip(online, text.split(), strict=False):
        yield Sample("numa_distance", {"node": node, "peer": peer}, float(distance), None)


def memory_samples(node: str, text: str) -> Iterator[Sample]:
    """Yield numa_memory_bytes (node, state)."""
    found = sizes("\n".join(line.strip().removeprefix(f"Node {node} ") for line in text.splitlines()))
    for name, state in _STATES.items():
        if name in found:
            yield Sample("numa_memory_bytes", {"node": node, "state": state}, found[name], None)


def page_samples(node: str, text: str) -> Iterator[Sample]:
    """Yield numa_pages_total (node, kind)."""
    for name, _, count in (line.partition(" ") for line in text.splitlines()):
        if name in _KINDS:
            yield Sample("numa_pages_total", {"node": node, "kind": _KINDS[name]}, float(count), None)
