"""The GPUs of this machine: found, missing, found again."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from collector.gpu.ask import Asker, GoneError, LostError
from collector.gpu.device import Device, Identity, bus_id
from collector.gpu.library import Code, explain
from collector.gpu.links import find_peers
from collector.gpu.topology import facts, joins
from collector.gpu.xids import XidWatch
from store.errors import SourceError

LOOK_AGAIN = 20
"""Reads after which NVML is started anew while a GPU is missing (5 min at 15 s): it finds new GPUs only then."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A GPU that does not answer. One that never did has no more identity than its index."""

    identity: Identity
    reason: str


class Fleet:
    """Starts NVML and knows its GPUs. Not safe for threads; all calls may block."""

    def __init__(self, nvml: Any) -> None:
        self.devices: list[Device] = []
        self.missing: list[Missing] = []
        self.forbidden: list[tuple[int, str]] = []
        self.xids = XidWatch(nvml)
        self._nvml = nvml
        self._started = False
        self._count = 0
        self._reads = 0
        self._known: dict[str, Identity] = {}

    def refresh(self, troubled: bool) -> None:
        """Start NVML where it is not; look for GPUs anew where their number changed, or now and then if `troubled`.

        Raises SourceError where NVML does not start, the driver is gone or there never was a GPU.
        """
        if not self._started:
            self._start()
            return
        self._reads += 1
        due = (troubled or bool(self.missing)) and self._reads >= LOOK_AGAIN
        if (due or self._ask_count() != self._count) and self.stop():
            self._start()

    def stop(self) -> bool:
        """Stop NVML; False, and nothing stopped, where the thread that waits for events does not come back."""
        if not self.xids.stop():
            return False
        if self._started:
            self._started = False
            try:
                self._nvml.nvmlShutdown()
            except self._nvml.NVMLError:
                return True
        return True

    def _start(self) -> None:
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise explain(error.value, str(error)) from error
        self._started, self._reads = True, 0
        self._count = self._ask_count()
        try:
            self._enumerate()
        except GoneError as error:
            self.stop()
            raise explain(error.code, str(error)) from error
        if not self._known and not self.missing:
            self.stop()
            raise SourceError("NVML sees no GPU", "run nvidia-smi -L; in a container pass the GPUs in")
        self.xids.start(self.devices)

    def _ask_count(self) -> int:
        try:
            return int(self._nvml.nvmlDeviceGetCount())
        except self._nvml.NVMLError as error:
            self.stop()
            raise explain(error.value, str(error)) from error

    def _enumerate(self) -> None:
        system = self._system()
        self.devices, self.forbidden, lost = [], [], {}
        for index in range(self._count):
            try:
                self.devices.append(self._device(index, system))
            except self._nvml.NVMLError as error:
                if error.value == Code.NO_PERMISSION:
                    self.forbidden.append((index, str(error)))
                else:
                    lost[index] = str(error)
            except LostError as error:
                lost[index] = str(error)
        found = {device.identity.uuid for device in self.devices}
        self.missing = list(self._missing(found, lost))
        self._known |= {device.identity.uuid: device.identity for device in self.devices}
        for device in self.devices:
            try:
                device.facts += joins(device, self.devices)
            except LostError:
                continue  # its next read says so

    def _device(self, index: int, system: dict[str, str]) -> Device:
        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        identity = Identity(
            index=index,
            uuid=nvml.nvmlDeviceGetUUID(handle),
            model=nvml.nvmlDeviceGetName(handle),
            pci_bus_id=bus_id(nvml.nvmlDeviceGetPciInfo(handle).busId),
        )
        major = system.get("driver_version", "").split(".")[0]
        device = Device(identity, Asker(nvml, handle), identity.labels, int(major) if major.isdigit() else 0)
        device.facts += facts(device, system)
        find_peers(device)
        return device

    def _missing(self, found: set[str], lost: dict[int, str]) -> Iterator[Missing]:
        gone = {uuid: identity for uuid, identity in self._known.items() if uuid not in found}
        for index, reason in lost.items():
            identity = next((known for known in gone.values() if known.index == index), Identity(index))
            gone.pop(identity.uuid, None)
            yield Missing(identity, reason)
        for identity in gone.values():
            yield Missing(identity, "NVML no longer lists it")

    def _system(self) -> dict[str, str]:
        labels = {}
        for name, call in (
            ("driver_version", "nvmlSystemGetDriverVersion"),
            ("cuda", "nvmlSystemGetCudaDriverVersion_v2"),
        ):
            try:
                labels[name] = getattr(self._nvml, call)()
            except self._nvml.NVMLError:
                continue
        cuda = labels.pop("cuda", None)
        return labels | ({"cuda_version": f"{cuda // 1000}.{cuda % 1000 // 10}"} if cuda else {})
