"""How busy and how full a GPU is, and the modes it runs in."""

from collections.abc import Iterator, Mapping
from operator import attrgetter, itemgetter

from collector.gpu.ask import NOT_NOW, Ask, Part, answers
from collector.gpu.device import PERCENT, Device
from collector.prometheus.exposition import Sample

_MEMORY_V2 = 0x02000028
_USED = {"used": "used", "free": "free", "total": "total"}
_MODES = {0: "disabled", 1: "enabled"}
_COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}


def _states(metric: str, names: Mapping[str, str]) -> tuple[Part, ...]:
    return tuple(Part(metric, {"state": state}, pick=attrgetter(name)) for state, name in names.items())


def _engine(call: str, engine: str) -> Ask:
    return Ask(call, (Part("gpu_utilization_ratio", {"engine": engine}, PERCENT, itemgetter(0), most=100),))


MEMORY = (
    # NVML counts what the driver reserves as used unless asked in version 2.
    Ask(
        "nvmlDeviceGetMemoryInfo",
        _states("gpu_memory_bytes", {**_USED, "reserved": "reserved"}),
        (_MEMORY_V2,),
        Ask("nvmlDeviceGetMemoryInfo", _states("gpu_memory_bytes", _USED)),
    ),
    Ask(
        "nvmlDeviceGetBAR1MemoryInfo",
        _states("gpu_bar1_memory_bytes", {"used": "bar1Used", "free": "bar1Free", "total": "bar1Total"}),
    ),
)
UTILIZATION = (
    Ask(
        "nvmlDeviceGetUtilizationRates",
        (
            Part("gpu_utilization_ratio", {"engine": "graphics"}, PERCENT, attrgetter("gpu"), most=100),
            Part("gpu_utilization_ratio", {"engine": "memory_copy"}, PERCENT, attrgetter("memory"), most=100),
        ),
    ),
    _engine("nvmlDeviceGetEncoderUtilization", "encoder"),
    _engine("nvmlDeviceGetDecoderUtilization", "decoder"),
    _engine("nvmlDeviceGetJpgUtilization", "jpeg"),
    _engine("nvmlDeviceGetOfaUtilization", "ofa"),
)


def load(device: Device) -> Iterator[Sample]:
    """Yield utilisation, memory and modes."""
    yield from answers(device.asker, (*UTILIZATION, *MEMORY), device.labels)
    modes = {
        **_mode(device, "mig", "nvmlDeviceGetMigMode", _MODES),
        **_mode(device, "ecc", "nvmlDeviceGetEccMode", _MODES),
        **_mode(device, "persistence", "nvmlDeviceGetPersistenceMode", _MODES),
        **_mode(device, "compute", "nvmlDeviceGetComputeMode", _COMPUTE_MODES),
    }
    if modes:
        yield Sample("gpu_mode_info", {**device.labels, **modes}, 1.0, None)


def _mode(device: Device, name: str, call: str, names: Mapping[int, str]) -> dict[str, str]:
    """Return a mode as a label; NVML answers with a number, or with the current and the pending one."""
    answer = device.asker.ask(f"gpu_mode_info {name}", call)
    if answer is None or answer is NOT_NOW:
        return {}
    return {name: names.get(answer[0] if isinstance(answer, (list, tuple)) else answer, "unknown")}
