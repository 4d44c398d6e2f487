"""Numbers of GPUs now: one row per device or MIG instance, one column per metric and what its labels tell apart."""

from collections.abc import Sequence

import polars as pl

FACETS = ("engine", "state", "sensor", "domain", "limit", "kind")
"""Labels that tell the numbers of one metric apart; `field` is the name and these, in this order."""

# Fields of a whole GPU: where each MIG instance repeats them they are one number, not a sum.
WHOLE = (
    "gpu_power_watts", "gpu_power_limit_watts enforced", "gpu_power_limit_watts requested",
    "gpu_power_limit_watts default", "gpu_temperature_celsius gpu", "gpu_temperature_celsius hotspot",
    "gpu_temperature_celsius edge", "gpu_temperature_celsius memory", "gpu_temperature_limit_celsius slowdown",
    "gpu_temperature_limit_celsius memory_max", "gpu_clock_hz sm", "gpu_clock_hz graphics", "gpu_clock_limit_hz sm max",
    "gpu_clock_limit_hz graphics max", "gpu_row_remap_pending", "gpu_row_remap_failed",
    "gpu_retired_pages_pending", "gpu_lost", "gpu_healthy", "gpu_health_status", "gpu_pcie_link_generation current",
    "gpu_pcie_link_generation max", "gpu_pcie_link_width current", "gpu_pcie_link_width max",
)  # fmt: skip
# Fields of parts: a MIG instance has its own. Memory of instances adds up; their activity does not.
MEMORY = tuple(f"gpu_memory_bytes {state}" for state in ("used", "free", "reserved", "total"))
ACTIVITY = (
    "gpu_utilization_ratio graphics", "gpu_engine_active_ratio", "gpu_sm_active_ratio", "gpu_tensor_active_ratio",
    "gpu_dram_active_ratio",
)  # fmt: skip
_KEY = ["device", "mig_instance"]


def one_source(rows: pl.DataFrame, of: str = "device") -> pl.DataFrame:
    """Keep of each metric of a device (column `of`) the series of one source: the one with most, then the newest.

    A GPU seen by NVML and by an exporter has its numbers once.
    """
    key = [of, "name"]
    offers = rows.group_by([*key, "job", "instance"]).agg(pl.len().alias("_n"), pl.col("ts").max().alias("_ts"))
    ranked = offers.sort(["_n", "_ts", "job", "instance"], descending=[True, True, False, False], nulls_last=True)
    chosen = ranked.unique(key, keep="first", maintain_order=True).select(*key, "job", "instance")
    return rows.join(chosen, on=[*key, "job", "instance"], how="semi", nulls_equal=True)


def fields(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows (device, mig_instance, field, value): what one GPU shows under several pods is one number."""
    facets = pl.concat_str([pl.col(name) for name in FACETS], separator=" ", ignore_nulls=True)
    field = pl.concat_str("name", pl.lit(" "), facets).str.strip_chars_end().alias("field")
    plain = pl.col("field").replace({"gpu_utilization_ratio": ACTIVITY[0], "gpu_temperature_celsius": WHOLE[4]})
    named = rows.with_columns(field).with_columns(plain)
    return named.group_by([*_KEY, "field"]).agg(pl.col("value").max())


def wide(values: pl.DataFrame) -> pl.DataFrame:
    """Return one row per device (mig_instance null) and per MIG instance, with every field as a column.

    A device's memory is its own where it has it, else the sum of its instances'; activity of a whole GPU is not made
    up from its instances. An instance has memory and activity only.
    """
    whole = values.filter(pl.col("mig_instance").is_null())
    parts = values.filter(pl.col("mig_instance").is_not_null())
    memory = parts.filter(pl.col("field").is_in(MEMORY)).group_by("device", "field").agg(pl.col("value").sum())
    repeated = parts.filter(pl.col("field").is_in(WHOLE)).group_by("device", "field").agg(pl.col("value").max())
    own = whole.select("device", "field", "value")
    lifted = pl.concat([memory, repeated]).join(own, on=["device", "field"], how="anti")
    devices = _pivoted(pl.concat([own, lifted]), ["device"], (*WHOLE, *MEMORY, *ACTIVITY))
    instances = _pivoted(parts, _KEY, (*MEMORY, *ACTIVITY))
    return pl.concat([devices, instances], how="diagonal")


def _pivoted(values: pl.DataFrame, key: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    kept = values.filter(pl.col("field").is_in(list(names)))
    table = kept.pivot(on="field", index=list(key), values="value", aggregate_function="first")
    missing = [pl.lit(None, pl.Float64).alias(name) for name in names if name not in table.columns]
    return table.with_columns(missing)
