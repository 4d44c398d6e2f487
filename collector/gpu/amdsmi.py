"""amd-smi's JSON (`amd-smi metric --json` and `amd-smi static --json`) as canonical samples."""

import json
import math
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from collector.gpu.ask import Part
from collector.gpu.rocm import unique_id
from collector.prometheus.exposition import Sample
from store.errors import SourceError

Entry = Mapping[str, Any]

_MIB = 1048576.0  # what amd-smi calls MB
_MEGABIT = 1e6 / 8
_UTILIZATION, _POWER_LIMIT = "gpu_utilization_ratio", "gpu_power_limit_watts"
_TEMPERATURE, _TEMPERATURE_LIMIT = "gpu_temperature_celsius", "gpu_temperature_limit_celsius"
_PCIE_ERRORS = "gpu_pcie_errors_total"
_ECC = "gpu_ecc_errors_total"
_THROTTLED = {
    "ppt": "power", "socket_thermal": "thermal", "vr_thermal": "vr_thermal", "hbm_thermal": "hbm_thermal",
    "prochot": "hw_thermal",
}  # fmt: skip

METRICS: dict[str, Part] = {
    "usage.gfx_activity": Part(_UTILIZATION, {"engine": "graphics"}, 0.01, most=100),
    "usage.umc_activity": Part(_UTILIZATION, {"engine": "memory_copy"}, 0.01, most=100),
    "power.socket_power": Part("gpu_power_watts", most=10_000),
    "energy.total_energy_consumption": Part("gpu_energy_joules_total"),
    "temperature.edge": Part(_TEMPERATURE, {"sensor": "edge"}, most=1000),
    "temperature.hotspot": Part(_TEMPERATURE, {"sensor": "hotspot"}, most=1000),
    "temperature.mem": Part(_TEMPERATURE, {"sensor": "memory"}, most=1000),
    "fan.usage": Part("gpu_fan_ratio", scale=0.01),
    "mem_usage.used_vram": Part("gpu_memory_bytes", {"state": "used"}, _MIB),
    "mem_usage.free_vram": Part("gpu_memory_bytes", {"state": "free"}, _MIB),
    "mem_usage.total_vram": Part("gpu_memory_bytes", {"state": "total"}, _MIB),
    "pcie.width": Part("gpu_pcie_link_width", {"kind": "current"}, most=64),
    "pcie.speed": Part("gpu_pcie_link_gt_per_second", {"kind": "current"}),
    "pcie.bandwidth": Part("gpu_pcie_bytes_per_second", {"direction": "both"}, _MEGABIT),
    "pcie.replay_count": Part("gpu_pcie_replay_total"),
    "pcie.nak_sent_count": Part(_PCIE_ERRORS, {"kind": "nack_sent"}),
    "pcie.nak_received_count": Part(_PCIE_ERRORS, {"kind": "nack_received"}),
    "pcie.l0_to_recovery_count": Part(_PCIE_ERRORS, {"kind": "recovery"}),
    "ecc.total_correctable_count": Part(_ECC, {"kind": "corrected"}),
    "ecc.total_uncorrectable_count": Part(_ECC, {"kind": "uncorrected"}),
    "ecc.total_deferred_count": Part(_ECC, {"kind": "deferred"}),
    **{
        f"throttle.{name}_violation_activity": Part("gpu_throttle_ratio", {"reason": reason}, 0.01, most=100)
        for name, reason in _THROTTLED.items()
    },
}
_CLOCKS = {"gfx": "graphics", "mem": "memory", "vclk": "video"}
STATIC: dict[str, Part] = {
    "limit.max_power": Part(_POWER_LIMIT, {"limit": "max"}, most=10_000),
    "limit.min_power": Part(_POWER_LIMIT, {"limit": "min"}, most=10_000),
    "limit.socket_power": Part(_POWER_LIMIT, {"limit": "enforced"}, most=10_000),
    "limit.slowdown_hotspot_temperature": Part(_TEMPERATURE_LIMIT, {"limit": "slowdown"}, most=1000),
    "limit.shutdown_hotspot_temperature": Part(_TEMPERATURE_LIMIT, {"limit": "shutdown"}, most=1000),
    "limit.slowdown_vram_temperature": Part(_TEMPERATURE_LIMIT, {"limit": "memory_max"}, most=1000),
    "bus.max_pcie_width": Part("gpu_pcie_link_width", {"kind": "max"}, most=64),
    "bus.max_pcie_speed": Part("gpu_pcie_link_gt_per_second", {"kind": "max"}),
}


