"""Instances of a GPU in MIG mode: memory of each. NVML has no load, PCIe or NVLink of an instance: none is shown."""

import re
from collections.abc import Iterator
from typing import Any

from collector.gpu.ask import NOT_NOW, Asker, answers
from collector.gpu.device import Device
from collector.gpu.load import MEMORY
from collector.prometheus.exposition import Sample

_PROFILE = re.compile(r"MIG (?:\d+c\.)?(\d+g\.\S+)")


def instances(device: Device) -> Iterator[Sample]:
    """Yield the memory of every GPU instance, once, however many compute instances share it."""
    mode = device.asker.ask("gpu_mode_info mig", "nvmlDeviceGetMigMode")
    if mode is None or mode is NOT_NOW or mode[0] != 1:
        return
    most = device.asker.ask("gpu_memory_bytes", "nvmlDeviceGetMaxMigDeviceCount")
    seen: set[int] = set()
    for index in range(most if isinstance(most, int) else 0):
        handle = _handle(device, index)
        asker = Asker(device.asker.nvml, handle)
        number = asker.ask("mig_instance", "nvmlDeviceGetGpuInstanceId") if handle is not None else None
        if not isinstance(number, int) or number in seen:
            continue
        seen.add(number)
        labels = {**device.labels, "mig_instance": str(number), "mig_profile": _profile(asker)}
        yield from answers(asker, MEMORY, labels)


def _handle(device: Device, index: int) -> Any:
    """Return the handle of a MIG device; None for a place that is empty, which may be filled at any time."""
    nvml = device.asker.nvml
    try:
        return nvml.nvmlDeviceGetMigDeviceHandleByIndex(device.asker.handle, index)
    except nvml.NVMLError:
        return None


def _profile(asker: Asker) -> str:
    """Return 3g.40gb; from the name, else from the slices and the memory, as nvidia-smi makes it."""
    name = asker.ask("mig_profile", "nvmlDeviceGetName")
    match = _PROFILE.search(name) if isinstance(name, str) else None
    if match:
        return match[1]
    facts = asker.ask("mig_profile", "nvmlDeviceGetAttributes_v2")
    if facts is None or facts is NOT_NOW:
        return ""
    return f"{facts.gpuInstanceSliceCount}g.{round(facts.memorySizeMB / 1024)}gb"
