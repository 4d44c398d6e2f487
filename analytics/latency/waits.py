"""The tail of the queue by time: its P99 in each bucket beside what a request takes without waiting, and episodes."""

import bisect
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from analytics.buckets import bucket_index, bucket_start
from analytics.latency import QUEUED
from analytics.result import Finding
from analytics.stats.order_statistics import limit_ranks
from store.window import Window, format_time

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAST_REQUESTS = 30
"""Requests in a bucket whose P99 is judged; below, even its lower limit says little."""
BRIDGED = 1
"""Buckets below the bound that do not end an episode."""
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Wait:
    """Adjacent buckets in which the queue's tail was above the bound."""

    since: datetime
    until: datetime
    lasting: bool
    ratio: float
    queue_s: float
    work_s: float


def by_bucket(rows: pl.DataFrame, window: Window, size: timedelta) -> pl.DataFrame:
    """Return the frame `waits` of one group, the latest bucket last, with its number (0 is the latest).

    `work_s` is the median of the buckets' median time without queue, up to that bucket: nothing later is looked at.
    """
    known = rows.drop_nulls("queue").with_columns(
        bucket_index(window, size), (pl.col("e2e_s") - pl.col("queue")).alias("_work")
    )
    table = (
        known.group_by("bucket")
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            pl.col("queue").quantile(0.99, "linear").alias("queue_p99_s"),
            pl.col("queue").sort().alias("_queue"),
            pl.col("_work").median(),
        )
        .sort("bucket", descending=True)
    )
    ranks = limit_ranks(table["n"].to_numpy(), 0.99)[0]
    low = [q[int(r) - 1] if r >= 1 else None for q, r in zip(table["_queue"], ranks, strict=True)]
    table = table.with_columns(
        pl.Series("queue_p99_low_s", low, pl.Float64),
        pl.Series("work_s", _running(table["_work"].to_list()), pl.Float64),
    )
    judged = (pl.col("n") >= LEAST_REQUESTS) & (pl.col("work_s") > 0)
    ratio = pl.when(judged).then(pl.col("queue_p99_low_s") / pl.col("work_s")).alias("ratio")
    return table.drop("_queue", "_work").with_columns(ratio, bucket_start(window, size))


def _running(values: list[float]) -> list[float]:
    """Median of each value and all before it."""
    ordered: list[float] = []
    found = []
    for value in values:
        bisect.insort(ordered, value)
        found.append(float(np.median(ordered)))
    return found


def episodes(table: pl.DataFrame, size: timedelta) -> list[Wait]:
    """Return the stretches of buckets above the bound of the alert, in order of time."""
    kept = table.filter(pl.col("ratio") > QUEUED.bound)
    starts = (kept["bucket"].cast(pl.Int64).diff() < -1 - BRIDGED).fill_null(value=True).cum_sum()
    parts = kept.with_columns(starts.alias("_run")).partition_by("_run", maintain_order=True)
    return [_episode(part, size) for part in parts]


def _episode(part: pl.DataFrame, size: timedelta) -> Wait:
    lasting = part["bucket"][-1] == 0
    worst = part.sort("ratio").row(-1, named=True)
    return Wait(
        since=part["ts"][0],
        until=part["ts"][-1] + size,
        lasting=lasting,
        ratio=float(part["ratio"][-1]) if lasting else float(worst["ratio"]),
        queue_s=float(worst["queue_p99_s"]),
        work_s=float(worst["work_s"]),
    )


def finding(labels: "Mapping[str, str]", wait: Wait, rows: pl.DataFrame) -> Finding:
    """Make the finding of an episode; one that is over has an end."""
    inside = rows.filter(pl.col("ts") >= wait.since, pl.col("ts") < wait.until).drop_nulls("queue")
    first, last = (format_time(at.replace(microsecond=0)) for at in (wait.since, wait.until))
    who = ", ".join(value or "(none)" for value in labels.values()) or "all requests"
    when = f"since {first}" if wait.lasting else f"from {first} to {last}"
    evidence: dict[str, Any] = {
        "trace_ids": inside.sort("queue", descending=True)["trace_id"].drop_nulls().head(EXAMPLES).to_list(),
        "requests": inside.height,
    }
    return Finding(
        trigger=QUEUED.name,
        severity=QUEUED.severity,
        labels=labels,
        value=wait.ratio,
        expected=(0.0, QUEUED.bound),
        since=wait.since.replace(tzinfo=UTC),
        until=None if wait.lasting else wait.until.replace(tzinfo=UTC),
        summary=(
            f"the slowest hundredth of the requests of {who} waited {wait.queue_s:.3g} s in the queue {when}; "
            f"a usual request takes {wait.work_s:.3g} s without waiting"
        ),
        evidence=evidence,
    )
