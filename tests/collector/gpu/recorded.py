"""A capture of nvidia-smi as the answers that NVML must have given, in NVML's units and with its errors for N/A."""

from types import SimpleNamespace
from typing import Any

from tests.collector.gpu.captures import Capture
from tests.collector.gpu.fake_nvml import FakeGpu

MIB = 1048576
V2 = 0x02000028
CLOCKS = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}
THRESHOLDS = {"shutdown": 0, "slowdown": 1, "memory_max": 2, "max_operating": 3, "target": 5}
FABRIC = {"Completed": 3, "In Progress": 2, "Not Started": 1}
NO_INSTANCE = 0xFFFFFFFF


def gpu_of(capture: Capture) -> FakeGpu:
    """Return the GPU of a capture."""
    answers: dict[Any, Any] = {
        "nvmlDeviceGetUUID": capture.text("uuid"),
        "nvmlDeviceGetName": capture.text("model"),
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId=capture.bus_id.encode()),
        "nvmlDeviceGetVbiosVersion": capture.text("vbios"),
        "nvmlDeviceGetSerial": capture.text("serial"),
        "nvmlDeviceGetMigMode": _mode(capture, "mig"),
        "nvmlDeviceGetEccMode": _mode(capture, "ecc"),
        "nvmlDeviceGetPersistenceMode": (_mode(capture, "persistence") or [None])[0],
        "nvmlDeviceGetMaxMigDeviceCount": 7 if capture.instances() else None,
        "nvmlDeviceGetCurrentClocksEventReasons": capture.reasons(),
        "nvmlDeviceGetRemappedRows": _rows(capture),
        "nvmlDeviceGetGpuFabricInfoV": FABRIC.get(capture.text("fabric") or ""),
        **_memory(capture),
        **_load(capture),
        **_power(capture),
        **_clocks(capture),
        **_pcie(capture),
        **_processes(capture),
    }
    for kind, error in (("corrected", 0), ("uncorrected", 1)):
        for since, counter in (("volatile", 0), ("aggregate", 1)):
            answers["nvmlDeviceGetTotalEccErrors", error, counter] = capture.ecc(since, kind)
    milliwatts = {185: "power average", 186: "power instant"}
    fields = {(id_, 0): _times(capture.number(name), 1000) for id_, name in milliwatts.items()}
    fields[82, 0] = _times(capture.number("heat memory"), 1)
    fields[74, 0] = _times(capture.number("held power"), 1000)
    return FakeGpu(
        answers={key: value for key, value in answers.items() if value is not None},
        fields={key: value for key, value in fields.items() if value is not None},
        mig=[_instance(part) for part in capture.instances()],
    )


def _times(value: float | None, factor: int) -> int | None:
    return None if value is None else round(value * factor)


def _mode(capture: Capture, name: str) -> list[int] | None:
    text = capture.text(name)
    return None if text is None else [int(text == "Enabled")] * 2


def _rows(capture: Capture) -> tuple[int, ...] | None:
    counts = [capture.number("rows corrected"), capture.number("rows uncorrected")]
    flags = [capture.text("rows pending"), capture.text("rows failed")]
    if None in (*counts, *flags):
        return None
    return (*(int(count or 0) for count in counts), *(int(flag == "Yes") for flag in flags))


def _memory(capture: Capture) -> dict[Any, Any]:
    names = {name: capture.number(f"memory {name}") for name in ("used", "free", "total", "reserved")}
    found: dict[Any, Any] = {}
    if names["total"] is not None:
        version = () if names["reserved"] is None else (V2,)
        value = SimpleNamespace(**{name: int(mib * MIB) for name, mib in names.items() if mib is not None})
        found[("nvmlDeviceGetMemoryInfo", *version) if version else "nvmlDeviceGetMemoryInfo"] = value
    bar1 = {f"bar1{name.title()}": _times(capture.number(f"bar1 {name}"), MIB) for name in ("used", "free", "total")}
    if None not in bar1.values():
        found["nvmlDeviceGetBAR1MemoryInfo"] = SimpleNamespace(**bar1)
    return found


