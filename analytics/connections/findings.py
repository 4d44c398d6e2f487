"""A finding: connections are reused less than they used to be."""

from datetime import UTC, timedelta
from typing import Any

import numpy as np
import polars as pl

from analytics.connections import DROPPED
from analytics.connections.drop import Judged
from analytics.connections.over_time import Buckets, Group
from analytics.result import Finding
from store.window import format_time

EXAMPLES = 5


def finding(group: Group, found: Buckets, judged: Judged, run: tuple[int, int], size: timedelta) -> Finding:
    """Say what fell since when, against what, and what else moved."""
    first, after = run
    lasting = after == len(found.rows)
    begin = found.starts[first]
    end = found.starts[after - 1] + size
    inside = slice(first, after)
    reuse = float(found.known[inside].sum() / np.nansum(found.opened[inside]))
    usual = float(judged.usual[first])
    who = f"{group.labels.get('service') or 'all'} ({group.labels['side']})"
    moved = _moved(found, first, after)
    when = f"since {format_time(begin.replace(tzinfo=UTC))}" if lasting else (
        f"from {format_time(begin.replace(tzinfo=UTC))} to {format_time(end.replace(tzinfo=UTC))}"
    )  # fmt: skip
    kept = judged.kept[inside]
    return Finding(
        trigger=DROPPED.name,
        severity=DROPPED.severity,
        labels=dict(group.labels),
        value=float(judged.kept[after - 1]) if lasting else float(np.nanmin(kept)),
        expected=(DROPPED.bound, None),
        since=begin.replace(tzinfo=UTC),
        until=None if lasting else end.replace(tzinfo=UTC),
        summary=f"{who}: a connection carries {reuse:.3g} requests instead of {usual:.3g} {when}{_words(moved)}",
        evidence={
            "reuse": reuse, "usual": usual, "upper_limit_over_usual": float(np.nanmax(kept)),
            "moved": moved, "networks": _networks(group, begin, end), "trace_ids": _examples(group, begin, end),
        },
    )  # fmt: skip


def _moved(found: Buckets, first: int, after: int) -> dict[str, list[float | None]]:
    """Median before and since of handshake share, connections opened and requests per bucket, and concurrency."""
    made: dict[str, list[float | None]] = {}
    for name in ("handshake_share", "opened", "requests", "concurrency"):
        values = [row[name] for row in found.rows]
        pair = [_median(values[:first]), _median(values[first:after])]
        made |= {name: pair} if None not in pair else {}
    return made


def _median(values: list[Any]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return float(np.median(known)) if known else None


def _words(moved: dict[str, list[float | None]]) -> str:
    before, now = moved.get("handshake_share", (None, None))
    if before is None or now is None:
        return ""
    return f"; handshakes take {100 * now:.2g}% of the time, {100 * before:.2g}% before"


def _inside(group: Group, begin: Any, end: Any) -> pl.DataFrame:
    return group.rows.filter(pl.col("ts") >= begin, pl.col("ts") < end, pl.col("opens").fill_null(value=False))


def _networks(group: Group, begin: Any, end: Any) -> dict[str, int]:
    """Networks of the clients that opened most connections; access logs keep no whole address."""
    counts = _inside(group, begin, end)["client.network"].drop_nulls().value_counts().sort(
        "count", "client.network", descending=[True, False]
    )  # fmt: skip
    return dict(counts.head(3).iter_rows())


def _examples(group: Group, begin: Any, end: Any) -> list[str]:
    found: list[str] = _inside(group, begin, end).filter("request")["trace_id"].drop_nulls().head(EXAMPLES).to_list()
    return found
