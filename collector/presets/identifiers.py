"""One spelling of a device's names, so that what DCGM, nvidia-smi, NVML and AMD say of one GPU meets."""

import re

_PCI = re.compile(r"^(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?$", re.IGNORECASE)


def pci_bus_id(text: str) -> str | None:
    """Return a PCI address as the kernel writes it ('00000000:9B:00.0' and '0000:9b:00' → '0000:9b:00.0')."""
    found = _PCI.match(text.strip())
    if found is None:
        return None
    domain, bus, device, function = (int(part or "0", 16) for part in found.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def normal(label: str, value: str) -> str:
    """Return a label's value in its one spelling, where it has one: that of `pci_bus_id`."""
    return (pci_bus_id(value) or value) if label == "pci_bus_id" else value
