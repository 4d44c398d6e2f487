"""Alerts on exporters' own metrics, which work without infractl. A group is one module and one line here."""

from collections.abc import Sequence
from importlib import import_module

from rules.pack.packed import Packed

GROUPS = {
    "gpus": "GPUs: faults, worn memory, clocks held down, one unlike its peers.",
    "links": "What joins GPUs: NVLink, PCIe, RDMA ports.",
    "engines": "Serving engines: queue, cache, errors, hangs, prompts.",
}


def pack() -> list[tuple[str, Sequence[Packed]]]:
    """Return the alerts by group."""
    return [(name, import_module(f"rules.pack.{name}").ALERTS) for name in GROUPS]
