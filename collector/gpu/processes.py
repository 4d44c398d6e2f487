"""Processes on a GPU: number, memory, pid and name. Never the command line, which may hold secrets."""

import math
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from collector.gpu.ask import NOT_NOW
from collector.gpu.device import Device
from collector.prometheus.exposition import Sample

_TYPES = {
    "compute": "nvmlDeviceGetComputeRunningProcesses_v3",
    "graphics": "nvmlDeviceGetGraphicsRunningProcesses_v3",
}
_NO_INSTANCE = 0xFFFFFFFF


def processes(device: Device) -> Iterator[Sample]:
    """Yield how many run, and the memory of each; a process that computes and draws has its memory once."""
    seen: dict[tuple[int, int], Any] = {}
    for kind, call in _TYPES.items():
        running = device.asker.ask("gpu_processes", call)
        if running is None:
            continue
        if running is NOT_NOW:
            yield Sample("gpu_processes", {**device.labels, "type": kind}, math.nan, None)
            continue
        yield Sample("gpu_processes", {**device.labels, "type": kind}, float(len(running)), None)
        for one in running:
            seen.setdefault((one.pid, one.gpuInstanceId), one.usedGpuMemory)
    for (pid, instance), used in seen.items():
        labels = {**device.labels, "pid": str(pid), "process": _name(device, pid)}
        if instance != _NO_INSTANCE:
            labels["mig_instance"] = str(instance)
        yield Sample("gpu_process_memory_bytes", labels, math.nan if used is None else float(used), None)


def _name(device: Device, pid: int) -> str:
    """Return the program's name; "" where the process is gone or is in another container."""
    nvml = device.asker.nvml
    try:
        text = str(nvml.nvmlSystemGetProcessName(pid))
    except (nvml.NVMLError, UnicodeDecodeError):
        return ""
    return PurePosixPath(text.split(" -", 1)[0]).name
