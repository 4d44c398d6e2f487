"""Whatever nvidia-smi printed, alone or as the record of a whole session: told apart by content and put together."""

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from collector.files.devices import monitor, smi_text, topology
from collector.files.devices.moments import milliseconds, read_moment
from collector.files.devices.nvlink import profiles_of, read_list, read_nvlink
from collector.files.devices.parts import FAILED, LOST, Part, part_of
from collector.files.devices.reading import Reading, When, broken
from collector.files.devices.smi_csv import read_csv
from collector.files.devices.smi_table import read_table
from collector.files.devices.smi_xml import read_xml
from collector.presets.identifiers import pci_bus_id
from collector.prometheus.exposition import Sample
from store.errors import SourceError

_COMMAND = re.compile(r"^(?:#\s+)?\S*[$#]\s+(nvidia-smi\b.*)$")
_RULE = re.compile(r"^#{10,}\s*$")
_COLLECTED = re.compile(r"^collected_at:\s*(\S+)", re.MULTILINE)
_INTERVAL = re.compile(r"\s-d\s+(\d{1,6})\b")
_RETIRED = "retired_pages.address"


class Section(NamedTuple):
    """One command of a session: what was asked (empty for a file of one output), its output, and its first line."""

    command: str
    text: str
    line: int


def is_session(text: str) -> bool:
    """Tell whether a text is the record of a session: a prompt or heading with nvidia-smi before its output."""
    return any(_COMMAND.match(line) for line in text.split("\n"))


def read_smi(text: str, when: When) -> Reading:
    """Return the samples of a file.

    Where parts of a session state no time, the time of the part before them is taken. A part that cannot be read loses
    no other one. Raises SourceError, beginning with the line, for an error of the driver in place of all output, and
    where nothing of the file can be read.
    """
    sections = list(_sections(text))
    parts = {part_of(section.text) for section in sections}
    reading, left, failures = Reading(), list[str](), list[SourceError]()
    latest = milliseconds(_collected(text, when)) or when.at_ms
    profiles = _profiles(sections)
    for section in sections:
        try:
            one = _read_section(section, replace(when, at_ms=latest), profiles) if _wanted(section, parts) else None
        except SourceError as error:
            failures.append(error)
            reading.refuse("part of a session that cannot be read", section.line)
            continue
        if one is None:
            left += [section.command or "text"] if section.text.strip() else []
            continue
        reading.extend(one)
        latest = max((s.ts_ms for s in one.samples if s.ts_ms is not None), default=latest)
    if failures and not reading.samples:
        raise failures[0]
    if not (reading.samples or reading.notes or reading.refused):
        raise broken(1, "nothing of nvidia-smi that can be read", "save nvidia-smi -q -x, --query-gpu, topo -m or dmon")
    _remark(reading, left, failures)
    reading.samples = list(_complete(reading))
    return reading


def _wanted(section: Section, parts: Set[Part | None]) -> bool:
    """Leave out the table for people where the session also holds -q, which says the same more exactly."""
    return part_of(section.text) is not Part.TABLE or parts.isdisjoint((Part.XML, Part.LOG))


def _profiles(sections: Sequence[Section]) -> dict[tuple[str, str], str]:
    listed = [section.text for section in sections if part_of(section.text) is Part.LIST]
    return {device: profile for text in listed for device, profile in profiles_of(text).items()}


def _remark(reading: Reading, left: Sequence[str], failures: Sequence[SourceError]) -> None:
    reading.notes += [f"line {failure}" for failure in failures]
    if left:
        reading.notes.append("not read: " + ", ".join(dict.fromkeys(_short(command) for command in left)))


def _collected(text: str, when: When) -> int | None:
    found = _COLLECTED.search(text[:5000])
    return read_moment(found[1], when.zone) if found else None


