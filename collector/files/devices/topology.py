"""`nvidia-smi topo -m` and `topo -p2p` → how GPUs and network cards are joined, and the CPUs next to each GPU."""

import re
from collections.abc import Mapping, Sequence

from collector.files.devices.reading import Reading, When, broken

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_HEADER = re.compile(r"CPU Affinity|NUMA Affinity|GPU NUMA ID|\S+")
_AFFINITY = {"CPU Affinity": "cpus", "NUMA Affinity": "numa_node", "GPU NUMA ID": "gpu_numa_id"}
_GPU = re.compile(r"^GPU(\d+)$")
_NIC = re.compile(r"^\s*(NIC\d+):\s*(\S+)\s*$")
_LINK = re.compile(r"^(NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|PSB)$")
_STATES = {
    "OK": "OK", "CNS": "ChipsetNotSupported", "GNS": "GPUNotSupported", "TNS": "TopologyNotSupported",
    "DR": "DisabledByRegKey", "NS": "NotSupported", "U": "Unknown",
}  # fmt: skip


def is_header(line: str) -> bool:
    """Tell whether a line names the columns of the matrix."""
    names = _ANSI.sub("", line).split()
    return bool(names) and bool(_GPU.match(names[0])) and all(n.isupper() or n[:1].isupper() for n in names[:2])


def read_topology(text: str, when: When, line: int = 1) -> Reading:
    """Return one series for each pair of a GPU and another device, and one for the host side of each GPU.

    The label `peer` is the index of a GPU, else the name of the network card. Raises SourceError where no row fits.
    """
    lines = [(number, _ANSI.sub("", part)) for number, part in enumerate(text.split("\n"), line)]
    cards = {found[1]: found[2] for _, part in lines if (found := _NIC.match(part))}
    head = next((index for index, (_, part) in enumerate(lines) if is_header(part)), None)
    reading = Reading()
    if head is not None:
        columns = _HEADER.findall(lines[head][1])
        for number, part in lines[head + 1 :]:
            _read_row(reading, columns, part.split(), cards, when, number)
    if not reading.samples:
        raise broken(line, "no row of a topology matrix", "save the output of nvidia-smi topo -m again")
    return reading


def _read_row(
    reading: Reading, columns: Sequence[str], cells: Sequence[str], cards: Mapping[str, str], when: When, line: int
) -> None:
    found = _GPU.match(cells[0]) if cells else None
    if found is None or len(cells) < 2 or cells[1] == "=":
        return  # a network card (its links stand in the rows of the GPUs), or the legend
    peers = [name for name in columns if name not in _AFFINITY]
    row = cells[1:]
    if len(row) < len(peers):
        reading.refuse("row with fewer cells than the header", line)
        return
    for name, cell in zip(peers, row, strict=False):
        _add_peer(reading, found[1], name, cell, cards, when, line)
    host = dict(zip((_AFFINITY[name] for name in columns if name in _AFFINITY), row[len(peers) :], strict=False))
    known = {name: text for name, text in host.items() if text != "N/A" and name != "gpu_numa_id"}
    if known:
        reading.add("gpu_affinity_info", {"gpu": found[1], **known}, 1.0, when.at_ms)


def _add_peer(
    reading: Reading, gpu: str, name: str, cell: str, cards: Mapping[str, str], when: When, line: int
) -> None:
    found = _GPU.match(name)
    labels = {"gpu": gpu, "peer": found[1] if found else cards.get(name, name)}
    if _LINK.match(cell):
        reading.add("gpu_peer_link_info", {**labels, "link": cell}, 1.0, when.at_ms)
    elif cell in _STATES:
        reading.add("gpu_p2p_info", {**labels, "status": _STATES[cell]}, 1.0, when.at_ms)
    elif cell.upper() != "X":
        reading.refuse("unknown kind of link", line)
