"""The table that `nvidia-smi` prints for people → samples: less exact than -q, but often all that was saved."""

import re
from collections.abc import Iterator
from itertools import pairwise

from collector.files.devices.device import Device, add_process, read_device
from collector.files.devices.moments import milliseconds, read_moment
from collector.files.devices.reading import Reading, When

MARK = "| NVIDIA-SMI "
_NAME = re.compile(
    r"^\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N/A|TCC|WDDM|MCDM)\s*\|\s+([0-9A-Fa-f:.]+)\s+\S+\s*\|\s*(\S+)\s*\|$"
)
_STATE = re.compile(
    r"^\|\s*(?P<fan>\S+)\s+(?P<temperature>\S+)\s+(?P<pstate>P\d+|N/A|ERR!)\s+(?P<power>\S+)\s*/\s*(?P<limit>\S+)\s*"
    r"\|\s*(?P<used>\S+)\s*/\s*(?P<total>\S+)\s*\|\s*(?P<busy>\S+)\s.*\|$"
)
_PROCESS = re.compile(
    r"^\|\s+(?P<gpu>\d+)\s+(?P<instance>\d+|N/A)\s+(?:\d+|N/A)\s+(?P<pid>\d+)\s+(?P<type>C\+G|C|G|M\+C)\s+"
    r"(?P<name>\S.*?)\s+(?P<memory>\d+MiB|N/A)\s*\|$"
)
_PATHS = {
    "fan": "fan.speed", "temperature": "temperature.gpu", "pstate": "pstate", "power": "power.draw",
    "limit": "enforced.power.limit", "used": "memory.used", "total": "memory.total", "busy": "utilization.gpu",
}  # fmt: skip


def read_table(text: str, when: When, line: int = 1) -> Reading:
    """Return the samples of one table. A name that the table cuts off ('NVIDIA A100-SXM...') is left out."""
    lines = text.split("\n")
    stated = next((at for part in lines if (at := read_moment(part, when.zone)) is not None), None)
    ts_ms = when.at_ms if stated is None else milliseconds(stated)
    reading = Reading()
    labels: dict[str, dict[str, str]] = {}
    for device in _devices(lines, line):
        labels[device.index or ""] = device.labels
        reading.extend(read_device(device, ts_ms))
    for number, part in enumerate(lines, line):
        if (found := _PROCESS.match(part)) and found["gpu"] in labels:
            process = {"pid": found["pid"], "name": found["name"], "used_memory": found["memory"]}
            process |= {"gpu_instance_id": found["instance"]}
            add_process(reading, process, labels[found["gpu"]], number, ts_ms)
    return reading


def _devices(lines: list[str], line: int) -> Iterator[Device]:
    """Yield the GPUs, each of two lines: its name and address, then its state."""
    for number, (name, state) in enumerate(pairwise(lines), line):
        named, stated = _NAME.match(name.rstrip()), _STATE.match(state.rstrip())
        if named is None or stated is None:
            continue
        fields = {path: stated[group] for group, path in _PATHS.items()}
        fields |= {"index": named[1], "pci.bus_id": named[3]}
        fields |= {} if named[2].endswith("...") else {"name": named[2]}
        fields |= {"ecc.errors.uncorrected.volatile.total": named[4]} if named[4].isdecimal() else {}
        yield Device(fields, number, named[1])
