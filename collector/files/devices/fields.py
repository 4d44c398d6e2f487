"""Which field of nvidia-smi is which canonical metric: one table for XML, `-q` text and CSV.

Paths are those of the XML schema below <gpu>; those of the text, written alike ('FB Memory Usage' → fb_memory_usage);
and the names of --query-gpu. A field is looked up by all of them, and the first that has a value counts.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from collector.files.devices.quantity import is_missing, quantity


class Field(NamedTuple):
    """One value: canonical name, labels, the paths it may stand at, and how its text is read."""

    canonical: str
    labels: Mapping[str, str]
    paths: tuple[str, ...]
    read: Callable[[str], float]


class Total(NamedTuple):
    """A count that newer drivers print in parts: the paths of the total, else the parts to add up."""

    canonical: str
    labels: Mapping[str, str]
    totals: tuple[str, ...]
    parts: tuple[str, ...]


def flag(text: str) -> float:
    """Read yes or no as 1 or 0; NaN for no value. Raises ValueError for another word."""
    if is_missing(text):
        return math.nan
    words = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
    if text.strip().lower() not in words:
        raise ValueError("neither yes nor no")
    return words[text.strip().lower()]


def performance_state(text: str) -> float:
    """Read 'P8' as 8; NaN for no value."""
    plain = text.strip()
    return quantity(plain[1:] if plain[:1] in ("P", "p") else plain)


def fabric_state(text: str) -> float:
    """Read the registration with the NVSwitch fabric as its NVML number; NaN for no value or another word."""
    states = {"not supported": 0.0, "not started": 1.0, "in progress": 2.0, "completed": 3.0}
    return states.get(text.strip().lower(), math.nan)


def _in(unit: str) -> Callable[[str], float]:
    return lambda text: quantity(text, unit)


def _field(canonical: str, unit: str, *paths: str, **labels: str) -> Field:
    return Field(canonical, labels, paths, _in(unit))


def _memory(canonical: str, xml: str, csv: str, *states: str) -> tuple[Field, ...]:
    paths = [(*(f"{one}/{state}" for one in xml.split("|")), f"{csv}.{state}") for state in states]
    return tuple(_field(canonical, "MiB", *at, state=state) for at, state in zip(paths, states, strict=True))


def _utilization(engine: str, xml: str, text: str) -> Field:
    return _field(
        "gpu_utilization_ratio", "%", f"utilization/{xml}", f"utilization/{text}", f"utilization.{text}", engine=engine
    )


def _clocks(canonical: str, xml: str, csv: str, **labels: str) -> tuple[Field, ...]:
    return tuple(
        _field(canonical, "MHz", f"{xml}/{short}_clock", f"{xml}/{domain}", f"{csv}.{domain}", f"{csv}.{short}",
               domain=domain, **labels)
        for domain, short in (("graphics", "graphics"), ("sm", "sm"), ("memory", "mem"), ("video", "video"))
    )  # fmt: skip


def _limit(limit: str, *paths: str) -> Field:
    return _field("gpu_temperature_limit_celsius", "C", *(f"temperature/{path}" for path in paths), limit=limit)


def _power_limit(limit: str, csv: str, *names: str) -> Field:
    paths = (f"{group}/{name}" for name in names for group in ("power_readings", "gpu_power_readings"))
    return _field("gpu_power_limit_watts", "W", *paths, csv, limit=limit)


def _power(*names: str) -> tuple[str, ...]:
    return tuple(f"{group}/{name}" for name in names for group in ("power_readings", "gpu_power_readings"))


def _generation(kind: str, xml: str, text: str, csv: str) -> Field:
    link = "pci/pci_gpu_link_info/pcie_gen"
    return _field(
        "gpu_pcie_link_generation", "", f"{link}/{xml}", f"pci/gpu_link_info/pcie_generation/{text}",
        f"pcie.link.gen.{csv}", kind=kind,
    )  # fmt: skip


def _throttle(reason: str, xml: str, text: str, csv: str) -> Field:
    counters = "clocks_event_reasons_counters"
    return _field(
        "gpu_throttle_seconds_total", "us", f"{counters}/{counters}_{xml}", f"{counters}/{text}",
        f"{counters}.{csv}", reason=reason,
    )  # fmt: skip


FIELDS: tuple[Field, ...] = (
    _utilization("graphics", "gpu_util", "gpu"),
    _utilization("memory_copy", "memory_util", "memory"),
    _utilization("encoder", "encoder_util", "encoder"),
    _utilization("decoder", "decoder_util", "decoder"),
    _utilization("jpeg", "jpeg_util", "jpeg"),
    _utilization("ofa", "ofa_util", "ofa"),
    *_memory("gpu_memory_bytes", "fb_memory_usage|shared_fb_memory_usage", "memory",
             "used", "free", "reserved", "total"),
    *_memory("gpu_bar1_memory_bytes", "bar1_memory_usage|shared_bar1_memory", "bar1", "used", "free", "total"),
    *_clocks("gpu_clock_hz", "clocks", "clocks.current"),
    *_clocks("gpu_clock_limit_hz", "max_clocks", "clocks.max", limit="max"),
    *_clocks("gpu_clock_limit_hz", "applications_clocks", "clocks.applications", limit="application"),
    *_clocks("gpu_clock_limit_hz", "default_applications_clocks", "clocks.default_applications", limit="default"),
    _field("gpu_temperature_celsius", "C", "temperature/gpu_temp", "temperature/gpu_current_temp", "temperature.gpu",
           sensor="gpu"),
    _field("gpu_temperature_celsius", "C", "temperature/memory_temp", "temperature/memory_current_temp",
           "temperature.memory", sensor="memory"),
    _field("gpu_temperature_margin_celsius", "C", "temperature/gpu_temp_tlimit", "temperature/gpu_t_limit_temp",
           "temperature.gpu.tlimit"),
    _limit("shutdown", "gpu_temp_max_threshold", "gpu_shutdown_temp"),
    _limit("slowdown", "gpu_temp_slow_threshold", "gpu_slowdown_temp"),
    _limit("max_operating", "gpu_temp_max_gpu_threshold", "gpu_max_operating_temp"),
    _limit("memory_max", "gpu_temp_max_mem_threshold", "memory_max_operating_temp"),
    _limit("target", "gpu_target_temperature"),
    _field("gpu_power_watts", "W", *_power("power_draw", "average_power_draw"), "power.draw", "power.draw.average",
           *_power("instant_power_draw", "instantaneous_power_draw"), "power.draw.instant"),
    _field("gpu_power_instant_watts", "W", *_power("instant_power_draw", "instantaneous_power_draw"),
           "power.draw.instant"),
    _power_limit("enforced", "enforced.power.limit", "enforced_power_limit", "current_power_limit"),
    _power_limit("requested", "power.limit", "requested_power_limit", "power_limit"),
    _power_limit("default", "power.default_limit", "default_power_limit"),
    _power_limit("min", "power.min_limit", "min_power_limit"),
    _power_limit("max", "power.max_limit", "max_power_limit"),
    _field("gpu_fan_ratio", "%", "fan_speed", "fan.speed"),
    Field("gpu_performance_state", {}, ("performance_state", "pstate"), performance_state),
    _field("gpu_pcie_bytes_per_second", "KB/s", "pci/tx_util", "pci/tx_throughput", direction="tx"),
    _field("gpu_pcie_bytes_per_second", "KB/s", "pci/rx_util", "pci/rx_throughput", direction="rx"),
    _field("gpu_pcie_replay_total", "", "pci/replay_counter", "pci/replays_since_reset"),
    _generation("current", "current_link_gen", "current", "current"),
    _generation("max", "max_link_gen", "max", "max"),
    _generation("device_current", "device_current_link_gen", "device_current", "gpucurrent"),
    _generation("device_max", "max_device_link_gen", "device_max", "gpumax"),
    _generation("host_max", "max_host_link_gen", "host_max", "hostmax"),
    *(_field("gpu_pcie_link_width", "", f"pci/pci_gpu_link_info/link_widths/{kind}_link_width",
             f"pci/gpu_link_info/link_width/{kind}", f"pcie.link.width.{kind}", kind=kind)
      for kind in ("current", "max")),
    _throttle("power", "sw_power_cap", "sw_power_capping", "sw_power_cap"),
    _throttle("sync_boost", "sync_boost", "sync_boost", "sync_boost"),
    _throttle("sw_thermal", "sw_therm_slowdown", "sw_thermal_slowdown", "sw_thermal_slowdown"),
    _throttle("hw_thermal", "hw_therm_slowdown", "hw_thermal_slowdown", "hw_thermal_slowdown"),
    _throttle("hw_power_brake", "hw_power_brake", "hw_power_braking", "hw_power_brake_slowdown"),
    _field("gpu_remapped_rows_total", "", "remapped_rows/remapped_row_corr", "remapped_rows/correctable_error",
           "remapped_rows.correctable", kind="corrected"),
    _field("gpu_remapped_rows_total", "", "remapped_rows/remapped_row_unc", "remapped_rows/uncorrectable_error",
           "remapped_rows.uncorrectable", kind="uncorrected"),
    Field("gpu_row_remap_pending", {}, ("remapped_rows/remapped_row_pending", "remapped_rows/pending",
                                        "remapped_rows.pending"), flag),
    Field("gpu_row_remap_failed", {}, ("remapped_rows/remapped_row_failure",
                                       "remapped_rows/remapping_failure_occurred", "remapped_rows.failure"), flag),
    _field("gpu_retired_pages_total", "", "retired_pages/multiple_single_bit_retirement/retired_count",
           "retired_pages/single_bit_ecc", "retired_pages.single_bit_ecc.count", kind="corrected"),
    _field("gpu_retired_pages_total", "", "retired_pages/double_bit_retirement/retired_count",
           "retired_pages/double_bit_ecc", "retired_pages.double_bit.count", kind="uncorrected"),
    Field("gpu_retired_pages_pending", {}, ("retired_pages/pending_retirement", "retired_pages/pending_blacklist",
                                            "retired_pages/pending_page_blacklist", "retired_pages.pending"), flag),
    Field("gpu_fabric_state", {}, ("fabric/state", "fabric.state"), fabric_state),
)  # fmt: skip


def _ecc(canonical: str, scope: str) -> tuple[Total, ...]:
    tree, csv = f"ecc_errors/{scope}", "ecc.errors.{}." + scope
    kinds = (("corrected", "correctable", "single_bit"), ("uncorrected", "uncorrectable", "double_bit"))
    return tuple(
        Total(
            canonical,
            {"kind": kind},
            (f"{tree}/{bits}/total", f"{csv.format(kind)}.total"),
            (
                *(f"{tree}/{memory}_{newer}" for memory in ("sram", "dram") for newer in _spellings(word)),
                *(f"{csv.format(kind)}.{memory}" for memory in ("sram", "dram")),
            ),
        )
        for kind, word, bits in kinds
    )


def _spellings(word: str) -> tuple[str, ...]:
    """Names under which drivers print one count; newer ones split the uncorrectable ones of SRAM."""
    split = ("parity", "secded", "sec_ded") if word == "uncorrectable" else ()
    return (word, *(f"{word}_{part}" for part in split))


TOTALS: tuple[Total, ...] = (
    *_ecc("gpu_ecc_errors_total", "volatile"),
    *_ecc("gpu_ecc_errors_lifetime_total", "aggregate"),
)

MIG_TOTALS: tuple[Total, ...] = (
    Total(
        "gpu_ecc_errors_total",
        {"kind": "uncorrected"},
        ("ecc_error_count/volatile_count/sram_uncorrectable", "ecc_errors/volatile/sram_uncorrectable"),
        (),
    ),
)

THROTTLE_BITS = {
    "gpu_idle": 0x1, "idle": 0x1, "applications_clocks_setting": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8,
    "sync_boost": 0x10, "sw_thermal_slowdown": 0x20, "hw_thermal_slowdown": 0x40, "hw_power_brake_slowdown": 0x80,
    "display_clocks_setting": 0x100, "display_clock_setting": 0x100,
}  # fmt: skip
"""Bits of NVML's clocks event reasons (nvml.h, nvmlClocksEventReason…), by the names nvidia-smi prints."""
