"""`nvidia-smi --query-gpu=… --format=csv` and `--query-compute-apps` → samples; a bad row never loses the others."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from collector.files.devices.device import Device, add_process, read_device
from collector.files.devices.fields import FIELDS, THROTTLE_BITS, TOTALS
from collector.files.devices.moments import milliseconds, read_moment
from collector.files.devices.reading import Reading, When, broken

_UNIT = re.compile(r"\s*\[([^\]]*)\]$")
_RENAMED = re.compile(r"^clocks_throttle_reasons(?=[._])")
_SHOWN = 5  # names of columns in a remark
_IDENTITY = frozenset({
    "timestamp", "index", "uuid", "gpu_uuid", "name", "gpu_name", "pci.bus_id", "gpu_bus_id", "hostname", "serial",
    "gpu_serial", "count", "driver_version", "vbios_version", "compute_cap", "mig.mode.current", "ecc.mode.current",
    "persistence_mode", "compute_mode",
})  # fmt: skip
_PROCESS = frozenset({"pid", "process_name", "used_gpu_memory", "used_memory"})
_MEASURED = (
    {path for one in FIELDS for path in one.paths if "/" not in path}
    | {path for total in TOTALS for path in (*total.totals, *total.parts) if "/" not in path}
    | {f"clocks_event_reasons.{name}" for name in ("active", *THROTTLE_BITS)}
)


class Column(NamedTuple):
    """A column: name without unit, and the unit its header states (for --format=nounits)."""

    name: str
    unit: str


def columns_of(header: str) -> list[Column] | None:
    """Return the columns of a header line as nvidia-smi prints it; None where it is not one of nvidia-smi."""
    cells = [cell.strip() for cell in header.strip().split(",")]
    columns = [Column(_RENAMED.sub("clocks_event_reasons", _UNIT.sub("", c)), _unit(c)) for c in cells]
    names = {column.name for column in columns}
    measured = any(name in _MEASURED and ("." in name or name == "pstate") for name in names)
    processes = "pid" in names and not _PROCESS.isdisjoint(names - {"pid"}) and not names.isdisjoint(_IDENTITY)
    pages = any(name.startswith("retired_pages.") for name in names)
    return columns if len(columns) > 1 and (measured or processes or pages) else None


def _unit(cell: str) -> str:
    found = _UNIT.search(cell)
    return found[1] if found else ""


def read_csv(text: str, when: When, line: int = 1) -> Reading:
    """Return the samples of all rows.

    A row with more or fewer cells than the header is refused. Raises SourceError where the first line is no header of
    nvidia-smi (--format=csv,noheader leaves it out).
    """
    lines = [(number, part) for number, part in enumerate(text.split("\n"), line) if part.strip()]
    at, header = lines[0] if lines else (line, "")
    columns = columns_of(header)
    if columns is None:
        raise broken(at, f"no header of nvidia-smi: {header.strip()[:80]!r}", "query with --format=csv, not noheader")
    separator = re.compile(r",\s+" if re.search(r",\s", header) else ",")
    reading = Reading()
    for number, part in lines[1:]:
        cells = separator.split(part.strip())
        if part.strip() == header.strip():
            continue  # printed again by `-l`
        if len(cells) == len(columns) + 1 and not cells[-1]:
            cells.pop()
        if len(cells) != len(columns):
            reading.refuse("row with more or fewer cells than the header", number)
            continue
        _read_row(reading, columns, cells, when, number)
    _remark(reading, columns)
    return reading


def _read_row(reading: Reading, columns: Sequence[Column], cells: Sequence[str], when: When, line: int) -> None:
    fields = {c.name: _with_unit(cell, c.unit) for c, cell in zip(columns, cells, strict=True)}
    stated = milliseconds(read_moment(fields.get("timestamp", ""), when.zone))
    ts_ms = when.at_ms if stated is None else stated
    device = Device(fields, line, _index(fields))
    if "pid" in fields:
        add_process(reading, fields, device.labels, line, ts_ms)
    elif any(name in _MEASURED for name in fields):
        reading.extend(read_device(device, ts_ms))


def _index(fields: Mapping[str, str]) -> str | None:
    index = fields.get("index", "").strip()
    return index if index.isdecimal() else None


def _with_unit(cell: str, unit: str) -> str:
    """Give a bare number the unit of its header ('97' under 'utilization.gpu [%]' → '97 %')."""
    cell = cell.strip()
    return f"{cell} {unit}" if unit and cell[-1:].isdecimal() and not cell.startswith("0x") else cell


def _remark(reading: Reading, columns: Sequence[Column]) -> None:
    unused = [c.name for c in columns if c.name not in _MEASURED | _IDENTITY | _PROCESS]
    if unused:
        more = f" and {len(unused) - _SHOWN} more" if len(unused) > _SHOWN else ""
        reading.notes.append(f"no metric is kept of the columns {', '.join(unused[:_SHOWN])}{more}")
