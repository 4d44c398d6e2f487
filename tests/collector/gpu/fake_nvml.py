"""NVML in Python: a module whose functions answer from a table, with NVML's errors for what is not in it."""

import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pynvml

from collector.gpu.library import Code


@dataclass(frozen=True)
class Err:
    """An NVML return code in place of an answer."""

    code: int


@dataclass(eq=False)
class FakeGpu:
    """Answers of one device by call, or by (call, argument, …), in NVML's units. Also the handle."""

    answers: dict[Any, Any] = field(default_factory=dict)
    fields: dict[tuple[int, int], Any] = field(default_factory=dict)
    mig: list["FakeGpu"] = field(default_factory=list)
    fails: int | None = None
    """Code with which every call about this GPU fails."""


class FakeNvml:
    """Stands in for the module pynvml. Change `gpus`, their answers and `fails` at any time."""

    NVMLError = pynvml.NVMLError
    NVMLLibraryMismatchError = pynvml.NVMLLibraryMismatchError
    NVML_NVLINK_MAX_LINKS = 18
    c_nvmlGpuFabricInfoV_t = pynvml.c_nvmlGpuFabricInfoV_t  # noqa: N815 - NVML's name

    def __init__(self, *gpus: FakeGpu, **system: Any) -> None:
        self.gpus = list(gpus)
        self.listed: list[FakeGpu] = []
        self.system = {"nvmlSystemGetDriverVersion": "590.48.01", "nvmlSystemGetCudaDriverVersion_v2": 13010} | system
        self.names: dict[int, str] = {}
        self.calls: list[tuple[str, Any]] = []
        self.fails: int | None = None
        self.unknown_functions: set[str] = set()
        self.events: queue.Queue[Any] = queue.Queue()
        self.started = 0
        self._lock = Lock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml"):
            raise AttributeError(name)
        return partial(self._call, name)

    def count(self, call: str) -> int:
        """How often a function was called."""
        return sum(name == call for name, _ in self.calls)

    def xid(self, gpu: FakeGpu, code: int) -> None:
        """Let an Xid error happen."""
        self.events.put(SimpleNamespace(device=gpu, eventType=8, eventData=code))

    def _call(self, name: str, *args: Any) -> Any:
        with self._lock:
            self.calls.append((name, args))
        if self.fails is not None:
            raise pynvml.NVMLError(self.fails)
        if name in self.unknown_functions:
            raise pynvml.NVMLError(Code.FUNCTION_NOT_FOUND)
        own = getattr(self, f"_{name}", None)
        if own is not None:
            return own(*args)
        answer = self._look_up(name, *args)
        answer = answer() if callable(answer) else answer
        if isinstance(answer, Err):
            raise pynvml.NVMLError(answer.code)
        return answer

    def _look_up(self, name: str, *args: Any) -> Any:
        if not args or not isinstance(args[0], FakeGpu):
            return self.system.get(name, Err(Code.NOT_SUPPORTED))
        gpu, *rest = args
        if gpu.fails is not None:
            return Err(gpu.fails)
        return gpu.answers.get((name, *rest) if rest else name, Err(Code.NOT_SUPPORTED))

    def _nvmlInit(self) -> None:  # noqa: N802 - NVML's name
        self.started += 1
        self.listed = list(self.gpus)

    def _nvmlShutdown(self) -> None:  # noqa: N802
        self.started -= 1

    def _nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def _nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        gpu = self.gpus[index]
        if gpu.fails is not None:
            raise pynvml.NVMLError(gpu.fails)
        return gpu

    def _nvmlSystemGetProcessName(self, pid: int) -> str:  # noqa: N802
        if pid not in self.names:
            raise pynvml.NVMLError(Code.NOT_FOUND)
        return self.names[pid]

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: FakeGpu, index: int) -> FakeGpu:  # noqa: N802
        if index >= len(gpu.mig):
            raise pynvml.NVMLError(Code.NOT_FOUND)
        return gpu.mig[index]

    def _nvmlDeviceGetFieldValues(self, gpu: FakeGpu, wanted: Any) -> list[Any]:  # noqa: N802
        if gpu.fails is not None:
            raise pynvml.NVMLError(gpu.fails)
        return [_field(gpu.fields.get(tuple(key), Err(Code.NOT_SUPPORTED))) for key in wanted]

    def _nvmlDeviceGetGpuFabricInfoV(self, gpu: FakeGpu, pointer: Any) -> None:  # noqa: N802
        state = self._look_up("nvmlDeviceGetGpuFabricInfoV", gpu)
        if isinstance(state, Err):
            raise pynvml.NVMLError(state.code)
        pointer._obj.state = state

    def _nvmlEventSetCreate(self) -> object:  # noqa: N802
        return object()

    def _nvmlEventSetFree(self, event_set: object) -> None:  # noqa: N802
        assert event_set is not None

    def _nvmlDeviceRegisterEvents(self, gpu: FakeGpu, types: int, event_set: object) -> None:  # noqa: N802
        assert types == 8
        assert event_set is not None
        if "nvmlDeviceRegisterEvents" in gpu.answers:
            raise pynvml.NVMLError(gpu.answers["nvmlDeviceRegisterEvents"].code)

    def _nvmlEventSetWait_v2(self, event_set: object, timeout_ms: int) -> Any:  # noqa: N802
        assert event_set is not None
        try:
            event = self.events.get(timeout=timeout_ms / 50_000)
        except queue.Empty:
            raise pynvml.NVMLError(Code.TIMEOUT) from None
        if isinstance(event, Err):
            raise pynvml.NVMLError(event.code)
        return event


def _field(answer: Any) -> Any:
    if isinstance(answer, Err):
        return SimpleNamespace(nvmlReturn=answer.code, valueType=0, value=None)
    kind, name = (0, "dVal") if isinstance(answer, float) else (3, "ullVal")
    return SimpleNamespace(nvmlReturn=0, valueType=kind, value=SimpleNamespace(**{name: answer}))
