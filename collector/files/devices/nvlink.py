"""`nvidia-smi nvlink` (-s state and speed, -e errors, -gt d traffic) and `nvidia-smi -L` → links and names of GPUs."""

import re

from collector.files.devices.quantity import is_missing, quantity
from collector.files.devices.reading import Reading, When

GPU_LINE = re.compile(r"^\s*GPU (\d+): (.+?) \(UUID: ([^)]+)\)\s*$")
MIG_LINE = re.compile(r"^\s*MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^)]+)\)\s*$")
LINK_LINE = re.compile(r"^\s*Link (\d+): (.+?)\s*$")
_ERRORS = re.compile(r"^(Replay|Recovery|CRC(?: FLIT)?|CRC Data) (?:Error(?:s| Counter)?)?: *(\S+)$", re.IGNORECASE)
_TRAFFIC = re.compile(r"^Data (Tx|Rx): *(.+)$", re.IGNORECASE)
_KINDS = {"replay": "replay", "recovery": "recovery", "crc": "crc_flit", "crc flit": "crc_flit", "crc data": "crc_data"}


def read_nvlink(text: str, when: When, line: int = 1) -> Reading:
    """Return the state of every link. A link that is inactive is 0 and has no speed."""
    reading, labels = Reading(), dict[str, str]()
    for number, part in enumerate(text.split("\n"), line):
        if found := GPU_LINE.match(part):
            labels = {"gpu": found[1], "gpu_model": found[2], "gpu_uuid": found[3]}
            reading.know(labels)
        elif (found := LINK_LINE.match(part)) and labels:
            _read_link(reading, {**labels, "kind": "nvlink", "link": found[1]}, found[2], when, number)
        elif "not supported" in part or "Unable to retrieve" in part:
            reading.notes.append(f"GPU {labels.get('gpu', '?')}: {part.strip()}")
    return reading


def _read_link(reading: Reading, labels: dict[str, str], said: str, when: When, line: int) -> None:
    try:
        if found := _ERRORS.match(said):
            kind = _KINDS[found[1].lower()]
            reading.add("gpu_nvlink_errors_total", {**labels, "kind": kind}, quantity(found[2]), when.at_ms)
        elif found := _TRAFFIC.match(said):
            traffic = {**labels, "direction": found[1].lower()}
            reading.add("gpu_link_bytes_total", traffic, quantity(found[2], "KiB"), when.at_ms)
        elif "inactive" in said.lower() or is_missing(said):
            reading.add("gpu_link_up", labels, 0.0, when.at_ms)
        else:
            speed = quantity(said, "GB/s")
            reading.add("gpu_link_up", labels, 1.0, when.at_ms)
            reading.add("gpu_link_speed_bytes_per_second", labels, speed, when.at_ms)
    except ValueError as error:
        reading.refuse(f"unreadable link ({error})", line)


def read_list(text: str, when: When) -> Reading:
    """Return what `nvidia-smi -L` says: names and UUIDs of GPUs, for the parts of a session that print indices only."""
    reading = Reading()
    for part in text.split("\n"):
        if found := GPU_LINE.match(part):
            labels = {"gpu": found[1], "gpu_model": found[2], "gpu_uuid": found[3]}
            reading.know(labels)
            reading.add("gpu_info", labels, 1.0, when.at_ms)
    return reading


def profiles_of(text: str) -> dict[tuple[str, str], str]:
    """Return the profile of each MIG device of a listing, by the index of the GPU and its own."""
    found: dict[tuple[str, str], str] = {}
    gpu = ""
    for part in text.split("\n"):
        if listed := GPU_LINE.match(part):
            gpu = listed[1]
        elif device := MIG_LINE.match(part):
            found[(gpu, device[2])] = device[1]
    return found
