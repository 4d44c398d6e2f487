"""Disks: /proc/diskstats. Format: Documentation/admin-guide/iostats.rst; a sector is 512 bytes on every disk."""

from collections.abc import Collection, Iterator

from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

SECTOR_BYTES = 512
_MADE_UP = ("loop", "ram", "zram")


def read(tree: Tree) -> Iterator[Sample]:
    """Yield all of every disk."""
    yield from samples(tree.text("/proc/diskstats") or "", tree.names("/sys/block"))


def samples(text: str, whole: Collection[str]) -> Iterator[Sample]:
    """Yield disk_bytes_total and disk_operations_total (device, direction), disk_busy_seconds_total (device).

    `whole` are the names of disks: a partition is a part of one and left out, as are loop and RAM disks. Mapped and
    RAID devices (dm-*, md*) stay beside the disks below them.
    """
    for fields in (line.split() for line in text.splitlines()):
        device, counts = fields[2], [float(n) for n in fields[3:]]
        if device.startswith(_MADE_UP) or (whole and device not in whole):
            continue
        for direction, first in (("read", 0), ("write", 4)):
            labels = {"device": device, "direction": direction}
            yield Sample("disk_operations_total", labels, counts[first], None)
            yield Sample("disk_bytes_total", labels, counts[first + 2] * SECTOR_BYTES, None)
        yield Sample("disk_busy_seconds_total", {"device": device}, counts[9] / 1000, None)
