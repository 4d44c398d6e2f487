"""The NVML library: its error codes, starting it, and what to do where it does not start."""

import importlib
from enum import IntEnum
from typing import Any

from store.errors import SourceError


class Code(IntEnum):
    """NVML's return codes (nvml.h, nvmlReturn_t) that mean something to a reader."""

    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    LIB_RM_VERSION_MISMATCH = 18
    NO_DATA = 21
    VGPU_ECC_NOT_SUPPORTED = 22
    ARGUMENT_VERSION_MISMATCH = 25
    DEPRECATED = 26
    GPU_NOT_FOUND = 28
    UNKNOWN = 999


ABSENT = {
    Code.NOT_SUPPORTED: "not supported by this device",
    Code.NO_PERMISSION: "no permission: root, or a setting of the driver, is needed",
    Code.NOT_FOUND: "this device has none",
    Code.FUNCTION_NOT_FOUND: "not known to this driver: it is too old",
    Code.INVALID_ARGUMENT: "not known to this driver",
    Code.ARGUMENT_VERSION_MISMATCH: "not known to this driver in this form",
    Code.DEPRECATED: "no longer offered by this driver",
    Code.VGPU_ECC_NOT_SUPPORTED: "not supported by this virtual GPU",
}
"""Answers that will be the same next time."""

LOST = {
    Code.GPU_IS_LOST: "the GPU has fallen off the bus or is inaccessible",
    Code.GPU_NOT_FOUND: "the GPU is no longer there",
    Code.RESET_REQUIRED: "the GPU needs a reset before it can be used again",
}

GONE = frozenset((Code.UNINITIALIZED, Code.DRIVER_NOT_LOADED, Code.LIB_RM_VERSION_MISMATCH))
"""Answers that are about the driver and hold for every GPU."""

_START = {
    Code.LIBRARY_NOT_FOUND: (
        "libnvidia-ml.so.1 is not here",
        "install the NVIDIA driver; in a container use the NVIDIA runtime with NVIDIA_DRIVER_CAPABILITIES=utility",
    ),
    Code.DRIVER_NOT_LOADED: ("the NVIDIA driver is not loaded", "modprobe nvidia, and see dmesg where that fails"),
    Code.LIB_RM_VERSION_MISMATCH: (
        "the NVML library and the loaded driver are of different versions",
        "the driver was updated while loaded: reload its modules or reboot",
    ),
    Code.NO_PERMISSION: ("no permission to use the NVIDIA driver", "allow this user to read and write /dev/nvidia*"),
    Code.UNKNOWN: (
        "NVML does not start and says only 'unknown error'",
        "in a container /dev/nvidia* were taken away (a systemd reload does this): restart it; else see dmesg for NVRM",
    ),
}


def load() -> Any:
    """Return the module that speaks to NVML. Raises SourceError where it is not installed."""
    try:
        return importlib.import_module("pynvml")
    except ImportError as error:
        raise SourceError("the module pynvml is not installed", "install nvidia-ml-py") from error


def explain(code: int, text: str) -> SourceError:
    """Return the error to raise for an NVML code that stops the whole collector."""
    fact, hint = _START.get(Code(code), ("", "")) if code in set(Code) else ("", "")
    return SourceError(f"NVML: {fact or text or f'error {code}'}", hint or "run nvidia-smi on this machine")
