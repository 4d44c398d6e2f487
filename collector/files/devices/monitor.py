"""`nvidia-smi dmon` and `pmon` → samples: a row a device (or process) and cycle, a second apart unless -d says else."""

from collections.abc import Mapping
from typing import NamedTuple

from collector.files.devices.moments import milliseconds, read_moment
from collector.files.devices.quantity import is_missing, quantity
from collector.files.devices.reading import Reading, When, broken


class _Column(NamedTuple):
    canonical: str
    unit: str
    labels: Mapping[str, str]


def _engine(engine: str) -> _Column:
    return _Column("gpu_utilization_ratio", "%", {"engine": engine})


_DEVICE = {
    "pwr": _Column("gpu_power_watts", "W", {}),
    "gtemp": _Column("gpu_temperature_celsius", "C", {"sensor": "gpu"}),
    "temp": _Column("gpu_temperature_celsius", "C", {"sensor": "gpu"}),
    "mtemp": _Column("gpu_temperature_celsius", "C", {"sensor": "memory"}),
    "sm": _engine("graphics"),
    "mem": _engine("memory_copy"),
    "enc": _engine("encoder"),
    "dec": _engine("decoder"),
    "jpg": _engine("jpeg"),
    "ofa": _engine("ofa"),
    "mclk": _Column("gpu_clock_hz", "MHz", {"domain": "memory"}),
    "pclk": _Column("gpu_clock_hz", "MHz", {"domain": "graphics"}),
    "fb": _Column("gpu_memory_bytes", "MiB", {"state": "used"}),
    "bar1": _Column("gpu_bar1_memory_bytes", "MiB", {"state": "used"}),
    "rxpci": _Column("gpu_pcie_bytes_per_second", "MB/s", {"direction": "rx"}),
    "txpci": _Column("gpu_pcie_bytes_per_second", "MB/s", {"direction": "tx"}),
    "sbecc": _Column("gpu_ecc_errors_total", "", {"kind": "corrected"}),
    "dbecc": _Column("gpu_ecc_errors_total", "", {"kind": "uncorrected"}),
    "pci": _Column("gpu_pcie_replay_total", "", {}),
    "pviol": _Column("gpu_throttle_ratio", "%", {"reason": "power"}),
    "tviol": _Column("gpu_throttle_ratio", "", {"reason": "thermal"}),
}
"""Columns of dmon; those printed as MB are MiB."""

_PROCESS = {
    name: column._replace(canonical="gpu_process_utilization_ratio")
    for name, column in _DEVICE.items()
    if column.canonical == "gpu_utilization_ratio"
} | {"fb": _Column("gpu_process_memory_bytes", "MiB", {})}


def is_header(line: str) -> bool:
    """Tell whether a line names the columns of dmon or pmon."""
    return line.startswith("#") and "gpu" in _cells(line)


def _cells(line: str) -> list[str]:
    """Split a line into cells; --format csv puts commas between them."""
    return line.replace(",", " ").lstrip("# ").lower().split()


def read_monitor(text: str, when: When, line: int = 1, interval_ms: int = 1000) -> Reading:
    """Return the samples of all cycles.

    Without times in the rows (-o DT) the first cycle is at `when.at_ms` and each other one `interval_ms` later. Raises
    SourceError where no line names the columns.
    """
    reading, columns = Reading(), list[str]()
    seen: set[str] = set()
    cycle = 0
    for number, part in enumerate(text.split("\n"), line):
        cells = part.replace(",", " ").split()
        if is_header(part):
            columns = _cells(part)
        if not cells or part.startswith("#") or not columns:
            continue
        row = dict(zip(columns, cells, strict=False))
        if len(cells) < len(columns) or not row["gpu"].isdecimal():
            reading.refuse("row with fewer cells than the header", number)
            continue
        identity = f"{row['gpu']} {row.get('pid', '')}"
        if identity in seen:
            cycle, seen = cycle + 1, set()
        seen.add(identity)
        _read_row(reading, row, _time(row, when, cycle * interval_ms), number)
    if not columns:
        raise broken(line, "no line names the columns", "save the output of nvidia-smi dmon or pmon with its header")
    return reading


def _time(row: Mapping[str, str], when: When, passed_ms: int) -> int | None:
    stated = milliseconds(read_moment(f"{row.get('date', '')} {row.get('time', '')}", when.zone))
    if stated is not None:
        return stated
    return None if when.at_ms is None else when.at_ms + passed_ms


def _read_row(reading: Reading, row: Mapping[str, str], ts_ms: int | None, line: int) -> None:
    labels = {"gpu": row["gpu"]}
    reading.know(labels)
    if "pid" in row:
        if is_missing(row["pid"]):
            return  # no process
        labels |= {"pid": row["pid"], "process": row.get("command", "")}
    known = _PROCESS if "pid" in row else _DEVICE
    for name, column in known.items():
        if name in row:
            try:
                value = quantity(row[name], column.unit)
            except ValueError as error:
                reading.refuse(f"unreadable value ({error})", line)
                continue
            if value == value or "pid" not in row:  # a process that does not use an engine is no gap
                reading.add(column.canonical, {**labels, **column.labels}, value, ts_ms)
