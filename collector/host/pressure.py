"""Pressure stall information: /proc/pressure. Format: Documentation/accounting/psi.rst; total in microseconds."""

from collections.abc import Iterator

from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

RESOURCES = ("cpu", "memory", "io", "irq")
_WINDOWS = {"avg10": "10s", "avg60": "60s", "avg300": "300s"}


def read(tree: Tree) -> Iterator[Sample]:
    """Yield the pressure on each resource; a kernel without it (psi=0), or without irq, has less or nothing."""
    for resource in RESOURCES:
        yield from samples(resource, tree.text(f"/proc/pressure/{resource}") or "")


def samples(resource: str, text: str) -> Iterator[Sample]:
    """Yield host_pressure_seconds_total (resource, kind) and host_pressure_ratio (with window).

    All tasks of a host cannot wait for CPU at once: the line `full` of cpu says nothing and is left out.
    """
    for line in text.splitlines():
        kind, *fields = line.split()
        if resource == "cpu" and kind == "full":
            continue
        labels = {"resource": resource, "kind": kind}
        for name, _, value in (field.partition("=") for field in fields):
            if name == "total":
                yield Sample("host_pressure_seconds_total", labels, int(value) / 1e6, None)
            elif name in _WINDOWS:
                windowed = {**labels, "window": _WINDOWS[name]}
                yield Sample("host_pressure_ratio", windowed, float(value) / 100, None)
