"""A hand-written recording: a server GPU with NVLink as NVML would describe it. Numbers are plausible, none is real."""

from types import SimpleNamespace
from typing import Any

from tests.collector.gpu.fake_nvml import FakeGpu

MIB = 1048576
V2 = 0x02000028
ALL_LINKS = 0xFFFFFFFF
NO_INSTANCE = 0xFFFFFFFF


def server_gpu(index: int = 0, links: int = 2, **more: Any) -> FakeGpu:
    """Return a GPU; `links` go to a switch. `more` are answers by call, in place of those here."""
    bus = f"00000000:{0x1A + index:02X}:00.0".encode()
    memory = SimpleNamespace(total=80_000 * MIB, used=60_000 * MIB, free=19_500 * MIB, reserved=500 * MIB)
    answers: dict[Any, Any] = {
        "nvmlDeviceGetUUID": f"GPU-0000000{index}-1111-2222-3333-444444444444",
        "nvmlDeviceGetName": "NVIDIA Example 80GB",
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId=bus),
        "nvmlDeviceGetVbiosVersion": "96.00.00.00.01",
        "nvmlDeviceGetSerial": f"16500000000{index}",
        "nvmlDeviceGetArchitecture": 9,
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetComputeMode": 3,
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=87, memory=41),
        ("nvmlDeviceGetMemoryInfo", V2): memory,
        "nvmlDeviceGetPowerUsage": 612_345,
        "nvmlDeviceGetTotalEnergyConsumption": 7_200_000_500,
        ("nvmlDeviceGetTemperatureV", 0): 61,
        "nvmlDeviceGetPerformanceState": 0,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x44,
        ("nvmlDeviceGetClockInfo", 1): 1755,
        **{
            ("nvmlDeviceGetViolationStatus", policy): SimpleNamespace(
                referenceTime=10**12, violationTime=policy * 10**9
            )
            for policy in range(6)
        },
        ("nvmlDeviceGetTotalEccErrors", 0, 0): 3,
        ("nvmlDeviceGetTotalEccErrors", 1, 0): 0,
        ("nvmlDeviceGetRetiredPages", 0): [0x10, 0x20],
        ("nvmlDeviceGetRetiredPages", 1): [],
        "nvmlDeviceGetRetiredPagesPendingStatus": 0,
        "nvmlDeviceGetComputeRunningProcesses_v3": [],
        ("nvmlDeviceGetCpuAffinity", 64): [0x000F_FFFF_FFFF_FFFF, 0xFF, *([0] * 62)],
        ("nvmlDeviceGetMemoryAffinity", 64, 0): [1 << index // 4, *([0] * 63)],
    }
    for link in range(links):
        answers["nvmlDeviceGetNvLinkState", link] = 1
        answers["nvmlDeviceGetNvLinkVersion", link] = 6
        answers["nvmlDeviceGetNvLinkRemoteDeviceType", link] = 2
        answers["nvmlDeviceGetNvLinkRemotePciInfo", link] = SimpleNamespace(busId=b"00000000:C1:00.0")
        for counter in range(4):
            answers["nvmlDeviceGetNvLinkErrorCounter", link, counter] = 10 * link + counter
    fields: dict[tuple[int, int], Any] = {(82, 0): 70, (91, 0): links, (186, 0): 600_000}
    for link in range(links):
        fields |= {(164, link): 26562, (138, link): 1024 * (link + 1), (139, link): 2048 * (link + 1)}
    if links:
        total = links * (links + 1) // 2
        fields |= {(138, ALL_LINKS): 1024 * total, (139, ALL_LINKS): 2048 * total}
    return FakeGpu(answers | more, fields)
