"""GPUs: one row per device and per MIG instance under it, with load, links, memory, heat, errors and state.

What a source does not report is null, never zero. A GPU that several sources or several pods show is one GPU.
"""

from datetime import datetime, timedelta

import polars as pl

from analytics.drivers import STALE_AFTER
from analytics.fleet import device_links, device_rows, device_throttle
from analytics.fleet.device_columns import COLUMNS, named
from analytics.fleet.device_state import judged
from analytics.fleet.device_values import FACETS, fields, one_source, wide
from analytics.fleet.ecc import ECC_METRICS
from analytics.fleet.keys import with_device
from analytics.fleet.xid import XID_AGE, XID_METRICS, events_of, weightiest
from analytics.metrics.counters import increase
from analytics.metrics.series import about, live, with_labels
from store.window import Window

DEVICE_METRICS = (
    "gpu_info", "gpu_lost", "gpu_healthy", "gpu_health_status", "gpu_utilization_ratio", "gpu_engine_active_ratio",
    "gpu_sm_active_ratio", "gpu_tensor_active_ratio", "gpu_dram_active_ratio", "gpu_memory_bytes", "gpu_clock_hz",
    "gpu_clock_limit_hz", "gpu_temperature_celsius", "gpu_temperature_limit_celsius", "gpu_power_watts",
    "gpu_power_limit_watts", device_throttle.MASK, device_throttle.SHARE, "gpu_retired_pages_pending",
    "gpu_pcie_link_generation", "gpu_pcie_link_width", *device_links.LINK_METRICS, *XID_METRICS, *ECC_METRICS,
)  # fmt: skip
"""Canonical names that `devices` reads: ask for them in one MetricQuery."""
_LABELS = (*FACETS, "workload_namespace", "workload_pod", "link", "direction", "reason")


def devices(
    samples: pl.DataFrame,
    window: Window,
    now: datetime,
    log: pl.DataFrame | None = None,
    xid_age: timedelta = XID_AGE,
    stale_after: timedelta = STALE_AFTER,
) -> pl.DataFrame:
    """Return one row per device of the samples (rows of MetricQuery(DEVICE_METRICS)) and per MIG instance.

    Columns: `device_columns.COLUMNS`. Levels and rates are those at `now`; growth (ECC and link errors, replays) is
    over `window`, which the samples were read for, null where a source was seen but once. `log` are rows of the table
    `events`. xid is that of `xid.weightiest`, 0 where codes are reported and none came, null where they are not
    reported; an event older than `xid_age` is shown but does no longer count. state is ok, warning, critical, or
    unknown without a fresh sample; reason says why and action what to do.
    """
    series = with_labels(with_device(about(samples)), _LABELS)
    levels = one_source(series.join(live(samples, now, stale_after.total_seconds()), on="series_id"))
    found = device_rows.rows(series, samples, levels, now)
    found = found.join(wide(fields(levels)), on=["device", "mig_instance"], how="left", nulls_equal=True)
    for part in (
        device_links.traffic(levels, samples, series, now),
        device_links.state(levels),
        device_throttle.throttles(levels),
        device_links.errors(samples, series, window),
        _ecc(samples, series, window),
        _xids(weightiest(events_of(samples, series, log), now, xid_age, window.start), series),
    ):
        found = found.join(part, on="device", how="left")
    order = ["host", "gpu", "device", "mig_instance"]
    return judged(named(found)).select(*COLUMNS).sort(order, nulls_last=False)


def _ecc(samples: pl.DataFrame, series: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Growth of ECC errors; of the counts since driver load and since the board was made, the larger."""
    grown = increase(samples.filter(pl.col("name").is_in(ECC_METRICS[:2])), window).drop_nulls("increase")
    errors = grown.select("series_id", "increase").join(series, on="series_id")
    kinds = errors.group_by("device", "kind").agg(pl.col("increase").max())
    value = {name: pl.col("increase").filter(pl.col("kind") == name).first() for name in ("corrected", "uncorrected")}
    return kinds.group_by("device").agg(expr.alias(f"ecc_{name}") for name, expr in value.items())


def _xids(worst: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    """Rows of `worst`, and code 0 for the other devices whose codes are reported."""
    told = series.filter(pl.col("name").is_in(XID_METRICS)).select("device")
    known = pl.concat([told, worst.select("device")]).unique()
    return known.join(worst, on="device", how="left").with_columns(pl.col("xid").fill_null(0))
