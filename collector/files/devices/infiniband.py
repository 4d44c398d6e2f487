"""Files below /sys/class/infiniband, saved as text by path → RDMA port metrics, as the host collector reads them."""

import re
from collections.abc import Iterator, Mapping

import orjson

from collector.files.devices.reading import Reading, When, broken
from collector.host.rdma import counter_samples, port_samples
from collector.prometheus.exposition import Sample

_PORT = re.compile(r"(?:^|/)([^/]+)/ports/(\d+)/(.+)$")
_GREP = re.compile(r"^(\S*ports/\d+/[^:\s]+):(.*)$")
_COUNTERS = ("counters/", "hw_counters/")


def rdma_samples(files: Mapping[str, str]) -> tuple[list[Sample], list[str]]:
    """Return the samples of all ports, and the paths whose text is not what the kernel writes.

    `files` is the text of each file by its path, which may begin anywhere above the device ('mlx5_0/ports/1/state').
    """
    samples: list[Sample] = []
    unreadable: list[str] = []
    for path, text in files.items():
        if found := _PORT.search(path):
            labels = {"device": found[1], "port": found[2]}
            layer = files.get(f"{path[: found.start(3)]}link_layer", "").strip()
            try:
                samples += _read_file(labels, found[3], text.strip(), layer)
            except ValueError:
                unreadable.append(path)
    return samples, unreadable


def _read_file(labels: Mapping[str, str], name: str, text: str, layer: str) -> Iterator[Sample]:
    """Yield what one file of a port says. Raises ValueError for a text that is none of the kernel's."""
    if name == "state":
        yield from port_samples(labels, text, "", layer)
    elif name == "rate":
        found = list(port_samples(labels, "", text, layer))
        if not found:
            raise ValueError("no rate")
        yield from found
    elif name.startswith(_COUNTERS):
        if not text.isdecimal() and not text.startswith("N/A"):
            raise ValueError("no number")
        yield from counter_samples(labels, {name.rpartition("/")[2]: text})


def is_capture(text: str) -> bool:
    """Tell whether a text holds files of InfiniBand ports: JSON lines, or what `grep -r . ports` prints."""
    head = text[:4000]
    return bool(re.search(r'"file"\s*:\s*"[^"]*/(ports/\d+/|board_id|fw_ver)', head) and '"value"' in head) or any(
        _GREP.match(line) for line in head.split("\n")[:3]
    )


def read_infiniband(text: str, when: When, line: int = 1) -> Reading:
    """Return the samples of a capture. Raises SourceError where no line of it is a file of a port."""
    reading = Reading()
    files: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, part in enumerate(text.split("\n"), line):
        if not part.strip():
            continue
        entry = _entry(part)
        if entry is None:
            reading.refuse("line that is no file with its value", number)
            continue
        files[entry[0]], lines[entry[0]] = entry[1], number
    samples, unreadable = rdma_samples(files)
    reading.samples = [sample._replace(ts_ms=when.at_ms) for sample in samples]
    for path in unreadable:
        reading.refuse("unreadable value", lines[path])
    if not reading.samples:
        raise broken(line, "no file of an InfiniBand port", "save: grep -r . /sys/class/infiniband/*/ports")
    return reading


def _entry(part: str) -> tuple[str, str] | None:
    if found := _GREP.match(part):
        return found[1], found[2]
    try:
        row = orjson.loads(part)
    except orjson.JSONDecodeError:
        return None
    file, value = (row.get("file"), row.get("value")) if isinstance(row, dict) else (None, None)
    return (file, str(value)) if isinstance(file, str) and value is not None else None
