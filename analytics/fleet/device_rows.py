"""The GPUs and MIG instances there are: who they are, whom they work for, and whether they still speak."""

from datetime import datetime

import polars as pl

from analytics.fleet.keys import IDENTITY
from analytics.metrics.series import TIME, naive

_PLACES = ["job", "instance"]
_KEY = ["device", "mig_instance"]
_NO_TEXT = pl.lit(None, pl.String)


def rows(series: pl.DataFrame, samples: pl.DataFrame, levels: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """Return one row per device and per live MIG instance: identity, workload, ts, age_s, fresh, awake.

    `fresh`: a series of the device speaks for `now`; `awake`: a source that shows the device speaks, if of others.
    """
    seen = samples.filter(pl.col("ts") <= naive(now)).group_by("series_id").agg(pl.col("ts").max())
    who = [pl.col(name).drop_nulls().last() for name in IDENTITY if not name.startswith("mig")]
    whole = series.join(seen, on="series_id").group_by("device").agg(*who, pl.col("ts").max())
    whole = whole.with_columns(_NO_TEXT.alias("mig_instance"), _NO_TEXT.alias("mig_profile"))
    profile = pl.col("mig_profile").drop_nulls().last()
    parts = levels.drop_nulls("mig_instance").group_by(_KEY).agg(profile, pl.col("ts").max())
    named = whole.drop("mig_instance", "mig_profile", "ts")  # an instance is known by the names of its GPU
    found = pl.concat([whole, parts.join(named, on="device").select(whole.columns)])
    age = ((pl.lit(naive(now), TIME) - pl.col("ts")).dt.total_microseconds() / 1e6).alias("age_s")
    found = found.with_columns(age).join(_workloads(levels), on=_KEY, how="left", nulls_equal=True)
    speaking = levels.select(_PLACES).unique()
    awake = series.select("device", *_PLACES).join(speaking, on=_PLACES, how="semi", nulls_equal=True)
    return found.with_columns(
        pl.col("device").is_in(levels["device"].unique().implode()).alias("fresh"),
        pl.col("device").is_in(awake["device"].unique().implode()).alias("awake"),
    )


def _workloads(levels: pl.DataFrame) -> pl.DataFrame:
    """Pods that a device or instance works for, as `namespace/pod`; several are joined by a comma."""
    pod = pl.concat_str(["workload_namespace", "workload_pod"], separator="/", ignore_nulls=True).alias("workload")
    named = levels.drop_nulls("workload_pod").with_columns(pod)
    of_gpu = named.drop_nulls("mig_instance").with_columns(_NO_TEXT.alias("mig_instance"))
    return pl.concat([named, of_gpu]).group_by(_KEY).agg(pl.col("workload").unique().sort().str.join(", "))
