"""What readers on this machine cannot see, by reason, and what would let them."""

from collections.abc import Iterator, Mapping
from typing import Any

from analytics.result import Severity
from collector.prometheus.targets import EVERYTHING
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts
from infractl.doctor.pages import shown

_ROOT = "in a container mount the host's root and name it: collectors: {host: {root: /host}}"
REMEDIES = (
    ("/proc/pressure/irq", "", "nothing to do: the kernel is built without CONFIG_IRQ_TIME_ACCOUNTING"),
    ("/proc/pressure", "", f"boot with psi=1 (a kernel with CONFIG_PSI); {_ROOT}"),
    ("/sys/fs/resctrl", "not mounted", "mount -t resctrl resctrl /sys/fs/resctrl"),
    ("/sys/fs/resctrl", "", f"nothing to do where CPU or kernel do not have it; {_ROOT}"),
    ("/sys/class/infiniband", "", f"nothing to do where there is no InfiniBand and no RoCE; {_ROOT}"),
    ("/proc/*/", "denied", "run infractl as root, or with CAP_SYS_PTRACE"),
    ("/", "denied", "run infractl as root"),
    ("/", "not permitted", "run infractl as root"),
    ("/", "not understood", "report it with that file: this kernel writes it in a form that infractl does not know"),
    ("/", "", f"nothing to do where this machine has no such thing; {_ROOT}"),
    (EVERYTHING, "ermission", "allow the user of infractl to read and write /dev/nvidia*"),
    (EVERYTHING, "", "see dmesg for NVRM and Xid; reset the GPU or reboot"),
    ("", "no permission", "run infractl as root, or with CAP_SYS_ADMIN"),
    ("", "nvidia-ml-py", "install a newer nvidia-ml-py beside infractl"),
    ("", "not known to this driver", "a newer NVIDIA driver may know it"),
    ("", "", "nothing to do: this GPU, or its driver, does not have it"),
)
"""How the name of what is absent begins, a part of the reason, and what to do; the first that fits."""


def check(facts: Facts) -> Iterator[Advice]:
    """Give one advice per reader, reason and remedy."""
    grouped: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for absence in facts.absences:
        reader = f"{absence['job']} {absence['instance']}"
        key = reader, absence["reason"], _remedy(absence["what"], absence["reason"])
        grouped.setdefault(key, []).append(absence)
    for (reader, reason, remedy), found in grouped.items():
        owners = {absence["subject"] for absence in found if absence["subject"]}
        about = f" of {shown(owners)}" if owners else ""
        fact = f"cannot see {shown({absence['what'] for absence in found})}{about}: {reason}"
        yield Advice("absences", Severity.INFO, reader, fact, remedy)


def _remedy(what: str, reason: str) -> str:
    return next(remedy for begin, part, remedy in REMEDIES if what.startswith(begin) and part in reason)
