"""Links of GPUs: traffic now, how many are up, and errors; of a whole GPU or link by link, whichever the source has."""

from datetime import datetime, timedelta

import polars as pl

from analytics.drivers import STALE_AFTER
from analytics.fleet.device_values import one_source
from analytics.metrics.counters import increase, rate
from analytics.metrics.series import naive
from store.window import Window

RATES = ("gpu_pcie_bytes_per_second", "gpu_nvlink_bytes_per_second")
COUNTERS = ("gpu_pcie_bytes_total", "gpu_link_bytes_total")
UP = "gpu_link_up"
ERRORS = ("gpu_nvlink_errors_total", "gpu_pcie_errors_total", "gpu_pcie_replay_total")
LINK_METRICS = (*RATES, *COUNTERS, UP, *ERRORS)


def traffic(
    levels: pl.DataFrame, samples: pl.DataFrame, series: pl.DataFrame, now: datetime, over: timedelta = STALE_AFTER
) -> pl.DataFrame:
    """Return bytes per second of every device, both ways: device, pcie_bytes_per_second, link_bytes_per_second.

    Rates that the source states come first; else counters are followed over the last `over` before `now`.
    """
    at = naive(now)
    recent = samples.filter(pl.col("name").is_in(COUNTERS), pl.col("ts") <= at, pl.col("ts") > at - over)
    counted = rate(recent).rename({"per_second": "value", "last_ts": "ts"}).drop_nulls("value")
    counted = one_source(counted.select("series_id", "ts", "value").join(series, on="series_id"))
    stated = levels.filter(pl.col("name").is_in(RATES))
    shape = ["device", "name", "link", "direction", "value"]
    flows = _both_ways(pl.concat([stated.select(shape), counted.select(shape)]))
    by_name = flows.pivot(on="name", index="device", values="value", aggregate_function="first")
    names = (*RATES, *COUNTERS)
    by_name = by_name.with_columns(pl.lit(None, pl.Float64).alias(n) for n in names if n not in by_name.columns)
    return by_name.select(
        "device",
        pl.coalesce(RATES[0], COUNTERS[0]).alias("pcie_bytes_per_second"),
        pl.coalesce(RATES[1], COUNTERS[1]).alias("link_bytes_per_second"),
    )


def _both_ways(flows: pl.DataFrame) -> pl.DataFrame:
    """Sum directions and links: tx and rx before `both`, the whole GPU before its links."""
    once = flows.group_by("device", "name", "link", "direction").agg(pl.col("value").max())
    each_way = pl.col("direction").is_in(["tx", "rx"]).fill_null(value=False)
    ways = once.group_by("device", "name", "link").agg(
        pl.when(each_way.any()).then(pl.col("value").filter(each_way).sum()).otherwise(pl.col("value").max())
    )
    return _whole_or_links(ways, ["device", "name"])


def _whole_or_links(rows: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    aggregate = pl.col("link").is_null()
    return rows.group_by(key).agg(
        pl.when(aggregate.any()).then(pl.col("value").filter(aggregate).max()).otherwise(pl.col("value").sum())
    )


def state(levels: pl.DataFrame) -> pl.DataFrame:
    """Return links_up and links_total of every device."""
    links = levels.filter(pl.col("name") == UP).group_by("device", "link").agg(pl.col("value").max())
    return links.group_by("device").agg(
        (pl.col("value") > 0).sum().cast(pl.Int64).alias("links_up"), pl.len().cast(pl.Int64).alias("links_total")
    )


def errors(samples: pl.DataFrame, series: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return what errors grew by within the window: device, link_errors, link_crc_errors, pcie_replays.

    Null where a source does not report them, or only once.
    """
    grown = increase(samples.filter(pl.col("name").is_in(ERRORS)), window).drop_nulls("increase")
    rows = grown.select("series_id", pl.col("last_ts").alias("ts"), pl.col("increase").alias("value"))
    rows = one_source(rows.join(series, on="series_id"))
    once = rows.group_by("device", "name", "kind", "link").agg(pl.col("value").max())
    kinds = _whole_or_links(once, ["device", "name", "kind"])
    nvlink = pl.col("name") == ERRORS[0]
    crc = nvlink & pl.col("kind").str.starts_with("crc").fill_null(value=False)
    return kinds.group_by("device").agg(
        _sum(nvlink).alias("link_errors"), _sum(crc).alias("link_crc_errors"),
        _sum(pl.col("name") == ERRORS[2]).alias("pcie_replays"),
    )  # fmt: skip


def _sum(where: pl.Expr) -> pl.Expr:
    value = pl.col("value").filter(where)
    return pl.when(value.len() > 0).then(value.sum())
