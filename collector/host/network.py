"""Network interfaces: /proc/net/dev. Format: proc_pid_net(5)."""

from collections.abc import Iterator

from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

POD_ENDS = ("veth", "cali", "lxc", "tap")
"""Beginnings of names of the host's end of a container's or guest's interface: they come and go, and count twice."""

_COLUMNS = {"rx": 0, "tx": 8}


def read(tree: Tree) -> Iterator[Sample]:
    """Yield all of every interface.

    /proc/net is the reader's own network namespace; of a host mounted elsewhere that of its first process is wanted.
    """
    own = tree.root.resolve().as_posix() == "/"
    text = None if own else tree.text("/proc/1/net/dev")
    yield from samples((text if text is not None else tree.text("/proc/net/dev")) or "")


def samples(text: str) -> Iterator[Sample]:
    """Yield network_bytes_total (device, direction) and network_errors_total (with kind: errors, drops)."""
    for device, found, numbers in (line.rpartition(":") for line in text.splitlines()):
        name = device.strip()
        if not found or name.startswith(POD_ENDS):
            continue
        counts = [float(n) for n in numbers.split()]
        for direction, first in _COLUMNS.items():
            labels = {"device": name, "direction": direction}
            yield Sample("network_bytes_total", labels, counts[first], None)
            yield Sample("network_errors_total", {**labels, "kind": "errors"}, counts[first + 2], None)
            yield Sample("network_errors_total", {**labels, "kind": "drops"}, counts[first + 3], None)
