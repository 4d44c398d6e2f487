"""One spelling of a device's names, so that what DCGM, nvidia-smi, NVML and AMD say of one GPU meets."""

import re

_PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])")


def normal(label: str, value: str) -> str:
    """Return a label's value in its one spelling: `pci_bus_id` as 0000:9b:00.0."""
    if label == "pci_bus_id":
        found = _PCI.fullmatch(value.lower())
        return f"{(found[1] or '0000')[-4:]}:{found[2]}" if found else value
    return value
