"""Memory errors of a GPU: ECC counts, rows and pages replaced or waiting for it, and the NVSwitch fabric."""

import ctypes
import math
from collections.abc import Iterator
from operator import itemgetter

from collector.gpu.ask import NOT_NOW, Ask, Part, answers
from collector.gpu.device import Device, one
from collector.prometheus.exposition import Sample

_KINDS = {"corrected": 0, "uncorrected": 1}
_SINCE = {"gpu_ecc_errors_total": 0, "gpu_ecc_errors_lifetime_total": 1}  # volatile, aggregate

FAULTS = (
    *(
        one(metric, "nvmlDeviceGetTotalEccErrors", id_, since, kind=kind)
        for metric, since in _SINCE.items()
        for kind, id_ in _KINDS.items()
    ),
    Ask(
        "nvmlDeviceGetRemappedRows",
        (
            Part("gpu_remapped_rows_total", {"kind": "corrected"}, pick=itemgetter(0)),
            Part("gpu_remapped_rows_total", {"kind": "uncorrected"}, pick=itemgetter(1)),
            Part("gpu_row_remap_pending", pick=itemgetter(2), most=1),
            Part("gpu_row_remap_failed", pick=itemgetter(3), most=1),
        ),
    ),
    *(
        Ask("nvmlDeviceGetRetiredPages", (Part("gpu_retired_pages_total", {"kind": kind}, pick=len),), (id_,))
        for kind, id_ in _KINDS.items()
    ),
    Ask("nvmlDeviceGetRetiredPagesPendingStatus", (Part("gpu_retired_pages_pending", most=1),)),
)


def faults(device: Device) -> Iterator[Sample]:
    """Yield error counts, rows and pages, and the registration with the fabric."""
    yield from answers(device.asker, FAULTS, device.labels)
    state = device.asker.attempt("gpu_fabric_state", ("fabric",), lambda: _fabric_state(device))
    if state is not None:
        yield Sample("gpu_fabric_state", device.labels, math.nan if state is NOT_NOW else float(state), None)


def _fabric_state(device: Device) -> int:
    nvml = device.asker.nvml
    info = nvml.c_nvmlGpuFabricInfoV_t()
    nvml.nvmlDeviceGetGpuFabricInfoV(device.asker.handle, ctypes.byref(info))
    return int(info.state)
