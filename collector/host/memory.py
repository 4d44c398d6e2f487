"""Memory: /proc/meminfo. Format: proc_meminfo(5); kB are 1024 bytes."""

from collections.abc import Iterator, Mapping

from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

STATES = {
    "MemTotal": "total",
    "MemAvailable": "available",
    "MemFree": "free",
    "Cached": "cached",
    "Buffers": "buffers",
    "Dirty": "dirty",
    "Writeback": "writeback",
    "Shmem": "shmem",
    "Slab": "slab",
    "AnonPages": "anonymous",
    "SwapTotal": "swap_total",
    "SwapFree": "swap_free",
}
_HUGE_PAGES = {"HugePages_Total": "hugepages_total", "HugePages_Free": "hugepages_free"}


def read(tree: Tree) -> Iterator[Sample]:
    """Yield host_memory_bytes (state)."""
    found = sizes(tree.text("/proc/meminfo") or "")
    for name, state in STATES.items():
        if name in found:
            yield Sample("host_memory_bytes", {"state": state}, found[name], None)
    for name, state in _HUGE_PAGES.items():
        if name in found and "Hugepagesize" in found:
            yield Sample("host_memory_bytes", {"state": state}, found[name] * found["Hugepagesize"], None)


def sizes(text: str) -> Mapping[str, float]:
    """Return the fields of a meminfo file in bytes; counts (HugePages_*) as they are."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        number, _, unit = value.strip().partition(" ")
        if number:
            found[name] = float(number) * (1024.0 if unit == "kB" else 1.0)
    return found
