"""Kernel logs (dmesg, /dev/kmsg, journalctl -k, syslog) → events: Xids, NVSwitch errors, OOM kills, PCIe errors."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from collector.files.devices.moments import read_moment
from collector.files.devices.reading import Event, Reading, Severity, When
from collector.presets.identifiers import pci_bus_id
from store.errors import UsageError
from store.xids import describe, sxid_severity, xid_severity

_DATE = r"[A-Z][a-z]{2} +\d{1,2} +\d{1,2}:\d{2}:\d{2}"
_ISO = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[-+]\d{2}:?\d{2})?"
_LINES = (
    re.compile(rf"^\[(?P<time>[A-Z][a-z]{{2}} {_DATE} \d{{4}})\] ?(?P<text>.*)$"),  # dmesg -T
    re.compile(r"^(?:<\d+>)?\[ *(?P<boot>\d+\.\d+)\] ?(?:\[ *T\d+\] ?)?(?P<text>.*)$"),  # dmesg
    re.compile(r"^\d+,\d+,(?P<boot_us>\d+),[^;]*;(?P<text>.*)$"),  # /dev/kmsg
    re.compile(rf"^(?P<time>{_ISO}|{_DATE}) (?P<host>\S+) kernel: (?:\[ *\d+\.\d+\] ?)?(?P<text>.*)$"),  # syslog
    re.compile(r"^(?P<time>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2},\d{6}[-+]\d{2}:\d{2}) (?P<text>.*)$"),  # dmesg, iso
)
_MOST_LINES = 20  # looked at to tell a kernel log
_LONGEST_LINE = 4096  # characters looked at; the kernel's own records end at 1,024


class _Line(NamedTuple):
    ts_us: int
    host: str | None
    text: str
    uuids: Mapping[str, str]

    def event(
        self, kind: str, severity: Severity, entity: str | None = None, code: str | None = None, **labels: str
    ) -> Event:
        return Event(self.ts_us, kind, severity, self.text.strip(), entity, code, self.host, labels)


def is_kernel_log(text: str) -> bool:
    """Tell whether one of the first lines is one of a kernel log."""
    lines = [line for line in text.split("\n") if line.strip()][:_MOST_LINES]
    return any(pattern.match(line) for line in lines for pattern in _LINES)


def read_kernel_log(text: str, when: When, line: int = 1) -> Reading:
    """Return the events of a log; its other lines are counted in a remark.

    Raises UsageError where events are dated since boot and `when.start_ms` is not given, or name no year and
    `when.at_ms` is not given.
    """
    reading, uuids, others = Reading(), dict[str, str](), 0
    for number, whole in enumerate(text.split("\n"), line):
        part = whole[:_LONGEST_LINE]
        if not _WORTH.search(part):
            others += bool(part.strip())
            continue
        found = next((m for pattern in _LINES if (m := pattern.match(part))), None)
        said = found["text"] if found else part
        if named := _UUID.search(said):
            uuids[pci_bus_id(named[1]) or named[1]] = named[2]
        matched = next(((make, m) for pattern, make in _EVENTS if (m := pattern.search(said))), None)
        if matched is None:
            others += bool(part.strip())
            continue
        ts_us = _time(found.groupdict(), when) if found else None
        if ts_us is None:
            reading.refuse("event without a readable time", number)
            continue
        make, groups = matched
        reading.events.append(make(_Line(ts_us, found.groupdict().get("host") if found else None, said, uuids), groups))
    if others:
        reading.notes.append(f"{others} lines are no event")
    return reading


def _time(parts: Mapping[str, str | None], when: When) -> int | None:
    boot = parts.get("boot") or parts.get("boot_us")
    if boot is None:
        return _wall(parts.get("time") or "", when)
    if when.start_ms is None:
        raise UsageError(
            "times count from the start of the machine", "say when that was: --start TIME (uptime -s), or save dmesg -T"
        )
    since_us = int(boot) if parts.get("boot_us") else round(float(boot) * 1e6)
    return when.start_ms * 1000 + since_us if since_us < _LONGEST_US else None


_LONGEST_US = 10**16
"""Three hundred years."""


def _wall(text: str, when: When) -> int | None:
    if re.fullmatch(_DATE, text) and when.at_ms is None:
        raise UsageError("the times name no year", "say when the log was taken: --time 2026-11-30T12:00:00Z")
    before = None if when.at_ms is None else datetime.fromtimestamp(when.at_ms / 1000, UTC)
    return read_moment(text, when.zone, before)


_WORTH = re.compile(
    "Xid|NVRM: GPU at|Killed process|PCIe Bus Error|Link (?:down|up)|EDAC|mce:|soft lockup|blocked for|temperature",
    re.IGNORECASE,
)
"""One look at a line before all the others: a log of a million lines holds a handful of events."""
_UUID = re.compile(r"NVRM: GPU at (?:PCI:)?([0-9a-fA-F:.]+): (GPU-[0-9a-f-]+)")
_PID = re.compile(r"pid='?(\d+)'?, name=([^,]+)")


def _xid(line: _Line, found: re.Match[str]) -> Event:
    code, address = int(found[2]), pci_bus_id(found[1].rstrip(".")) or found[1]
    process = _PID.search(line.text)
    labels = {"pci_bus_id": address} | ({"gpu_uuid": line.uuids[address]} if address in line.uuids else {})
    labels |= {"pid": process[1], "process": process[2]} if process else {}
    labels |= {"meaning": describe(code).text} if describe(code).text else {}
    return line.event("xid", xid_severity(code, line.text), address, str(code), **labels)


def _sxid(line: _Line, found: re.Match[str]) -> Event:
    address = pci_bus_id(found[1]) or found[1]
    port = re.search(r"\bLink (\d+)", line.text)
    labels = {"pci_bus_id": address} | ({"port": port[1]} if port else {})
    return line.event("nvswitch_error", sxid_severity(int(found[2]), line.text), address, found[2], **labels)


def _oom(line: _Line, found: re.Match[str]) -> Event:
    return line.event("oom_kill", "critical", found[2], None, pid=found[1], process=found[2])


def _pcie(line: _Line, found: re.Match[str]) -> Event:
    said = found[2].lower()
    severity: Severity = "info" if said.startswith("correct") else "critical" if "(fatal" in said else "warning"
    return line.event("pcie_error", severity, pci_bus_id(found[1]) or found[1], None, error=found[2].strip())


def _link(line: _Line, found: re.Match[str]) -> Event:
    down = found[3].lower() == "down"
    device = pci_bus_id(found[1]) or found[1]
    return line.event(
        "network_link_down" if down else "network_link_up", "warning" if down else "info", found[2], None,
        pci_bus_id=device, device=found[2],
    )  # fmt: skip


def _plain(kind: str, severity: Severity) -> Callable[[_Line, re.Match[str]], Event]:
    return lambda line, found: line.event(kind, severity, found.groupdict().get("entity"))


_EVENTS: tuple[tuple[re.Pattern[str], Callable[[_Line, re.Match[str]], Event]], ...] = (
    (re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d{1,5})\b"), _xid),
    (re.compile(r"SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d{1,6})\b"), _sxid),
    (re.compile(r"Killed process (\d+),? \(([^)]*)\)"), _oom),
    (re.compile(r"(\S+): PCIe Bus Error: severity=([^,]+)"), _pcie),
    (re.compile(r"(?:mlx[45]_core|bnxt_en|ice|irdma) (\S+?):? (\S+): Link (down|up)\b", re.IGNORECASE), _link),
    (re.compile(r"(?P<entity>EDAC \S+): \d+ UE "), _plain("memory_error", "critical")),
    (re.compile(r"(?P<entity>EDAC \S+): \d+ CE "), _plain("memory_error", "info")),
    (re.compile(r"mce: \[Hardware Error\]: Machine check events logged"), _plain("machine_check", "warning")),
    (re.compile(r"soft lockup - (?P<entity>CPU#\d+) stuck"), _plain("soft_lockup", "critical")),
    (re.compile(r"INFO: task (?P<entity>\S+):\d+ blocked for more than"), _plain("hung_task", "warning")),
    (re.compile(r"(?P<entity>CPU\d+): \S+ temperature (?:is )?above threshold"), _plain("cpu_throttled", "warning")),
)
