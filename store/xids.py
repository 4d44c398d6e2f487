"""NVIDIA's Xid and SXid errors: what each says of the GPU, how grave it is, and what to do.

Collectors write these severities, analyses read them. Source of a severity and an action: the column "Immediate
Action" of NVIDIA's Xid catalog (https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, for A100 and
newer), whose word stands in `Xid.source`. A reset of the GPU or the machine is critical, a restart of the application
or a check by hand a warning, what may be ignored is information. Where the catalog leaves a code open, the worse
reading counts and `source` says so.
SXid: Fabric Manager User Guide, appendix "NVSwitch SXid errors".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "critical"]


@dataclass(frozen=True, slots=True)
class Xid:
    """What a code says in a few words (`text`), how bad it is for the device, what to do, and who says so."""

    text: str
    severity: Severity
    action: str
    source: str


_APPLICATION = "restart the program and look for its fault; if several programs meet it on one GPU, run dcgmi diag"
_RESET = "drain the GPU and reset it; if it comes back, have the GPU examined (dcgmi diag, then its vendor)"
_LINK = "reset the GPUs at both ends; if it comes back, reseat or reroute the NVLink"
_SUPPORT = "look the code up in NVIDIA's Xid catalog; if it comes back, ask the vendor"
_IGNORED = "nothing now; if it keeps coming, ask the vendor"
# Immediate Action of the catalog: severity and what to do.
_BUCKETS: Mapping[str, tuple[Severity, str]] = {
    "IGNORE": ("info", _IGNORED),
    "RESTART_APP": ("warning", _APPLICATION),
    "RESET_GPU": ("critical", _RESET),
    "RESTART_BM": ("critical", "drain and reboot the node; if it comes back, reseat or replace the GPU"),
    "RESTART_VM": ("critical", "restart the virtual machine that has the GPU, or drain and reboot the node"),
    "UPDATE_SWFW": ("warning", "update driver and vGPU software: guest and host do not fit"),
    "CHECK_MECHANICALS": ("warning", "check that the board is seated and its power cable plugged in"),
    "WORKFLOW_XID_45": ("info", "follow the error beside it; alone, a program ended, or restart the Fabric Manager"),
    "WORKFLOW_XID_48": ("critical", _RESET),
    "WORKFLOW_NVLINK_ERR": ("critical", _LINK),
    "WORKFLOW_NVLINK5_ERR": ("critical", _LINK),
    "CHECK_UVM": ("critical", "drain the GPU and reset it where programs use managed memory or vGPU, else ignore it"),
    "XID_154": ("warning", "do what the line of the kernel log names (nvidia-smi -q: GPU Recovery Action)"),
}
_TABLE: Mapping[str, Mapping[int, str]] = {
    "IGNORE": {
        14: "injected error", 37: "driver firmware error", 38: "driver firmware error",
        43: "application stopped by a fault of its own", 44: "graphics engine fault during a context switch",
        66: "illegal access by the driver", 67: "illegal access by the driver", 92: "many single-bit ECC errors",
        93: "InfoROM wear limit reached", 106: "test message", 107: "test message",
        108: "NVLink remote translation error", 137: "NVLink access denied", 141: "CUDA fast path error",
        152: "DLA memory error", 153: "DLA timeout", 160: "memory channel retired",
    },
    "RESTART_APP": {
        8: "GPU stopped processing", 11: "corrupted push buffer", 13: "graphics engine exception",
        25: "illegal push buffer", 31: "GPU memory page fault", 32: "corrupted push buffer",
        60: "video processor exception", 69: "graphics engine class error", 80: "corrupted data sent to the GPU",
        94: "contained memory error",
        **dict.fromkeys((39, 40, 41, *range(70, 73), *range(75, 78), 85, *range(126, 136)), "copy engine error"),
        **dict.fromkeys((68, 83, 84, 88, 89, 96, 97, 98), "video decoder error"),
        **dict.fromkeys((82, *range(99, 106)), "JPEG decoder error"), **dict.fromkeys((86, 139), "optical flow error"),
    },
    "RESET_GPU": {
        46: "GPU stopped processing", 62: "micro-controller halted", 64: "row remapping or page retirement failed",
        95: "uncontained memory error", 109: "context switch timeout", 110: "security fault",
        119: "GSP firmware does not answer", 120: "GSP firmware error", 136: "link training failed",
        140: "ECC error not recovered", 143: "GPU failed to start", 155: "NVLink taken down by software",
        156: "GPU resource retired", 158: "GPU timeout that is fatal",
    },
    "RESTART_BM": {79: "GPU fell off the bus"},
    "RESTART_VM": {151: "key rotation error"},
    "UPDATE_SWFW": {78: "vGPU failed to start"},
    "CHECK_MECHANICALS": {54: "auxiliary power is not connected"},
    "WORKFLOW_XID_45": {45: "channel removed by force"},
    "WORKFLOW_XID_48": {48: "double-bit ECC error"},
    "WORKFLOW_NVLINK_ERR": {74: "NVLink error"},
    "WORKFLOW_NVLINK5_ERR": dict.fromkeys((144, 145, 146, 149, 150), "NVLink error"),
    "CHECK_UVM": {159: "CHI error without data"},
    "XID_154": {154: "recovery action changed"},
}  # fmt: skip
_OPEN = "catalog names no action; the worse reading"
_SINGLE: Mapping[int, Xid] = {
    61: Xid("micro-controller breakpoint", "warning", _SUPPORT, "unused since A100: CONTACT_SUPPORT"),
    63: Xid("row remapped or page retired", "info", "reset the GPU when it is idle, so that the row is replaced",
            "IGNORE; dynamic page retirement guide: active after a reset"),
    121: Xid("chip-to-chip link error, corrected", "info", "reset the GPU when it is idle, so that the link is trained",
             "IGNORE; catalog: trigger conditions"),
    142: Xid("video encoder error", "critical", _SUPPORT, "CONTACT_SUPPORT and no more; the worse reading"),
    147: Xid("NVLink error", "info", _IGNORED, "WORKFLOW_NVLINK5_ERR: IGNORE for every status"),
    148: Xid("NVLink error", "info", _IGNORED, "WORKFLOW_NVLINK5_ERR: IGNORE for every status"),
    157: Xid("GPU resource could not be retired", "warning", "nothing is left to repair it with: plan to replace it",
             "IGNORE, though it comes again; the worse reading"),
    161: Xid("memory channel could not be retired", "warning", _SUPPORT, "IGNORE of a failure; the worse reading"),
    163: Xid("power smoothing went off", "warning", "look for heat; reload the driver or reset the GPU to have it back",
             "catalog: trigger conditions"),
    164: Xid("power smoothing is nearly used up", "warning", "plan to replace the GPU where power must be smooth",
             "catalog: trigger conditions"),
    165: Xid("power smoothing is used up", "warning", "replace the GPU where power must be smooth",
             "catalog: trigger conditions"),
    167: Xid("PCIe timeout that is fatal", "critical", _RESET, _OPEN),
    168: Xid("less GPU memory than there should be", "warning", "switch ECC on, or boot again",
             "catalog: trigger conditions"),
    169: Xid("micro-controller halted", "critical", _RESET, f"{_OPEN}, as for 62"),
    171: Xid("uncorrectable DRAM error", "critical", _RESET, "catalog: comes with 48 and tells more of it"),
    172: Xid("uncorrectable SRAM error", "critical", _RESET, "catalog: comes with 48 and tells more of it"),
}  # fmt: skip
XIDS: Mapping[int, Xid] = {
    code: Xid(text, *_BUCKETS[bucket], bucket) for bucket, texts in _TABLE.items() for code, text in texts.items()
} | dict(_SINGLE)
"""Codes that mean something on A100 and newer, and what they mean."""
_UNKNOWN = Xid("", "warning", _SUPPORT, "not in the catalog, or unused there")
_RECOVERY = 154
_ALWAYS_FATAL = frozenset({10003, 12020, 22003, 22011, *range(23001, 23018)})


def describe(code: int) -> Xid:
    """Return what is known of a code; an unknown one is a warning without `text`."""
    return XIDS.get(code, _UNKNOWN)


def xid_severity(code: int, message: str = "") -> Severity:
    """Return how grave an Xid is by its line in the kernel log: Xid 154 says in words what the GPU needs."""
    if code != _RECOVERY or not message:
        return describe(code).severity
    needed = message.lower().rpartition(" to ")[2]
    if "reset" in needed or "reboot" in needed:
        return "critical"
    return "info" if "none" in needed else "warning"


def sxid_severity(code: int, message: str) -> Severity:
    """Return how grave an NVSwitch error is, by the words of its line, else by the guide's list."""
    said = message.lower().replace("_", "-")
    if "non-fatal" in said or "nonfatal" in said:
        return "warning"
    return "critical" if "fatal" in said or code in _ALWAYS_FATAL else "warning"
