"""`NvmlReader`: the GPUs of this machine as canonical metrics, read through the NVIDIA driver's own library."""

from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from threading import Lock
from time import monotonic, perf_counter
from typing import Any

from collector.gpu.ask import GoneError, LostError
from collector.gpu.device import Device, Identity
from collector.gpu.faults import faults
from collector.gpu.fleet import Fleet
from collector.gpu.lane import Lane
from collector.gpu.library import explain
from collector.gpu.library import load as load_library
from collector.gpu.links import links
from collector.gpu.load import load
from collector.gpu.mig import instances
from collector.gpu.pcie import pcie, pcie_traffic
from collector.gpu.power import clocks, heat, power
from collector.gpu.processes import processes
from collector.prometheus.exposition import Sample
from collector.prometheus.targets import EVERYTHING, Absence
from store.errors import SourceError

BUDGET_S = 8.0
"""Longest a read waits; a scrape gives up after 10 s by default."""

GROUPS = {
    "load": load,
    "power": power,
    "heat": heat,
    "clocks": clocks,
    "pcie": pcie,
    "pcie_traffic": pcie_traffic,
    "links": links,
    "faults": faults,
    "processes": processes,
    "mig": instances,
}
"""What is read of every GPU, each group timed."""


class NvmlReader:
    """Reads all NVIDIA GPUs. Each GPU has its own thread, so that one that hangs or is lost does not stop the others.

    `nvml` is the module to ask (None: pynvml). Safe for threads: reads and close wait for each other.
    """

    def __init__(self, nvml: Any = None, budget_s: float = BUDGET_S) -> None:
        self._nvml = nvml
        self._budget_s = budget_s
        self._fleet: Fleet | None = None
        self._system: Lane[None] = Lane("nvml")
        self._lanes: dict[str, Lane[list[Sample]]] = {}
        self._lost: list[Absence] = []
        self._closed = False
        self._lock = Lock()

    def read(self) -> list[Sample]:
        """Return the samples of all GPUs; gpu_lost is 1 for one that does not answer, and it has no others.

        Raises SourceError where NVML or the driver is not there, or does not answer within the budget.
        """
        with self._lock:
            if self._closed:
                raise SourceError("the NVML reader is closed")
            deadline = monotonic() + self._budget_s
            fleet = self._refresh(deadline)
            return list(self._read(fleet, deadline))

    def close(self) -> None:
        """Stop the threads and NVML; a call that hangs is left to end with the process."""
        with self._lock:
            self._closed = True
            fleet = self._fleet
            if fleet is None:
                return
            if any(lane.busy for lane in self._lanes.values()):
                fleet.xids.stop()
            elif self._system.start(lambda: _stop(fleet)):
                self._wait(monotonic() + self._budget_s)

    def absences(self) -> list[Absence]:
        """Return the metrics that the GPUs do not have, and the GPUs that do not answer or may not be asked.

        The subject is "GPU" and its index; of a whole GPU what is absent is EVERYTHING.
        """
        if self._fleet is None:
            return []
        refused = {
            _absence(device.identity.index, metric, reason)
            for device in self._fleet.devices
            for metric, reason in list(device.asker.refused.values())
        }
        forbidden = [_absence(index, EVERYTHING, reason) for index, reason in self._fleet.forbidden]
        return [*self._lost, *forbidden, *sorted(refused, key=attrgetter("subject", "what", "reason"))]

    def timings_s(self) -> dict[str, float]:
        """Return how long each group of questions took in the last read, of the slowest GPU."""
        devices = self._fleet.devices if self._fleet else []
        return {group: max((d.timings_s.get(group, 0.0) for d in devices), default=0.0) for group in GROUPS}

    def _refresh(self, deadline: float) -> Fleet:
        if self._fleet is None:
            self._fleet = Fleet(self._nvml or load_library())
        fleet, troubled = self._fleet, bool(self._lost)
        if any(lane.busy for lane in self._lanes.values()):
            return fleet  # NVML cannot be started anew under a call that hangs
        if not self._system.start(lambda: fleet.refresh(troubled)) or not self._wait(deadline):
            raise SourceError(
                f"NVML has not answered for {self._system.stuck_s:.0f} s",
                "nvidia-smi hangs as well then: see dmesg for NVRM and Xid; reset the GPU or reboot",
            )
        return fleet

    def _wait(self, deadline: float) -> bool:
        try:
            self._system.result(deadline - monotonic())
        except TimeoutError:
            return False
        return True

    def _read(self, fleet: Fleet, deadline: float) -> Iterator[Sample]:
        self._lost = []
        lanes = [(device, self._lanes.setdefault(device.identity.uuid, Lane("nvml-gpu"))) for device in fleet.devices]
        fresh = [lane.start(partial(read_device, device)) for device, lane in lanes]
        for (device, lane), started in zip(lanes, fresh, strict=True):
            try:
                yield from self._result(device, lane, deadline if started else 0.0)
            except LostError as error:
                yield self._is_lost(device.identity, str(error))
            except GoneError as error:
                fleet.stop()
                raise explain(error.code, str(error)) from error
            yield from fleet.xids.samples(device.identity.uuid, device.labels)
        for missing in fleet.missing:
            yield self._is_lost(missing.identity, missing.reason)
            yield from fleet.xids.samples(missing.identity.uuid, missing.identity.labels)

    def _result(self, device: Device, lane: Lane[list[Sample]], deadline: float) -> list[Sample]:
        try:
            return lane.result(deadline - monotonic())
        except TimeoutError:
            where = device.asker.calling or "NVML"
            raise LostError(f"{where} has not answered for {lane.stuck_s:.0f} s") from None

    def _is_lost(self, identity: Identity, reason: str) -> Sample:
        self._lost.append(_absence(identity.index, EVERYTHING, reason))
        return Sample("gpu_lost", identity.labels, 1.0, None)


def read_device(device: Device) -> list[Sample]:
    """Return all samples of a GPU. Raises LostError and GoneError."""
    device.asker.begin()
    samples = [Sample("gpu_lost", device.labels, 0.0, None), *device.facts]
    for name, group in GROUPS.items():
        started = perf_counter()
        samples += group(device)
        device.timings_s[name] = perf_counter() - started
    device.asker.end()
    return samples


def _absence(index: int, what: str, reason: str) -> Absence:
    return Absence(f"GPU {index}", what, reason)


def _stop(fleet: Fleet) -> None:
    fleet.stop()
