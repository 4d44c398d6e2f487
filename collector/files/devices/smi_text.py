"""`nvidia-smi -q` → samples: indented 'Key : value' lines as a tree with the paths of the XML, where they agree."""

import re
from collections.abc import Mapping

from collector.files.devices.device import Device, read_device
from collector.files.devices.moments import milliseconds, read_moment
from collector.files.devices.reading import Reading, When, broken

MARK = "NVSMI LOG"
_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_NOT_WORD = re.compile(r"[^a-z0-9]+")


class _Log:
    """Reads one log line by line: where in the tree a line stands follows from its indentation."""

    def __init__(self) -> None:
        self.header: dict[str, str] = {}
        self.devices: list[Device] = []
        self._open: list[tuple[int, str]] = []

    def take(self, text: str, line: int) -> None:
        """Take one line."""
        if found := _GPU.match(text):
            self.devices.append(Device({"gpu_bus_id": found[1]}, line))
            self._open = []
            return
        text = text.expandtabs()
        indent = len(text) - len(text.lstrip())
        said, colon, value = f"{text.strip()} ".partition(" : ")
        name = _NOT_WORD.sub("_", said.lower()).strip("_")
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        self._open.append((indent, name))
        self._store([part for _, part in self._open], value.strip() if colon else None)

    def _store(self, path: list[str], value: str | None) -> None:
        if not self.devices:
            self.header["/".join(path)] = value or ""
            return
        device = self.devices[-1]
        if path[0] == "mig_device":
            if len(path) == 1:
                device.migs.append({})
            elif value is not None:
                device.migs[-1]["/".join(path[1:])] = value
        elif path[0] == "processes":
            _store_process(device, path, value)
        elif value is not None:
            device.fields["/".join(path)] = value


def _store_process(device: Device, path: list[str], value: str | None) -> None:
    """Store a field of a process; the next one begins with its GPU instance, in older logs with its id."""
    if len(path) == 1:
        device.processes = None if value and "n/a" in value.lower() else []
        return
    if device.processes is None or value is None:
        return
    name, current = path[-1], device.processes[-1] if device.processes else None
    if current is None or name == "gpu_instance_id" or (name == "process_id" and "process_id" in current):
        device.processes.append({})
    device.processes[-1][name] = value


def read_text(text: str, when: When, line: int = 1, profiles: Mapping[tuple[str, str], str] | None = None) -> Reading:
    """Return the samples of one log, or of several one after the other (`-l`). `profiles` names MIG profiles.

    Raises SourceError for a log without a GPU.
    """
    reading = Reading()
    for at, log in _logs(text, line):
        if not log.devices:
            raise broken(at, "the log of nvidia-smi -q names no GPU", "save the output of nvidia-smi -q again")
        reading.extend(_read_log(log, when, profiles or {}))
    return reading


def _logs(text: str, line: int) -> list[tuple[int, _Log]]:
    found: list[tuple[int, _Log]] = []
    for number, part in enumerate(text.split("\n"), line):
        if MARK in part or not found:
            found.append((number, _Log()))
        if part.strip() and MARK not in part:
            found[-1][1].take(part.rstrip(), number)
    if len(found) > 1 and not found[0][1].devices:
        del found[0]  # what stood before the first log
    return found


def _read_log(log: _Log, when: When, profiles: Mapping[tuple[str, str], str]) -> Reading:
    stated = milliseconds(read_moment(log.header.get("timestamp", ""), when.zone))
    attached = log.header.get("attached_gpus", "")
    whole = not attached.isdecimal() or attached == str(len(log.devices))
    reading = Reading()
    for index, device in enumerate(log.devices):
        device.index = str(index) if whole else None
        device.fields |= {name: log.header[name] for name in ("driver_version", "cuda_version") if name in log.header}
        reading.extend(read_device(device, when.at_ms if stated is None else stated, profiles))
    return reading
