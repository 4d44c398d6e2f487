"""fabricmanager.log → events: every entry, with the NVSwitch errors among them."""

import re

from collector.files.devices.moments import read_moment
from collector.files.devices.reading import Event, Reading, Severity, When
from collector.presets.identifiers import pci_bus_id
from store.xids import sxid_severity

_ENTRY = re.compile(r"^\[([A-Z][a-z]{2} +\d{1,2} \d{4} \d{2}:\d{2}:\d{2})\] \[([A-Z]+)\] (?:\[tid (\d+)\] )?(.*)$")
_SWITCH = re.compile(r"NVSwitch (?:non-)?fatal error (\d{1,9})", re.IGNORECASE)
_BUS = re.compile(r"pci bus id ([0-9a-fA-F:.]+)")
_PORT = re.compile(r"\bport (\d+)")
_PHYSICAL = re.compile(r"physical id (\d+)")
_SEVERITY: dict[str, Severity] = {
    "ERROR": "critical",
    "CRITICAL": "critical",
    "FATAL": "critical",
    "WARNING": "warning",
}


def is_fabric_log(text: str) -> bool:
    """Tell whether the first entry of a text is one of the fabric manager."""
    return any(_ENTRY.match(line) for line in [line for line in text.split("\n") if line.strip()][:3])


def read_fabric_log(text: str, when: When, line: int = 1) -> Reading:
    """Return an event an entry; lines without a time belong to the entry before them. Its level is the severity.

    An NVSwitch error that calls itself non-fatal is a warning, whatever its level.
    """
    reading = Reading()
    for number, entry in _entries(text, line):
        found = _ENTRY.match(entry[0])
        ts_us = read_moment(found[1], when.zone) if found else None
        if found is None or ts_us is None:
            reading.refuse("entry without a readable time", number)
            continue
        message = "\n".join((found[4].rstrip(), *(part.strip() for part in entry[1:] if part.strip())))
        reading.events.append(_event(ts_us, found[2], message))
    return reading


def _entries(text: str, line: int) -> list[tuple[int, list[str]]]:
    entries: list[tuple[int, list[str]]] = []
    for number, part in enumerate(text.split("\n"), line):
        if _ENTRY.match(part) or (not entries and part.strip()):
            entries.append((number, [part]))
        elif entries and part.strip():
            entries[-1][1].append(part)
    return entries


def _event(ts_us: int, level: str, message: str) -> Event:
    switch = _SWITCH.search(message)
    if switch is None:
        return Event(ts_us, "fabric_manager", _SEVERITY.get(level, "info"), message)
    bus = _BUS.search(message)
    entity = pci_bus_id(bus[1]) if bus else None
    found = {"pci_bus_id": entity, "port": _of(_PORT, message), "physical_id": _of(_PHYSICAL, message)}
    labels = {name: text for name, text in found.items() if text}
    severity = sxid_severity(int(switch[1]), message)
    return Event(ts_us, "nvswitch_error", severity, message, entity, switch[1], labels=labels)


def _of(pattern: re.Pattern[str], message: str) -> str | None:
    found = pattern.search(message)
    return found[1] if found else None
