"""The value of an entity now, from the series it consists of: levels add up, ratios average and keep their hottest."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import polars as pl

from analytics.drivers import STALE_AFTER
from analytics.metrics.series import TIME, about, live, naive, points, with_labels, without_label

FROZEN_AFTER = timedelta(minutes=10)
"""A worker whose gauge did not move for so long while its siblings' did is taken for dead: 40 scrapes of 15 s."""


def latest(samples: pl.DataFrame, now: datetime, stale_after: timedelta = STALE_AFTER) -> pl.DataFrame:
    """Return one row per series that speaks for `now`: series_id, ts, value and what it is.

    A series that ended (null) or whose last sample is older than `stale_after` is left out.
    """
    found = live(samples, now, stale_after.total_seconds())
    return found.join(about(samples), on="series_id", how="left")


def combined(latest: pl.DataFrame, by: Sequence[str], hottest: str | None = None) -> pl.DataFrame:
    """Return one row per entity and metric of the rows of `latest`; `by` names columns or labels.

    Columns: those of `by`, name, value (sum, mean or max of the series, as their `combine` says), max, series (how
    many), ts (newest) and, where `hottest` names a label, hottest: its value on the series with the highest value.
    Presets give only one of several series that mean the same a canonical name, so nothing is counted twice here.
    """
    keyed = with_labels(latest, [*by, *([hottest] if hottest else [])])
    value = pl.col("value")
    how = pl.col("combine").first()
    together = pl.when(how == "sum").then(value.sum()).when(how == "max").then(value.max()).otherwise(value.mean())
    top = [pl.col(hottest).sort_by("value", pl.col(hottest).fill_null(""), descending=[True, False])] if hottest else []
    return keyed.group_by([*by, "name"], maintain_order=True).agg(
        together.alias("value"),
        value.max().alias("max"),
        pl.len().cast(pl.Int64).alias("series"),
        pl.col("ts").max(),
        *(one.first().alias("hottest") for one in top),
    )


def frozen_workers(samples: pl.DataFrame, now: datetime, after: timedelta = FROZEN_AFTER) -> pl.DataFrame:
    """Return the series of dead workers: gauges with a label pid that stand still while others of their kind move.

    Python servers with several processes keep the last value of a dead worker for ever. Columns: series_id, name,
    service, instance, pid, value, unchanged_s (up to `now`), hint. A worker at zero adds nothing and is left alone; so
    are series with a label process, whose pids are what is measured.
    """
    at = naive(now)
    marked = samples.filter(pl.col("labels").str.contains('"pid":', literal=True))
    series = with_labels(about(marked), ["pid", "process"])
    series = series.filter(pl.col("pid").is_not_null() & pl.col("process").is_null())
    series = series.with_columns(without_label("pid").alias("kin"))
    rows = points(samples.filter(pl.col("ts") <= at).join(series.select("series_id"), on="series_id", how="semi"))
    same = pl.col("series_id") == pl.col("series_id").shift(1)
    moved = same & pl.col("value").ne_missing(pl.col("value").shift(1))
    state = (
        rows.with_columns(moved.alias("moved"))
        .group_by("series_id")
        .agg(
            pl.col("value").last(),
            pl.col("ts").filter("moved").max().alias("moved"),
            pl.col("ts").first().alias("first"),
        )
    )
    known = series.join(state, on="series_id").with_columns(
        pl.coalesce("moved", "first").alias("since"),
        pl.col("moved").max().over("name", "service", "instance", "kin").alias("others"),
    )
    still = (pl.lit(at, TIME) - pl.col("since")).dt.total_microseconds() / 1e6
    others = (pl.col("others") > pl.col("since")) & (pl.lit(at, TIME) - pl.col("others") < after)
    dead = known.with_columns(still.alias("unchanged_s")).filter(
        others, pl.col("value") != 0, pl.col("unchanged_s") >= after.total_seconds()
    )
    minutes = (pl.col("unchanged_s") / 60).round(0).cast(pl.Int64)
    hint = pl.format("stale pid {} (unchanged {} min while others move)", "pid", minutes)
    return dead.select("series_id", "name", "service", "instance", "pid", "value", "unchanged_s", hint.alias("hint"))
