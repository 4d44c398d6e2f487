"""Targets of the overview: does each one answer, and since when."""

from datetime import UTC, datetime

import polars as pl

from analytics import frames
from analytics.drivers import STALE_AFTER
from analytics.overview import DOWN, FRAMES
from analytics.result import Finding
from store.window import Window, format_time


def summarise(up: pl.DataFrame, window: Window) -> pl.DataFrame:
    """State of each target (job, instance) in its latest scrape, and since when it has been in it.

    A target that was not scraped lately (it left the configuration, or the scraper stopped) has no state: null.
    """
    lately = window.end.replace(tzinfo=None) - STALE_AFTER
    known = up.select("ts", "job", "instance", pl.col("value").cast(pl.Float64).fill_nan(None)).drop_nulls(
        ["ts", "value"]
    )
    rows = []
    for (job, instance), part in known.sort("ts").partition_by("job", "instance", as_dict=True).items():
        state = part["value"][-1]
        other = part.filter(pl.col("value") != state)["ts"].max()
        stretch = part if other is None else part.filter(pl.col("ts") > other)
        last = part["ts"][-1]
        known_state = state if last >= lately else None
        rows.append({"job": job, "instance": instance, "up": known_state, "last_ts": last, "since": stretch["ts"][0]})
    rows.sort(key=lambda row: (row["job"] or "", row["instance"] or ""))
    return frames.build((), FRAMES["targets"], rows)


def samples(targets: pl.DataFrame) -> pl.DataFrame:
    """State of every target as samples."""
    rows = [{"job": t["job"], "instance": t["instance"], "value": t["up"]} for t in targets.iter_rows(named=True)]
    return frames.samples(("job", "instance"), rows)


def findings(targets: pl.DataFrame) -> list[Finding]:
    """One finding per target that does not answer."""
    return [
        Finding(
            trigger=DOWN.name,
            severity=DOWN.severity,
            labels={"job": row["job"] or "", "instance": row["instance"] or ""},
            value=row["up"],
            expected=(1.0, 1.0),
            since=row["since"].replace(tzinfo=UTC),
            summary=f"Target {row['instance']} of job {row['job']} has not answered since {_seconds(row['since'])}",
        )
        for row in targets.iter_rows(named=True)
        if DOWN.holds(row["up"])
    ]


def _seconds(at: datetime) -> str:
    return format_time(at.replace(microsecond=0))
