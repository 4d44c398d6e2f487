"""Memory errors of GPUs as events: ECC errors by their growth, row remaps by their state.

A board's lifetime count stays above zero for ever after a repaired row, and the count since driver load restarts: what
matters is what was added. The two overlap, so the larger growth counts and they are never added.
"""

import polars as pl

from analytics.fleet.keys import with_device
from analytics.metrics.counters import steps
from analytics.metrics.series import TIME, about, points, with_labels
from analytics.result import Severity

ECC_METRICS = (
    "gpu_ecc_errors_total", "gpu_ecc_errors_lifetime_total", "gpu_row_remap_pending", "gpu_row_remap_failed",
)  # fmt: skip
_COUNTS = ECC_METRICS[:2]
_KINDS = {"uncorrected": "ecc_dbe", "corrected": "ecc_sbe"}
ACTIONS = {
    "ecc_dbe": "drain the GPU and reset it; replace it if the error comes back",
    "ecc_sbe": "watch the rate; corrected errors alone need nothing",
    "remap_pending": "drain the GPU and reset it (or reboot): a memory row waits to be replaced",
    "remap_failure": "replace the GPU: a memory row could not be remapped",
}
SEVERITIES = {
    "ecc_dbe": Severity.CRITICAL,
    "ecc_sbe": Severity.INFO,
    "remap_pending": Severity.WARNING,
    "remap_failure": Severity.CRITICAL,
}
_SCHEMA = {
    "ts": TIME, "device": pl.String, "kind": pl.String, "count": pl.Int64, "severity": pl.String, "action": pl.String,
}  # fmt: skip


def ecc_events(samples: pl.DataFrame) -> pl.DataFrame:
    """Return one row per event: ts, device, kind, count, severity, action.

    Kinds: ecc_dbe (uncorrected), ecc_sbe (corrected), remap_pending, remap_failure. A remap event is the sample
    at which the state came up, or the first one where it stood already.
    """
    events = pl.concat([_errors(samples), _remaps(samples)])
    severity = pl.col("kind").replace_strict({k: str(v) for k, v in SEVERITIES.items()}, return_dtype=pl.String)
    action = pl.col("kind").replace_strict(ACTIONS, return_dtype=pl.String)
    return events.with_columns(severity.alias("severity"), action.alias("action")).select(*_SCHEMA).sort("ts", "device")


def _errors(samples: pl.DataFrame) -> pl.DataFrame:
    rows = samples.filter(pl.col("name").is_in(_COUNTS))
    series = with_labels(with_device(about(rows)), ["kind"])
    grown = steps(rows).filter(pl.col("step") > 0).join(series, on="series_id").drop_nulls("kind")
    each = grown.group_by("ts", "device", "kind", "name").agg(pl.col("step").max())
    worst = each.group_by("ts", "device", "kind").agg(pl.col("step").max())
    known = worst.filter(pl.col("kind").is_in(list(_KINDS)))
    kind = pl.col("kind").replace_strict(_KINDS, return_dtype=pl.String)
    return known.select("ts", "device", kind, pl.col("step").cast(pl.Int64).alias("count"))


def _remaps(samples: pl.DataFrame) -> pl.DataFrame:
    names = {"gpu_row_remap_pending": "remap_pending", "gpu_row_remap_failed": "remap_failure"}
    rows = samples.filter(pl.col("name").is_in(list(names)))
    series = with_device(about(rows)).select("series_id", "device", "name")
    state = points(rows).drop_nulls("value").join(series, on="series_id")
    state = state.group_by("device", "name", "ts").agg(pl.col("value").max()).sort("device", "name", "ts")
    before = pl.col("value").shift(1).over("device", "name").fill_null(0.0)
    came = state.filter(pl.col("value") > 0, before <= 0)
    kind = pl.col("name").replace_strict(names, return_dtype=pl.String).alias("kind")
    return came.select("ts", "device", kind, pl.lit(1, pl.Int64).alias("count"))
