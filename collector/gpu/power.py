"""Power, heat and clocks of a GPU, their limits, and why and how long clocks were held down."""

import math
from collections.abc import Iterator
from operator import attrgetter, itemgetter

from collector.gpu.ask import Ask, Field, Part, answers, field_answers
from collector.gpu.device import MHZ, MILLI, NS, PERCENT, Device, one
from collector.prometheus.exposition import Sample

_CLOCKS = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}
_THRESHOLDS = {"shutdown": 0, "slowdown": 1, "memory_max": 2, "max_operating": 3, "target": 5}

# GetPowerUsage is what nvidia-smi calls power.draw: from Ampere on, the mean of a second.
POWER = (
    one("gpu_power_watts", "nvmlDeviceGetPowerUsage", scale=MILLI),
    one("gpu_power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit", scale=MILLI, limit="enforced"),
    one("gpu_power_limit_watts", "nvmlDeviceGetPowerManagementLimit", scale=MILLI, limit="requested"),
    one("gpu_power_limit_watts", "nvmlDeviceGetPowerManagementDefaultLimit", scale=MILLI, limit="default"),
    Ask(
        "nvmlDeviceGetPowerManagementLimitConstraints",
        (
            Part("gpu_power_limit_watts", {"limit": "min"}, MILLI, itemgetter(0)),
            Part("gpu_power_limit_watts", {"limit": "max"}, MILLI, itemgetter(1)),
        ),
    ),
    one("gpu_energy_joules_total", "nvmlDeviceGetTotalEnergyConsumption", scale=MILLI),
)
_INSTANT = Field(186, Part("gpu_power_instant_watts", scale=MILLI))
_AVERAGE = Field(185, Part("gpu_power_watts", scale=MILLI))

_TEMPERATURE_V1 = one("gpu_temperature_celsius", "nvmlDeviceGetTemperature", 0, sensor="gpu")
HEAT = (
    one("gpu_temperature_celsius", "nvmlDeviceGetTemperatureV", 0, sensor="gpu", instead=_TEMPERATURE_V1),
    one("gpu_temperature_margin_celsius", "nvmlDeviceGetMarginTemperature"),
    *(
        one("gpu_temperature_limit_celsius", "nvmlDeviceGetTemperatureThreshold", threshold, limit=limit)
        for limit, threshold in _THRESHOLDS.items()
    ),
    one("gpu_fan_ratio", "nvmlDeviceGetFanSpeed", scale=PERCENT),
)
_MEMORY_TEMPERATURE = Field(82, Part("gpu_temperature_celsius", {"sensor": "memory"}, most=1000))

_REASONS_V1 = one("gpu_throttle_reasons_bitmask", "nvmlDeviceGetCurrentClocksThrottleReasons")
_LIMITS = (
    ("max", "nvmlDeviceGetMaxClockInfo", ("graphics", "sm", "memory", "video")),
    ("application", "nvmlDeviceGetApplicationsClock", ("graphics", "memory")),
    ("default", "nvmlDeviceGetDefaultApplicationsClock", ("graphics", "memory")),
)
CLOCKS = (
    Ask("nvmlDeviceGetPerformanceState", (Part("gpu_performance_state", most=15),)),
    one("gpu_throttle_reasons_bitmask", "nvmlDeviceGetCurrentClocksEventReasons", instead=_REASONS_V1),
    *(one("gpu_clock_hz", "nvmlDeviceGetClockInfo", id_, scale=MHZ, domain=name) for name, id_ in _CLOCKS.items()),
    *(
        one("gpu_clock_limit_hz", call, _CLOCKS[domain], scale=MHZ, domain=domain, limit=limit)
        for limit, call, domains in _LIMITS
        for domain in domains
    ),
)

# In the order of NVML_PERF_POLICY_* and of NVML_FI_DEV_PERF_POLICY_*, which are the same counters, all in ns.
_POLICIES = ("power", "thermal", "sync_boost", "board_limit", "low_utilization", "reliability")
_HELD = {reason: Part("gpu_throttle_seconds_total", {"reason": reason}, NS) for reason in _POLICIES}
THROTTLED = tuple(
    Ask(
        "nvmlDeviceGetViolationStatus",
        (Part("gpu_throttle_seconds_total", {"reason": reason}, NS, attrgetter("violationTime")),),
        (policy,),
    )
    for policy, reason in enumerate(_POLICIES)
)
_THROTTLED_FIELDS = tuple(Field(74 + policy, part) for policy, part in enumerate(_HELD.values()))
# Before driver 580 these ids meant power smoothing.
_HARDWARE_FIELDS = (
    Field(270, Part("gpu_throttle_seconds_total", {"reason": "hw_thermal"}, NS), since=580),
    Field(271, Part("gpu_throttle_seconds_total", {"reason": "hw_power_brake"}, NS), since=580),
)


def power(device: Device) -> Iterator[Sample]:
    """Yield power and its limits. A GPU that tells only instantaneous power has that as its power."""
    found = list(answers(device.asker, POWER, device.labels))
    has_power = any(s.name == "gpu_power_watts" for s in found)
    found += field_answers(device.asker, (_INSTANT,) if has_power else (_INSTANT, _AVERAGE), device.labels)
    yield from found
    instant = [s for s in found if s.name == "gpu_power_instant_watts" and not math.isnan(s.value)]
    if instant and not any(s.name == "gpu_power_watts" for s in found):
        yield instant[0]._replace(name="gpu_power_watts")


def heat(device: Device) -> Iterator[Sample]:
    """Yield temperatures, their limits, what is left until the limit, and the fan."""
    yield from answers(device.asker, HEAT, device.labels)
    yield from field_answers(device.asker, (_MEMORY_TEMPERATURE,), device.labels)


def clocks(device: Device) -> Iterator[Sample]:
    """Yield clocks and their limits, why they are held down now, and for how long they were."""
    yield from answers(device.asker, CLOCKS, device.labels)
    held = list(answers(device.asker, THROTTLED, device.labels))
    yield from held or field_answers(device.asker, _THROTTLED_FIELDS, device.labels)
    yield from field_answers(device.asker, (f for f in _HARDWARE_FIELDS if f.since <= device.driver), device.labels)
