"""Why a GPU's clocks are below their limit: NVML's bit mask and its reasons by name, each with how much it matters."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

QUIET, INFO, ALERT = "quiet", "info", "alert"


@dataclass(frozen=True, slots=True)
class Reason:
    """One bit of NVML's mask; `severity` is quiet (normal), info (as configured) or alert (something is wrong)."""

    bit: int
    name: str
    severity: str


# nvml.h: nvmlClocksThrottleReason*, renamed nvmlClocksEventReason* in driver 535; the bits stayed.
REASONS = (
    Reason(0x1, "gpu_idle", QUIET),
    Reason(0x2, "applications_clocks_setting", QUIET),
    Reason(0x4, "sw_power_cap", INFO),
    Reason(0x8, "hw_slowdown", ALERT),
    Reason(0x10, "sync_boost", INFO),
    Reason(0x20, "sw_thermal_slowdown", ALERT),
    Reason(0x40, "hw_thermal_slowdown", ALERT),
    Reason(0x80, "hw_power_brake_slowdown", ALERT),
    Reason(0x100, "display_clock_setting", QUIET),
)
_SEVERITY = {reason.name: reason.severity for reason in REASONS} | {"low_util": QUIET, "low_utilization": QUIET}
_ALARMING = ("thermal", "hot", "brake", "slowdown")
_PREFIX = re.compile(r"^(?:nvmlClocks(?:Throttle|Event)Reasons?(?=[A-Z])|clocks?_(?:throttle|event)_reasons?[._])")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def throttle_reasons(mask: int) -> list[tuple[str, str]]:
    """Return (name, severity) of every bit set in NVML's mask, lowest bit first; 0 gives none.

    A bit that no driver up to 590 documents is `bit_<n>`, info.
    """
    known = [(reason.name, reason.severity) for reason in REASONS if mask & reason.bit]
    rest = mask & ~sum(reason.bit for reason in REASONS)
    return known + [(f"bit_{n}", INFO) for n in range(rest.bit_length()) if rest >> n & 1]


def reason_name(name: str) -> str:
    """Return the name used here for a reason as NVML's two generations and nvidia-smi spell it.

    `nvmlClocksEventReasonSwPowerCap`, `clocks_throttle_reasons.sw_power_cap` and `SW_POWER_CAP` are `sw_power_cap`.
    """
    bare = _PREFIX.sub("", name)
    snake = bare if bare.isupper() else _HUMP.sub("_", bare)
    return snake.strip("_.").lower().replace(" ", "_")


def reason_severity(name: str) -> str:
    """Return quiet, info or alert for a reason by name, as exporters of any vendor write it.

    Heat and failing power are alerts under whatever name; what is not known is info.
    """
    bare = reason_name(name)
    return _SEVERITY.get(bare) or (ALERT if any(part in bare for part in _ALARMING) else INFO)


def told(reasons: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the reasons that are not quiet as text (empty for none), and the severity of the worst."""
    known = list(reasons)
    worst = next((one for one in (ALERT, INFO) if one in {severity for _, severity in known}), QUIET)
    return ", ".join(name for name, severity in known if severity != QUIET), worst