def amd_smi_samples(metric: str, static: str = "[]") -> list[Sample]:
    """Read the output of `amd-smi metric --json`; identity and limits are in that of `amd-smi static --json`.

    What amd-smi gives as N/A for the whole GPU model is left out. Raises SourceError for what is no such output.
    """
    fixed = {entry.get("gpu"): entry for entry in _entries(static)}
    entries = _entries(metric)
    if not entries:
        raise SourceError("amd-smi: no GPU in its JSON", "run amd-smi list")
    return [sample for entry in entries for sample in _gpu(entry, fixed.get(entry.get("gpu"), {}))]


def _entries(text: str) -> list[Entry]:
    """Return the GPUs: a list, from ROCm 7 on within gpu_data."""
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=len(text))
    try:
        page, _ = json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise SourceError(f"amd-smi: line {error.lineno}: {error.msg}", "run amd-smi metric --json") from error
    listed = page.get("gpu_data", []) if isinstance(page, dict) else page
    return [entry for entry in listed if isinstance(entry, dict) and "gpu" in entry]


def _gpu(entry: Entry, fixed: Entry) -> Iterator[Sample]:
    labels = _labels(entry, fixed)
    facts = {
        "driver_version": _text(fixed, "driver.version"),
        "vbios": _text(fixed, "vbios.version") or _text(fixed, "ifwi.version"),
        "serial": _text(fixed, "asic.asic_serial"),
    }
    yield Sample("gpu_info", {**labels, **{name: text for name, text in facts.items() if text}}, 1.0, None)
    node = _text(fixed, "numa.node")
    if node and node != "-1":
        yield Sample("gpu_affinity_info", {**labels, "cpus": "", "numa_node": node}, 1.0, None)
    for table, source in ((METRICS, entry), (STATIC, fixed)):
        for path, part in table.items():
            value = _number(_find(source, path), part)
            if value is not None:
                yield Sample(part.metric, {**labels, **part.labels}, value, None)
    yield from _clocks(entry, labels)


def _labels(entry: Entry, fixed: Entry) -> dict[str, str]:
    found = {
        "gpu": str(entry["gpu"]),
        "gpu_uuid": unique_id(_text(fixed, "asic.asic_serial")),
        "gpu_model": _text(fixed, "asic.market_name"),
        "pci_bus_id": _text(fixed, "bus.bdf").lower(),
    }
    return {name: value for name, value in found.items() if value}


def _clocks(entry: Entry, labels: Mapping[str, str]) -> Iterator[Sample]:
    """Yield the mean clock of a domain; an MI300 has a graphics clock per die."""
    found = entry.get("clock")
    clocks: Entry = found if isinstance(found, dict) else {}
    for prefix, domain in _CLOCKS.items():
        parts = [clock for name, clock in clocks.items() if name.startswith(f"{prefix}_") and isinstance(clock, dict)]
        for key, metric, extra in (
            ("clk", "gpu_clock_hz", {}),
            ("max_clk", "gpu_clock_limit_hz", {"limit": "max"}),
            ("min_clk", "gpu_clock_limit_hz", {"limit": "min"}),
        ):
            values = [v for v in (_number(clock.get(key), Part(metric, scale=1e6)) for clock in parts) if v is not None]
            if values and (key == "clk" or fmean(values) > 0):
                yield Sample(metric, {**labels, "domain": domain, **extra}, fmean(values), None)


def _find(entry: Entry, path: str) -> Any:
    found: Any = entry
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _number(found: Any, part: Part) -> float | None:
    """Return a number in base units; None for N/A. It comes bare, as text with a unit, or as {value, unit}."""
    raw = found.get("value") if isinstance(found, dict) else found
    try:
        value = float(str(raw).split(maxsplit=1)[0])
    except (IndexError, ValueError):
        return None
    return math.nan if value > part.most else value * part.scale


def _text(entry: Entry, path: str) -> str:
    found = _find(entry, path)
    return "" if found is None or isinstance(found, (dict, list)) or str(found) == "N/A" else str(found).strip()
