"""The PCIe link of a GPU: generation, width, traffic, errors."""

from collections.abc import Iterator

from collector.gpu.ask import Field, Part, answers, field_answers
from collector.gpu.device import KB, Device, one
from collector.prometheus.exposition import Sample

LINK = (
    one("gpu_pcie_link_generation", "nvmlDeviceGetCurrPcieLinkGeneration", kind="current"),
    one("gpu_pcie_link_generation", "nvmlDeviceGetMaxPcieLinkGeneration", kind="max"),
    one("gpu_pcie_link_generation", "nvmlDeviceGetGpuMaxPcieLinkGeneration", kind="device_max"),
    one("gpu_pcie_link_width", "nvmlDeviceGetCurrPcieLinkWidth", kind="current"),
    one("gpu_pcie_link_width", "nvmlDeviceGetMaxPcieLinkWidth", kind="max"),
    one("gpu_pcie_replay_total", "nvmlDeviceGetPcieReplayCounter"),
)
TRAFFIC = (
    one("gpu_pcie_bytes_per_second", "nvmlDeviceGetPcieThroughput", 0, scale=KB, direction="tx"),
    one("gpu_pcie_bytes_per_second", "nvmlDeviceGetPcieThroughput", 1, scale=KB, direction="rx"),
)
_ERRORS = {
    "recovery": 169,
    "correctable": 173,
    "nack_received": 174,
    "nack_sent": 177,
    "non_fatal": 179,
    "fatal": 180,
}
_ERROR_FIELDS = tuple(Field(id_, Part("gpu_pcie_errors_total", {"kind": kind})) for kind, id_ in _ERRORS.items())


def pcie(device: Device) -> Iterator[Sample]:
    """Yield the state of the link and its errors."""
    yield from answers(device.asker, LINK, device.labels)
    yield from field_answers(device.asker, _ERROR_FIELDS, device.labels)


def pcie_traffic(device: Device) -> Iterator[Sample]:
    """Yield bytes per second; NVML measures each direction for 20 ms and returns only then."""
    yield from answers(device.asker, TRAFFIC, device.labels)