def _sections(text: str) -> Iterator[Section]:
    """Split a session at its commands; a rule of ### ends an output."""
    if not is_session(text):
        yield Section("", text, 1)
        return
    command, body, start = "", list[str](), 1
    for number, line in enumerate(text.split("\n"), 1):
        found = _COMMAND.match(line)
        if (found or (_RULE.match(line) and body)) and command:
            yield Section(command, "\n".join(body), start)
        if found:
            command, body, start = found[1].strip(), [], number + 1
        elif _RULE.match(line):
            command, start = (command, number + 1) if not body else ("", number + 1)
            body = []
        elif command:
            body.append(line)
    if command:
        yield Section(command, "\n".join(body), start)


def _read_section(section: Section, when: When, profiles: dict[tuple[str, str], str]) -> Reading | None:
    if LOST.search(section.text):
        reading = _read_lost(section.text, when)
        rest = _read_section(section._replace(text=LOST.sub("", section.text)), when, profiles)
        reading.extend(rest or Reading())
        return reading
    part = part_of(section.text)
    if part is Part.FAILED:
        raise _failure(section)
    if part is Part.LOG:
        return smi_text.read_text(section.text, when, section.line, profiles)
    if part is Part.MONITOR:
        found = _INTERVAL.search(section.command)
        interval_ms = 1000 * int(found[1]) if found else 1000
        after = when.at_ms + interval_ms if section.command and when.at_ms is not None else when.at_ms
        return monitor.read_monitor(section.text, replace(when, at_ms=after), section.line, interval_ms)
    if part is Part.LIST:
        listed = read_list(section.text, when)
        return Reading(devices=listed.devices) if section.command else listed
    if part is Part.CSV and _RETIRED in section.text.lstrip().partition("\n")[0]:
        return None  # pages by address; their number stands in -q and in --query-gpu
    reader = _READERS.get(part) if part else None
    return reader(section.text, when, section.line) if reader else None


def _failure(section: Section) -> SourceError:
    said = next(line.strip() for line in section.text.split("\n") if FAILED.search(line))
    line = section.line + section.text[: section.text.index(said)].count("\n")
    return broken(
        line,
        f"nvidia-smi printed an error in place of values: {said}",
        "see that the driver runs (nvidia-smi -L, dmesg | grep NVRM), then save the output again",
    )


def _read_lost(text: str, when: When) -> Reading:
    """Read 'Unable to determine the device handle for GPU 0000:02:00.0': that GPU is lost."""
    reading = Reading()
    for part in text.split("\n"):
        if found := LOST.search(part):
            address = pci_bus_id(found[2].rstrip(":."))
            labels = ({"pci_bus_id": address} if address else {}) | ({"gpu": found[1]} if found[1] else {})
            reading.add("gpu_lost", labels, 1.0, when.at_ms)
            reading.notes.append(part.strip())
    return reading


_READERS: dict[Part, Callable[[str, When, int], Reading]] = {
    Part.XML: read_xml,
    Part.CSV: read_csv,
    Part.TOPOLOGY: topology.read_topology,
    Part.NVLINK: read_nvlink,
    Part.TABLE: read_table,
}


def _short(command: str) -> str:
    return command if len(command) <= 40 else command[:40].rsplit("=", 1)[0] + "=…"


def _complete(reading: Reading) -> Iterator[Sample]:
    """Give samples all labels known of their GPU, and those before the first stated time that time; each one once."""
    first = next((sample.ts_ms for sample in reading.samples if sample.ts_ms is not None), None)
    seen: set[tuple[object, ...]] = set()
    for sample in reading.samples:
        labels = {**reading.devices.get(sample.labels.get("gpu", ""), {}), **sample.labels}
        done = Sample(sample.name, labels, sample.value, first if sample.ts_ms is None else sample.ts_ms)
        identity = (done.name, frozenset(labels.items()), done.ts_ms)
        if identity in seen:
            reading.refuse("value stated twice for one moment", 1)
            continue
        seen.add(identity)
        yield done
