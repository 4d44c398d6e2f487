"""What does not change while the driver is loaded: the GPU itself, its CPUs and memory node, how GPUs are joined."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from collector.gpu.ask import NOT_NOW
from collector.gpu.device import Device
from collector.prometheus.exposition import Sample

_WORDS = 64
"""64-bit words asked for in a set of CPUs or nodes: 4,096 of them."""
_NODE_SCOPE = 0
_READ = 0
_ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada Lovelace", 9: "Hopper",
    10: "Blackwell", 13: "Rubin",
}  # fmt: skip
_ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_P2P = {
    0: "OK", 1: "ChipsetNotSupported", 2: "GPUNotSupported", 3: "TopologyNotSupported", 4: "DisabledByRegKey",
    5: "NotSupported",
}  # fmt: skip


def facts(device: Device, system: Mapping[str, str]) -> Iterator[Sample]:
    """Yield what a GPU is, and where it sits. `system` are labels that hold for all GPUs (driver, CUDA)."""
    asker = device.asker
    found = {
        "vbios": _text(asker.ask("gpu_info vbios", "nvmlDeviceGetVbiosVersion")),
        "serial": _text(asker.ask("gpu_info serial", "nvmlDeviceGetSerial")),
        "architecture": _ARCHITECTURES.get(asker.ask("gpu_info architecture", "nvmlDeviceGetArchitecture"), ""),
        "compute_capability": _version(asker.ask("gpu_info compute_capability", "nvmlDeviceGetCudaComputeCapability")),
    }
    labels = {**device.labels, **system, **{name: text for name, text in found.items() if text}}
    yield Sample("gpu_info", labels, 1.0, None)
    cpus = asker.ask("gpu_affinity_info cpus", "nvmlDeviceGetCpuAffinity", _WORDS)
    nodes = asker.ask("gpu_affinity_info numa_node", "nvmlDeviceGetMemoryAffinity", _WORDS, _NODE_SCOPE)
    place = {"cpus": ranges(_bits(cpus)), "numa_node": ranges(_bits(nodes))}
    if any(place.values()):
        yield Sample("gpu_affinity_info", {**device.labels, **place}, 1.0, None)


def joins(device: Device, others: Sequence[Device]) -> Iterator[Sample]:
    """Yield how a GPU reaches each other one: NV and the number of NVLinks, else the closest common PCIe ancestor."""
    links = Counter(peer.get("peer_pci_bus_id") for peer in device.peers.values())
    for other in others:
        if other is device:
            continue
        labels = {**device.labels, "peer": str(other.identity.index)}
        direct = links[other.identity.pci_bus_id] or min(_switched(device), _switched(other))
        ancestor = _of_pair(device, other, "gpu_peer_link_info", "nvmlDeviceGetTopologyCommonAncestor")
        link = f"NV{direct}" if direct else _ANCESTORS.get(ancestor, "") if isinstance(ancestor, int) else ""
        if link:
            yield Sample("gpu_peer_link_info", {**labels, "link": link}, 1.0, None)
        status = _of_pair(device, other, "gpu_p2p_info", "nvmlDeviceGetP2PStatus", _READ)
        if isinstance(status, int):
            yield Sample("gpu_p2p_info", {**labels, "status": _P2P.get(status, "Unknown")}, 1.0, None)


def _of_pair(device: Device, other: Device, metric: str, call: str, *args: Any) -> Any:
    asker = device.asker
    return asker.attempt(
        metric,
        (call, other.identity.index),
        lambda: getattr(asker.nvml, call)(asker.handle, other.asker.handle, *args),
    )


def _switched(device: Device) -> int:
    return sum(peer.get("peer_type") == "switch" for peer in device.peers.values())


def _text(answer: Any) -> str:
    return answer.strip() if isinstance(answer, str) else ""


def _version(answer: Any) -> str:
    return ".".join(map(str, answer)) if isinstance(answer, (tuple, list)) else ""


def _bits(words: Any) -> list[int]:
    if words is None or words is NOT_NOW:
        return []
    return [64 * n + bit for n, word in enumerate(words) for bit in range(64) if word >> bit & 1]


def ranges(numbers: Sequence[int]) -> str:
    """Write sorted numbers as Linux does: 0-51,104-155."""
    starts = [n for n in numbers if n - 1 not in set(numbers)]
    ends = [n for n in numbers if n + 1 not in set(numbers)]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
