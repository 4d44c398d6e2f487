"""Findings of `stream`: groups whose streams stall more than they did."""

from datetime import UTC
from typing import Any

import polars as pl

from analytics.result import Finding
from analytics.stream import STALLING
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
