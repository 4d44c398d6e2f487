"""Episodes: cells that stand out beside each other, as one thing; and times in which nothing went well."""

from datetime import datetime, timedelta
from typing import Any

import polars as pl

from analytics import frames
from analytics.errors.cells import Cells
from analytics.errors.outcomes import Outcomes
from store.window import Window

GAP = 2
"""Buckets from one cell to the next of an episode: one bucket between them may be calm."""
FEWEST_FAILED, FEWEST_S = 10, 30.0
"""Failures in a row, and the time they span, that make an outage."""
OVERDUE, SILENCE = 50, 10
"""Requests overdue, and how many times the longest earlier pause a pause must be, that make a silence."""


def episodes(found: Cells, size: timedelta, end: datetime) -> pl.DataFrame:
    """Merge significant cells of one place and code; material ones only: five errors more than expected."""
    key = [*found.keys, "code"]
    hot = found.frame.filter(pl.col("significant"))
    hot = hot.sort(*key, "ts")
    fresh = (pl.col("ts").diff() > GAP * size).fill_null(value=True).over(key)
    merged = (
        hot.with_columns(fresh.cum_sum().over(key).alias("_run"))
        .group_by([*key, "_run"], maintain_order=True)
        .agg(
            pl.col("meaning").first(),
            pl.col("ts").min().alias("start"),
            (pl.col("ts").max() + size).alias("end"),
            pl.col("errors", "requests", "expected").sum(),
        )
        .filter(pl.col("errors") - pl.col("expected") >= 5)
        .with_columns((pl.col("end") >= end).alias("lasting"))
    )
    return merged.drop("_run").sort("start")


def outages(found: Outcomes, by: list[str], window: Window) -> list[dict[str, Any]]:
    """Return the times without a success: many failures in a row, or silence where requests were steady."""
    made = []
    for labels, part in frames.groups(found.moments, by):
        made += [labels | row for row in _failing(part.sort("ts"), window)]
        made += [labels | row for row in _silent(part.sort("ts"), found, window)]
    return made


def _failing(part: pl.DataFrame, window: Window) -> list[dict[str, Any]]:
    """Return the runs of failures between one success and the next; one pass, whatever the number of successes."""
    good = pl.col("n_ok") > 0
    until = pl.col("end").fill_null(window.end.replace(tzinfo=None))
    runs = (
        part.with_columns(good.cum_sum().alias("_run"), pl.when(good).then("ts").backward_fill().alias("end"))
        .filter(~good, pl.col("n_failed") > 0)
        .group_by("_run", maintain_order=True)
        .agg(pl.col("ts").first().alias("start"), pl.col("end").first(), pl.col("n_failed").sum().alias("failed"))
        .filter(pl.col("failed") >= FEWEST_FAILED, (until - pl.col("start")).dt.total_microseconds() >= FEWEST_S * 1e6)
    )
    return [row | {"overdue": None, "kind": "failing"} for row in runs.drop("_run").iter_rows(named=True)]


def _silent(part: pl.DataFrame, found: Outcomes, window: Window) -> list[dict[str, Any]]:
    """Say that requests stopped coming before the end of the window, which they never did so long before."""
    if found.rolled or part.height < OVERDUE:
        return []
    last, end = part["ts"][-1], window.end.replace(tzinfo=None)
    pause_s = (end - last).total_seconds()
    longest_s = part["ts"].diff().dt.total_seconds().max()
    seconds = (last - part["ts"][0]).total_seconds()
    requests = int(part["n_ok"].sum()) + int(part["n_failed"].sum())
    overdue = requests / seconds * pause_s if seconds else 0.0
    if overdue < OVERDUE or not isinstance(longest_s, int | float) or pause_s < SILENCE * max(longest_s, 1):
        return []
    return [{"start": last, "end": None, "failed": 0, "overdue": overdue, "kind": "silent"}]
