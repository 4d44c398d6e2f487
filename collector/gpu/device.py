"""A GPU as NVML names it: identity, labels, and what is known of it between two reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from collector.gpu.ask import Ask, Asker, Part
from collector.prometheus.exposition import Sample

PERCENT = 0.01
MILLI = 1e-3
MHZ = 1e6
NS = 1e-9
KB = 1000.0
KIB = 1024.0
_LONG_ADDRESS = len("00000000:00:00.0")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a GPU is known by; `index` is NVML's and may change when a GPU is taken out."""

    index: int
    uuid: str = ""
    model: str = ""
    pci_bus_id: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """Labels of every series of this GPU; what is not known is left out."""
        known = {
            "gpu": str(self.index),
            "gpu_uuid": self.uuid,
            "gpu_model": self.model,
            "pci_bus_id": self.pci_bus_id,
        }
        return {name: value for name, value in known.items() if value}


@dataclass(slots=True)
class Device:
    """A GPU that was found.

    `labels` are those of every series. `driver` is the driver's major version. `facts` do not change while the driver
    is loaded. `peers` are the labels of the far end of each NVLink; `timings_s` says what a group of questions took.
    """

    identity: Identity
    asker: Asker
    labels: Mapping[str, str]
    driver: int = 0
    facts: list[Sample] = field(default_factory=list)
    peers: dict[int, dict[str, str]] = field(default_factory=dict)
    timings_s: dict[str, float] = field(default_factory=dict)


def bus_id(text: str | bytes) -> str:
    """Write a PCI address as the kernel does: 00000000:9B:00.0 is 0000:9b:00.0."""
    address = (text.decode() if isinstance(text, bytes) else text).strip().lower()
    return address[4:] if len(address) == _LONG_ADDRESS and address.startswith("0000") else address


def one(metric: str, call: str, *args: Any, scale: float = 1.0, instead: Ask | None = None, **labels: str) -> Ask:
    """Return the question whose answer is the value of one metric."""
    return Ask(call, (Part(metric, labels, scale),), args, instead)
