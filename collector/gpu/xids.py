"""Xid errors, taken from NVML's event set by a thread of its own, so that none is lost between two reads."""

import ctypes
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from threading import Event, Lock, Thread
from typing import Any

from collector.gpu.ask import Asker
from collector.gpu.device import Device
from collector.gpu.library import Code
from collector.prometheus.exposition import Sample

_XID = 0x8
_WAIT_MS = 500
_PAUSE_S = 1.0
_JOIN_S = 3.0
KNOWN = (13, 31, 43, 45, 48, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140)
"""Codes counted from 0 on, so that the first error is an increase. Others begin with their first error."""


class XidWatch:
    """Counts Xid errors by GPU, for as long as the process lives and over restarts of NVML."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._lock = Lock()
        self._counts: dict[str, Counter[int]] = {}
        self._last: dict[str, int] = {}
        self._thread: Thread | None = None
        self._stop = Event()

    def start(self, devices: Iterable[Device]) -> None:
        """Watch these GPUs; one that cannot be watched has no Xid series."""
        try:
            event_set = self._nvml.nvmlEventSetCreate()
        except self._nvml.NVMLError:
            return
        watched = {}
        for device in devices:
            if _register(device.asker, event_set):
                watched[_address(device.asker.handle)] = device.identity.uuid
                with self._lock:
                    self._counts.setdefault(device.identity.uuid, Counter(dict.fromkeys(KNOWN, 0)))
        self._stop = Event()
        self._thread = Thread(target=self._watch, args=(event_set, watched, self._stop), name="nvml-xid", daemon=True)
        self._thread.start()

    def stop(self) -> bool:
        """Stop watching; False where the thread does not end, as it waits for NVML."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)
            return not self._thread.is_alive()
        return True

    def samples(self, uuid: str, labels: Mapping[str, str]) -> Iterator[Sample]:
        """Yield the counts of a GPU by code, and the last code (0 for none)."""
        with self._lock:
            counts, last = dict(self._counts.get(uuid, {})), self._last.get(uuid, 0)
        if counts:
            yield Sample("gpu_last_xid", labels, float(last), None)
        for xid, count in sorted(counts.items()):
            yield Sample("gpu_xid_events_total", {**labels, "xid": str(xid)}, float(count), None)

    def _watch(self, event_set: Any, watched: Mapping[Any, str], stop: Event) -> None:
        while not stop.is_set():
            try:
                event = self._nvml.nvmlEventSetWait_v2(event_set, _WAIT_MS)
            except self._nvml.NVMLError as error:
                # a GPU that fell off the bus is told again at once, every time: no busy loop
                if error.value != Code.TIMEOUT:
                    stop.wait(_PAUSE_S)
                continue
            uuid = watched.get(_address(event.device))
            if uuid is not None and event.eventType & _XID:
                self._count(uuid, int(event.eventData))
        _free(self._nvml, event_set)

    def _count(self, uuid: str, xid: int) -> None:
        with self._lock:
            self._counts[uuid][xid] += 1
            self._last[uuid] = xid


def _register(asker: Asker, event_set: Any) -> bool:
    def register() -> bool:
        asker.nvml.nvmlDeviceRegisterEvents(asker.handle, _XID, event_set)
        return True

    return asker.attempt("gpu_xid_events_total", ("nvmlDeviceRegisterEvents",), register) is True


def _free(nvml: Any, event_set: Any) -> None:
    try:
        nvml.nvmlEventSetFree(event_set)
    except nvml.NVMLError:
        return


def _address(handle: Any) -> Any:
    """Return what tells handles apart: NVML hands out pointers, and ctypes wraps each of them anew."""
    return ctypes.cast(handle, ctypes.c_void_p).value if isinstance(handle, ctypes._Pointer) else handle  # noqa: SLF001