def _load(capture: Capture) -> dict[Any, Any]:
    busy = {name: _times(capture.number(f"busy {name}"), 1) for name in ("gpu", "memory", "encoder", "decoder")}
    more = {name: _times(capture.number(f"busy {name}"), 1) for name in ("jpeg", "ofa")}
    rates = None if busy["gpu"] is None else SimpleNamespace(gpu=busy["gpu"], memory=busy["memory"])
    calls = {"encoder": "Encoder", "decoder": "Decoder", "jpeg": "Jpg", "ofa": "Ofa"}
    shares = {
        f"nvmlDeviceGet{call}Utilization": None if (busy | more)[name] is None else [(busy | more)[name], 167000]
        for name, call in calls.items()
    }
    return {"nvmlDeviceGetUtilizationRates": rates, **shares}


def _power(capture: Capture) -> dict[Any, Any]:
    drawn = capture.number("power") or capture.number("power average")
    limits = [_times(capture.number(f"limit {name}"), 1000) for name in ("min", "max")]
    return {
        "nvmlDeviceGetPowerUsage": _times(drawn, 1000),
        "nvmlDeviceGetEnforcedPowerLimit": _times(capture.number("limit enforced"), 1000),
        "nvmlDeviceGetPowerManagementLimit": _times(capture.number("limit requested"), 1000),
        "nvmlDeviceGetPowerManagementDefaultLimit": _times(capture.number("limit default"), 1000),
        "nvmlDeviceGetPowerManagementLimitConstraints": None if None in limits else limits,
        ("nvmlDeviceGetTemperatureV", 0): _times(capture.number("heat gpu"), 1),
        "nvmlDeviceGetMarginTemperature": _times(capture.number("heat margin"), 1),
        "nvmlDeviceGetFanSpeed": _times(capture.number("fan"), 1),
        "nvmlDeviceGetPerformanceState": _times(capture.number("pstate"), 1),
        **{
            ("nvmlDeviceGetTemperatureThreshold", id_): _times(capture.number(f"heat {name}"), 1)
            for name, id_ in THRESHOLDS.items()
        },
    }


def _clocks(capture: Capture) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, id_ in CLOCKS.items():
        found["nvmlDeviceGetClockInfo", id_] = _times(capture.number(f"clock {name}"), 1)
        found["nvmlDeviceGetMaxClockInfo", id_] = _times(capture.number(f"max {name}"), 1)
    for name in ("graphics", "memory"):
        found["nvmlDeviceGetApplicationsClock", CLOCKS[name]] = _times(capture.number(f"application {name}"), 1)
    return found


def _pcie(capture: Capture) -> dict[Any, Any]:
    return {
        "nvmlDeviceGetCurrPcieLinkGeneration": _times(capture.number("pcie generation"), 1),
        "nvmlDeviceGetMaxPcieLinkGeneration": _times(capture.number("pcie max generation"), 1),
        "nvmlDeviceGetGpuMaxPcieLinkGeneration": _times(capture.number("pcie device generation"), 1),
        "nvmlDeviceGetCurrPcieLinkWidth": _times(capture.number("pcie width"), 1),
        "nvmlDeviceGetMaxPcieLinkWidth": _times(capture.number("pcie max width"), 1),
        ("nvmlDeviceGetPcieThroughput", 0): _times(capture.number("pcie tx"), 1),
        ("nvmlDeviceGetPcieThroughput", 1): _times(capture.number("pcie rx"), 1),
        "nvmlDeviceGetPcieReplayCounter": _times(capture.number("pcie replays"), 1),
    }


def _processes(capture: Capture) -> dict[Any, Any]:
    def running(letter: str) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(
                pid=p.pid,
                usedGpuMemory=int(p.used_mib * MIB),
                gpuInstanceId=NO_INSTANCE if p.instance is None else p.instance,
            )
            for p in capture.processes()
            if letter in p.kind
        ]

    return {
        "nvmlDeviceGetComputeRunningProcesses_v3": running("C"),
        "nvmlDeviceGetGraphicsRunningProcesses_v3": running("G"),
    }


def _instance(part: Capture) -> FakeGpu:
    slices = {40448: (3, 40448), 20096: (2, 20096), 9984: (1, 9984), 19968: (3, 19968)}
    total = int(part.number("memory total") or 0)
    return FakeGpu(
        answers={
            "nvmlDeviceGetGpuInstanceId": int(part.text("instance") or -1),
            "nvmlDeviceGetAttributes_v2": SimpleNamespace(
                gpuInstanceSliceCount=slices[total][0], memorySizeMB=slices[total][1]
            ),
            **_memory(part),
        }
    )
