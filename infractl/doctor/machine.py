"""GPUs of this machine that nobody reads."""

from collections.abc import Iterator
from pathlib import Path

from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts

DRIVERS = {
    "nvml": (Path("/proc/driver/nvidia/version"), "an NVIDIA driver"),
    "amd": (Path("/dev/kfd"), "an AMD GPU driver"),
}


def check(facts: Facts) -> Iterator[Advice]:
    """Say how to read the GPUs of this machine, where it has some and no series is about a GPU."""
    if any((name or "").startswith("gpu_") for name in facts.series["canonical"].unique()):
        return
    for collector, (path, what) in DRIVERS.items():
        if path.exists():
            fact = f"this machine has {what}, and no GPU metrics come in"
            remedy = "scrape the exporter it runs, or let infractl read the driver: in infractl.yaml"
            lines = ("collectors:", f"  {collector}: {{every: 15s}}")
            yield Advice("machine", Severity.WARNING, "this machine", fact, remedy, lines)
