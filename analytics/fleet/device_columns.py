"""Columns of a GPU's row, in the words and units of `infractl status`, from the fields of its metrics."""

import polars as pl

COLUMNS = (
    "device", "name", "host", "gpu", "gpu_uuid", "pci_bus_id", "mig_instance", "mig_profile", "workload", "state",
    "reason", "action", "util_pct", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio", "p2p_bw_gbps",
    "link_bytes_per_second", "pcie_bytes_per_second", "memory_used_bytes", "memory_total_bytes", "power_watts",
    "power_limit_watts", "temperature_celsius", "memory_temperature_celsius", "temperature_headroom_celsius",
    "sm_clock_hz", "sm_clock_max_hz", "throttle", "throttle_severity", "xid", "xid_ts", "xid_age_s", "xid_severity",
    "xid_text", "ecc_corrected", "ecc_uncorrected", "row_remap_pending", "row_remap_failed", "links_up", "links_total",
    "link_errors", "link_crc_errors", "pcie_replays", "pcie_generation", "pcie_generation_max", "pcie_width",
    "pcie_width_max", "lost", "fresh", "ts", "age_s",
)  # fmt: skip
_OF_GPU = (
    "pcie_bytes_per_second", "link_bytes_per_second", "links_up", "links_total", "link_errors", "link_crc_errors",
    "pcie_replays", "ecc_corrected", "ecc_uncorrected", "xid", "xid_ts", "xid_age_s", "xid_severity", "xid_text",
    "xid_action", "xid_exact", "xid_current", "throttle", "throttle_severity",
)  # fmt: skip
_SAME = {
    "gpu_model": "name",
    "gpu_sm_active_ratio": "sm_active_ratio",
    "gpu_tensor_active_ratio": "tensor_active_ratio",
    "gpu_dram_active_ratio": "dram_active_ratio",
    "gpu_memory_bytes used": "memory_used_bytes",
    "gpu_power_watts": "power_watts",
    "gpu_temperature_celsius memory": "memory_temperature_celsius",
    "gpu_healthy": "healthy",
    "gpu_health_status": "health_status",
    "gpu_pcie_link_generation current": "pcie_generation",
    "gpu_pcie_link_generation max": "pcie_generation_max",
    "gpu_pcie_link_width current": "pcie_width",
    "gpu_pcie_link_width max": "pcie_width_max",
}


def named(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the columns that the fields give. What is known of a whole GPU only is null for its instances."""
    whole = pl.col("mig_instance").is_null()
    rows = rows.with_columns(pl.when(whole).then(pl.col(name)) for name in _OF_GPU)
    same = [pl.col(field).alias(name) for field, name in _SAME.items()]
    return rows.with_columns(*same, *_load(), *_heat(), *_faults())


def _load() -> list[pl.Expr]:
    used, free, reserved, total = (pl.col(f"gpu_memory_bytes {s}") for s in ("used", "free", "reserved", "total"))
    busy = pl.coalesce("gpu_utilization_ratio graphics", "gpu_engine_active_ratio")
    flows = pl.col("pcie_bytes_per_second", "link_bytes_per_second")
    known = pl.any_horizontal(flows.is_not_null())
    return [
        (busy * 100).alias("util_pct"),
        pl.when(known).then(pl.sum_horizontal(flows) / 1e9).alias("p2p_bw_gbps"),
        pl.coalesce(total, used + free + reserved.fill_null(0.0)).alias("memory_total_bytes"),
    ]


def _heat() -> list[pl.Expr]:
    """Power limit, temperature, the least distance to a slowdown limit, and clocks."""
    hot = pl.coalesce(*(f"gpu_temperature_celsius {sensor}" for sensor in ("gpu", "hotspot", "edge")))
    slowdown, memory_max = (pl.col(f"gpu_temperature_limit_celsius {limit}") for limit in ("slowdown", "memory_max"))
    headroom = pl.min_horizontal(slowdown - hot, memory_max - pl.col("gpu_temperature_celsius memory"))
    limits = (f"gpu_power_limit_watts {limit}" for limit in ("enforced", "requested", "default"))
    return [
        pl.coalesce(*limits).alias("power_limit_watts"),
        hot.alias("temperature_celsius"),
        headroom.alias("temperature_headroom_celsius"),
        pl.coalesce("gpu_clock_hz sm", "gpu_clock_hz graphics").alias("sm_clock_hz"),
        pl.coalesce("gpu_clock_limit_hz sm max", "gpu_clock_limit_hz graphics max").alias("sm_clock_max_hz"),
    ]


def _faults() -> list[pl.Expr]:
    """Row remaps and lost: the source says so, or shows the other devices of its host but this one no more."""
    pending = pl.max_horizontal("gpu_row_remap_pending", "gpu_retired_pages_pending") > 0
    said = (pl.col("gpu_lost") > 0).fill_null(value=False)
    gone = ~pl.col("fresh") & pl.col("awake")
    known = pl.when(pl.col("fresh") | said | gone)
    return [
        pending.alias("row_remap_pending"),
        (pl.col("gpu_row_remap_failed") > 0).alias("row_remap_failed"),
        known.then(said | gone).alias("lost"),
    ]
