"""One GPU as nvidia-smi prints it, whatever the format → samples."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from collector.files.devices.fields import FIELDS, MIG_TOTALS, THROTTLE_BITS, TOTALS, Field, Total
from collector.files.devices.quantity import is_lost, is_missing, quantity
from collector.files.devices.reading import Reading
from collector.presets.identifiers import pci_bus_id

_MASKS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_REASON = re.compile(r"^clocks_(?:event|throttle)_reasons[/.](?:.*/)?(?:clocks_(?:event|throttle)_reason_)?([a-z_]+)$")
_IDENTITY = {
    "gpu_uuid": ("uuid", "gpu_uuid"),
    "gpu_model": ("product_name", "name", "gpu_name"),
}
_BUS = ("pci/pci_bus_id", "pci/bus_id", "pci.bus_id", "gpu_bus_id")
_INFO = {
    "driver_version": ("driver_version",),
    "cuda_version": ("cuda_version",),
    "vbios": ("vbios_version",),
    "serial": ("serial", "serial_number"),
    "architecture": ("product_architecture",),
    "compute_capability": ("compute_cap",),
}
_MODES = {
    "mig": ("mig_mode/current_mig", "mig_mode/current", "mig.mode.current"),
    "ecc": ("ecc_mode/current_ecc", "ecc_mode/current", "ecc.mode.current"),
    "persistence": ("persistence_mode",),
    "compute": ("compute_mode",),
}
_PROCESS_TYPES = {"c": ("compute",), "g": ("graphics",), "c+g": ("compute", "graphics")}


@dataclass(slots=True)
class Device:
    """The fields of a GPU by path, those of its MIG devices and of its processes, and the line it starts at."""

    fields: dict[str, str]
    line: int
    index: str | None = None
    migs: list[dict[str, str]] = field(default_factory=list)
    processes: list[dict[str, str]] | None = None

    def first(self, paths: Sequence[str]) -> str | None:
        """Return the first of these fields that has a value."""
        return _first(self.fields, paths)

    @property
    def labels(self) -> dict[str, str]:
        """Labels every series of the GPU carries, as far as they are printed."""
        found = {"gpu": self.index} | {name: self.first(paths) for name, paths in _IDENTITY.items()}
        found["pci_bus_id"] = pci_bus_id(self.first(_BUS) or "")
        found["host"] = self.first(("hostname",))
        return {name: text for name, text in found.items() if text}


def read_device(device: Device, ts_ms: int | None, profiles: Mapping[tuple[str, str], str] | None = None) -> Reading:
    """Return the samples of a GPU. A field that cannot be read is refused; the others count all the same."""
    reading = Reading()
    labels = device.labels
    reading.know(labels)
    lost = any(is_lost(text) for text in device.fields.values())
    reading.add("gpu_lost", labels, float(lost), ts_ms)
    _add_fields(reading, device.fields, labels, device.line, ts_ms, TOTALS)
    _add_throttling(reading, device, labels, ts_ms)
    _add_words(reading, "gpu_info", device, labels, _INFO, ts_ms)
    _add_words(reading, "gpu_mode_info", device, labels, _MODES, ts_ms)
    for mig in device.migs:
        _add_fields(reading, mig, labels | _mig_labels(mig, labels, profiles or {}), device.line, ts_ms, MIG_TOTALS)
    if device.processes is not None:
        _add_processes(reading, device.processes, labels, device.line, ts_ms)
    return reading


def add_process(
    reading: Reading, process: Mapping[str, str], labels: Mapping[str, str], line: int, ts_ms: int | None
) -> None:
    """Add the device memory of a process."""
    pid = _first(process, ("pid", "process_id"))
    memory = process.get("used_memory", process.get("used_gpu_memory"))
    if pid is None or memory is None:
        return
    named = {"pid": pid, "process": program(_first(process, ("process_name", "name")) or "")}
    instance = _first(process, ("gpu_instance_id",))
    named |= {"mig_instance": instance} if instance else {}
    value = _number(reading, lambda: quantity(memory, "MiB"), line)
    if value is not None:
        reading.add("gpu_process_memory_bytes", {**labels, **named}, value, ts_ms)


def program(command: str) -> str:
    """Return the name of a program without its folder ('/opt/conda/bin/python3' → 'python3')."""
    return re.split(r"[/\\\\]", command.strip())[-1]


def _first(fields: Mapping[str, str], paths: Sequence[str]) -> str | None:
    return next((fields[p].strip() for p in paths if p in fields and not is_missing(fields[p])), None)


def _number(reading: Reading, read: Callable[[], float], line: int) -> float | None:
    """Return what `read` gives; a value that cannot be read is counted and gives None."""
    try:
        return read()
    except ValueError as error:
        reading.refuse(f"unreadable value ({error})", line)
        return None


def _add_fields(
    reading: Reading,
    fields: Mapping[str, str],
    labels: Mapping[str, str],
    line: int,
    ts_ms: int | None,
    totals: Sequence[Total],
) -> None:
    for one in FIELDS:
        present = [fields[path] for path in one.paths if path in fields]
        if present:
            _add_field(reading, one, present, labels, line, ts_ms)
    for total in totals:
        value = _total(reading, total, fields, line)
        if value is not None:
            reading.add(total.canonical, {**labels, **total.labels}, value, ts_ms)


def _add_field(
    reading: Reading, one: Field, present: Sequence[str], labels: Mapping[str, str], line: int, ts_ms: int | None
) -> None:
    text = next((text for text in present if not is_missing(text)), present[0])
    value = _number(reading, lambda: one.read(text), line)
    if value is not None:
        reading.add(one.canonical, {**labels, **one.labels}, value, ts_ms)


def _total(reading: Reading, total: Total, fields: Mapping[str, str], line: int) -> float | None:
    """Return the total as printed, else the sum of its parts; NaN where all say N/A, None where none is printed."""
    stated = _values(reading, [fields[path] for path in total.totals if path in fields], line)
    parts = _values(reading, [fields[path] for path in total.parts if path in fields], line)
    known = [value for value in stated if not math.isnan(value)]
    if known:
        return known[0]
    adding = [value for value in parts if not math.isnan(value)]
    if adding:
        return math.fsum(adding)
    return math.nan if stated or parts else None


def _values(reading: Reading, texts: Sequence[str], line: int) -> list[float]:
    found = [_number(reading, partial(quantity, text), line) for text in texts]
    return [value for value in found if value is not None]


def _add_throttling(reading: Reading, device: Device, labels: Mapping[str, str], ts_ms: int | None) -> None:
    """Add the mask of clock event reasons: as printed, else from the reasons that are active."""
    stated = [device.fields[name] for name in _MASKS if name in device.fields]
    value = _number(reading, partial(quantity, stated[0]), device.line) if stated else _mask(device.fields)
    if value is not None:
        reading.add("gpu_throttle_reasons_bitmask", labels, value, ts_ms)


def _mask(fields: Mapping[str, str]) -> float | None:
    named = {found[1]: text for path, text in fields.items() if (found := _REASON.match(path))}
    reasons = {name: text for name, text in named.items() if name in THROTTLE_BITS}
    if not reasons:
        return None
    known = {name: text for name, text in reasons.items() if not is_missing(text)}
    bits = {THROTTLE_BITS[name] for name, text in known.items() if text.strip().lower() == "active"}
    return float(sum(bits)) if known else math.nan


def _add_words(
    reading: Reading,
    canonical: str,
    device: Device,
    labels: Mapping[str, str],
    words: Mapping[str, Sequence[str]],
    ts_ms: int | None,
) -> None:
    found = {name: device.first(paths) for name, paths in words.items()}
    said = {name: text for name, text in found.items() if text}
    if canonical == "gpu_mode_info":
        said = {name: text.lower().replace(" ", "_") for name, text in said.items()}
    if said:
        reading.add(canonical, {**labels, **said}, 1.0, ts_ms)


def _mig_labels(
    mig: Mapping[str, str], labels: Mapping[str, str], profiles: Mapping[tuple[str, str], str]
) -> dict[str, str]:
    """Labels of a MIG device; its profile is known where a listing of the session (-L) names it."""
    profile = profiles.get((labels.get("gpu", ""), mig.get("index", "")))
    found = {"mig_instance": mig.get("gpu_instance_id", mig.get("index", ""))}
    return found | ({"mig_profile": profile} if profile else {})


def _add_processes(
    reading: Reading,
    processes: Sequence[Mapping[str, str]],
    labels: Mapping[str, str],
    line: int,
    ts_ms: int | None,
) -> None:
    counts = dict.fromkeys(("compute", "graphics"), 0)
    for process in processes:
        for kind in _PROCESS_TYPES.get(process.get("type", "").strip().lower(), ()):
            counts[kind] += 1
        add_process(reading, process, labels, line, ts_ms)
    for kind, count in counts.items():
        reading.add("gpu_processes", {**labels, "type": kind}, float(count), ts_ms)
