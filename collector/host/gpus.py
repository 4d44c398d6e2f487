"""GPUs of a host as the kernel sees them: PCI address, NUMA node, device files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from collector.host.tree import Tree

PCI = "/sys/bus/pci/devices"
_VENDORS = ("0x10de", "0x1002")  # NVIDIA, AMD
_CLASSES = ("0x03", "0x12")  # display controllers; processing accelerators, as MI200 and newer say
_FIRST_RENDER = 128
"""Minor number of /dev/dri/renderD128, the first GPU's."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: the number in its device file, its address, and the NUMA node it is at (empty: the host has but one)."""

    gpu: str
    pci_bus_id: str
    numa_node: str

    @property
    def labels(self) -> dict[str, str]:
        """Labels of this GPU on a series of a process."""
        known = {"gpu": self.gpu, "pci_bus_id": self.pci_bus_id, "gpu_numa_node": self.numa_node}
        return {name: value for name, value in known.items() if value}


def by_device_file(tree: Tree) -> Mapping[str, Gpu]:
    """Return the GPUs by the files under /dev that a process opens to use them."""
    addresses = [address for address in tree.names(PCI) if _is_gpu(tree, address)]
    if not addresses:
        return {}
    return dict(_nvidia(tree, addresses)) | dict(_amd(tree, addresses))


def _is_gpu(tree: Tree, address: str) -> bool:
    return tree.word(f"{PCI}/{address}/vendor") in _VENDORS and tree.word(f"{PCI}/{address}/class").startswith(_CLASSES)


def _nvidia(tree: Tree, addresses: list[str]) -> Iterator[tuple[str, Gpu]]:
    for address in addresses:
        if tree.word(f"{PCI}/{address}/vendor") == _VENDORS[0]:
            minor = _minor(tree.text(f"/proc/driver/nvidia/gpus/{address}/information") or "")
            if minor:
                yield f"/dev/nvidia{minor}", _gpu(tree, minor, address)


def _minor(information: str) -> str:
    lines = (line.partition(":") for line in information.splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == "Device Minor"), "")


def _amd(tree: Tree, addresses: list[str]) -> Iterator[tuple[str, Gpu]]:
    for name in tree.names("/sys/class/drm"):
        number = name.removeprefix("renderD")
        if number.isdigit():
            address = (tree.link(f"/sys/class/drm/{name}/device") or "").rpartition("/")[2]
            if address in addresses and tree.word(f"{PCI}/{address}/vendor") == _VENDORS[1]:
                yield f"/dev/dri/{name}", _gpu(tree, str(int(number) - _FIRST_RENDER), address)


def _gpu(tree: Tree, number: str, address: str) -> Gpu:
    return Gpu(number, address.lower(), tree.word(f"{PCI}/{address}/numa_node").removeprefix("-1"))
