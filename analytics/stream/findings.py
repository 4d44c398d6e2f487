"""Findings of `stream`: groups whose streams stall more, or are slower, than they were."""

from datetime import UTC, timedelta
from itertools import groupby
from typing import Any

import polars as pl

from analytics import frames
from analytics.result import Finding
from analytics.stream import SLOWER, STALLING
from store.window import format_time

EXAMPLES = 5


def findings(usual: list[dict[str, Any]], streams: pl.DataFrame) -> tuple[Finding, ...]:
    """Return a finding for every group of which the trigger holds."""
    return tuple(_finding(row, streams) for row in usual if STALLING.holds(row["excess"]))


def _finding(row: dict[str, Any], streams: pl.DataFrame) -> Finding:
    same = [pl.col(name) == value for name, value in row["labels"].items()]
    inside = streams.filter(*same, pl.col("ts") >= row["since"], pl.col("stalls") > 0)
    traces = inside.sort("itl_max_s", descending=True)["trace_id"].head(EXAMPLES).to_list()
    who = ", ".join(value or "(none)" for value in row["labels"].values()) or "all requests"
    longest = max(inside["itl_max_s"], default=0.0)
    return Finding(
        trigger=STALLING.name,
        severity=STALLING.severity,
        labels=row["labels"],
        value=row["excess"],
        expected=(0.0, STALLING.bound),
        since=row["since"].replace(tzinfo=UTC),
        summary=f"{row['stalled']} of {row['n']} streams of {who} stalled since {format_time(row['since'])}, "
        f"the longest for {longest:.2g} s; at most {row['high']:.1%} did before",
        evidence={"trace_ids": traces, "before_high": row["high"]},
    )


def slower_since(timeline: pl.DataFrame, streams: pl.DataFrame, by: list[str], size: timedelta) -> tuple[Finding, ...]:
    """Return a finding per stretch of buckets in which the trigger on the gaps holds; the latest one may last."""
    found = []
    for labels, part in frames.groups(timeline, by):
        rows = part.sort("ts").with_columns((pl.col("ts").diff() > size).fill_null(value=False).cum_sum().alias("_run"))
        for (_, holds), run in groupby(rows.to_dicts(), lambda row: (row["_run"], SLOWER.holds(row["gap_ratio"]))):
            if holds:
                found.append(_slower(labels, list(run), streams, size))
    return tuple(found)


def _slower(labels: dict[str, str], run: list[dict[str, Any]], streams: pl.DataFrame, size: timedelta) -> Finding:
    since, until, lasts = run[0]["ts"], run[-1]["ts"] + size, run[-1]["bucket"] == 0
    worst = run[-1] if lasts else max(run, key=lambda row: row["gap_ratio"])
    same = [pl.col(name) == value for name, value in labels.items()]
    inside = streams.filter(*same, pl.col("ts").is_between(since, until, closed="left"), ~pl.col("cancelled"))
    n, traces = inside.height, inside.sort("itl_median_s", descending=True, nulls_last=True)["trace_id"].head(EXAMPLES)
    who = ", ".join(value or "(none)" for value in labels.values()) or "all requests"
    when = f"since {format_time(since)}" if lasts else f"from {format_time(since)} to {format_time(until)}"
    return Finding(
        trigger=SLOWER.name,
        severity=SLOWER.severity,
        labels=labels,
        value=worst["gap_ratio"],
        expected=(0.0, SLOWER.bound),
        since=since.replace(tzinfo=UTC),
        until=None if lasts else until.replace(tzinfo=UTC),
        summary=f"P99 of the gaps in {n} streams of {who} reached {worst['gap_p99_s']:.2g} s {when}, at least "
        f"{worst['gap_ratio']:.2g}x the {worst['baseline_s']:.2g} s of the calm buckets before",
        evidence={"trace_ids": traces.to_list(), "p99_s": worst["gap_p99_s"], "baseline_s": worst["baseline_s"]},
    )
