"""What readers cannot see is one advice per reason, with names, a count and a remedy."""

from dataclasses import replace
from typing import Any

import pytest

from analytics.result import Severity
from collector.gpu.library import ABSENT
from collector.prometheus.targets import EVERYTHING
from infractl.doctor import absences
from infractl.doctor.advice import Advice
from infractl.doctor.facts import nothing
from tests.infractl.doctor.examined import NOW


def told(*found: tuple[str, str, str], job: str = "nvml") -> list[Advice]:
    rows: list[dict[str, Any]] = [
        {"job": job, "instance": "n1", "subject": subject, "what": what, "reason": reason}
        for subject, what, reason in found
    ]
    return list(absences.check(replace(nothing(NOW), absences=rows)))


def test_metrics_that_all_gpus_lack_are_one_advice_with_the_first_names_and_a_count() -> None:
    lacking = [(f"GPU {gpu}", f"gpu_m{m}", "not supported by this device") for gpu in range(8) for m in range(6)]
    [advice] = told(*lacking)
    assert advice.fact == (
        "cannot see gpu_m0, gpu_m1, gpu_m2, gpu_m3 and 2 more of GPU 0, GPU 1, GPU 2, GPU 3 and 4 more: "
        "not supported by this device"
    )
    assert (advice.severity, advice.subject) == (Severity.INFO, "nvml n1")
    assert advice.remedy.startswith("nothing to do")


def test_reasons_are_told_apart() -> None:
    forbidden = ABSENT[4]
    found = told(("GPU 0", "gpu_a", "not supported by this device"), ("GPU 0", "gpu_b", forbidden))
    assert [advice.fact for advice in found] == [
        "cannot see gpu_a of GPU 0: not supported by this device",
        f"cannot see gpu_b of GPU 0: {forbidden}",
    ]
    assert "CAP_SYS_ADMIN" in found[1].remedy


@pytest.mark.parametrize(
    ("what", "reason", "words"),
    [
        ("/proc/pressure/irq", "No such file or directory", "CONFIG_IRQ_TIME_ACCOUNTING"),
        ("/proc/pressure/cpu", "No such file or directory", "psi=1"),
        ("/proc/pressure/io", "Operation not supported", "psi=1"),
        ("/sys/fs/resctrl", "not mounted", "mount -t resctrl resctrl /sys/fs/resctrl"),
        ("/sys/fs/resctrl", "No such file or directory", "nothing to do where"),
        ("/sys/class/infiniband", "No such file or directory", "InfiniBand"),
        ("/proc/*/fd (412 files)", "Permission denied", "CAP_SYS_PTRACE"),
        ("/proc/interrupts", "Permission denied", "as root"),
        ("/proc/diskstats", "not understood: 1 2", "report it"),
        ("/proc/softirqs", "No such file or directory", "collectors: {host: {root: /host}}"),
        ("gpu_x", "not known to the installed nvidia-ml-py", "newer nvidia-ml-py"),
        ("gpu_x", ABSENT[13], "newer NVIDIA driver"),
        ("gpu_x", ABSENT[26], "nothing to do"),
        (EVERYTHING, "Insufficient Permissions", "/dev/nvidia*"),
        (EVERYTHING, "nvmlDeviceGetFanSpeed has not answered for 9 s", "dmesg"),
    ],
)
def test_what_is_known_to_help_is_the_remedy(what: str, reason: str, words: str) -> None:
    [advice] = told(("", what, reason), job="host")
    assert words in advice.remedy
    assert advice.fact == f"cannot see {what}: {reason}"


@pytest.mark.parametrize("reason", ABSENT.values())
def test_every_reason_that_nvml_gives_has_a_remedy(reason: str) -> None:
    [advice] = told(("GPU 0", "gpu_x", reason))
    assert advice.remedy


def test_nothing_absent_is_nothing_told() -> None:
    assert told() == []
