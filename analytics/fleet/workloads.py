"""GPUs by workload: who holds how many of them, and how busy they are. Shares add up to the GPUs there are."""

import polars as pl

SLICES = 7
"""Compute slices of a GPU that NVIDIA's MIG profiles count in: 3g.20gb holds 3 of 7."""


def workloads(devices: pl.DataFrame) -> pl.DataFrame:
    """Return one row per workload of the rows of `devices.devices`, and one with workload null: not allocated.

    Columns: workload, gpus (may be a fraction: a GPU that several pods share is split evenly, a MIG instance is its
    slices), util_pct (mean of what it holds, weighted by share), memory_used_bytes and power_watts (its share), devices
    (list). Power of a MIG GPU is not split among instances: it stays with what is not allocated, null where unknown.
    """
    parts = pl.concat([_instances(devices), _wholes(devices), _rests(devices)])
    util = pl.col("util_pct") * pl.col("gpus")
    known = pl.col("gpus").filter(pl.col("util_pct").is_not_null()).sum()
    return parts.filter(pl.col("gpus") > 0).group_by("workload").agg(
        pl.col("gpus").sum(),
        pl.when(known > 0).then(util.sum() / known).alias("util_pct"),
        *(
            pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name)
            for name in ("memory_used_bytes", "power_watts")
        ),
        pl.col("device").unique().sort().alias("devices"),
    ).sort("workload", nulls_last=True)  # fmt: skip


_SHAPE = ("device", "workload", "gpus", "util_pct", "memory_used_bytes", "power_watts")


def _instances(devices: pl.DataFrame) -> pl.DataFrame:
    slices = pl.col("mig_profile").str.extract(r"^(\d+)g").cast(pl.Float64) / SLICES
    held = devices.drop_nulls("mig_instance").with_columns(slices.fill_null(0.0).alias("gpus"))
    return _split(held.with_columns(pl.lit(None, pl.Float64).alias("power_watts")))


def _wholes(devices: pl.DataFrame) -> pl.DataFrame:
    parted = devices.drop_nulls("mig_instance").select("device").unique()
    whole = devices.filter(pl.col("mig_instance").is_null()).join(parted, on="device", how="anti")
    return _split(whole.with_columns(pl.lit(1.0).alias("gpus")))


def _rests(devices: pl.DataFrame) -> pl.DataFrame:
    """Return what MIG instances leave of their GPU."""
    used = _instances(devices).group_by("device").agg(pl.col("gpus").sum().alias("used"))
    whole = devices.filter(pl.col("mig_instance").is_null()).join(used, on="device")
    rest = pl.max_horizontal(1.0 - pl.col("used"), 0.0).alias("gpus")
    empty = [pl.lit(None, pl.String).alias("workload"), pl.lit(None, pl.Float64).alias("util_pct")]
    return whole.with_columns(rest, *empty, pl.lit(None, pl.Float64).alias("memory_used_bytes")).select(_SHAPE)


def _split(held: pl.DataFrame) -> pl.DataFrame:
    named = held.with_columns(pl.col("workload").str.split(", "))
    count = pl.max_horizontal(pl.col("workload").list.len().fill_null(1), 1)
    shared = [(pl.col(name) / count).alias(name) for name in ("gpus", "memory_used_bytes", "power_watts")]
    return named.with_columns(shared).explode("workload").select(_SHAPE)
