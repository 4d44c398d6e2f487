"""When a cache counts as polluted, and what to do about it."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from statistics import median
from typing import Any

from analytics.cache import POLLUTED, CacheParams
from analytics.result import Finding
from store.window import format_time

RUNNING = 3
BEFORE = 6
"""Windows that a baseline needs at least."""
KEPT = 288
FEWEST = 100
"""Accesses of a window that is judged."""
MATERIAL = 0.05
LEVEL, RISE = 0.4, 0.25
ADVICE = {
    "baseline": "blocks are evicted before they are needed again: a larger cache, or routing by prefix; see `curve`",
    "level": "two-way eviction: by age and by similarity",
    "rise": "compress the summary of the context again",
}


def dominant(row: Mapping[str, Any]) -> str | None:
    """Name the largest part of the pollution of a window; None where there is none or parts are not known."""
    expired, redundant, conflicts = (row.get(name) or 0 for name in ("expired", "redundant", "conflicts"))
    parts = {"expired": expired - conflicts, "redundant": redundant, "cross_session": conflicts}
    largest = max(parts, key=lambda name: parts[name])
    return largest if parts[largest] > 0 else None


def excess(rows: Sequence[Mapping[str, Any]], params: CacheParams) -> tuple[float, str] | None:
    """Return how far the latest windows are above their bound, and which rule says so; None where too few can say."""
    judged = [row for row in rows if row["cpi"] is not None and (row["accesses"] or 0) >= FEWEST]
    return _documents(judged) if params.trigger == "documents" else _baseline(judged)


def _baseline(rows: Sequence[Mapping[str, Any]]) -> tuple[float, str] | None:
    """Above median + 5 MAD of the windows before, three running, and more than 5 points of hit ratio lost."""
    before, latest = rows[:-RUNNING][-KEPT:], rows[-RUNNING:]
    if len(before) < BEFORE or any(row.get("ceiling") is None or row["hit_ratio"] is None for row in latest):
        return None
    middle = median(row["cpi"] for row in before)
    bound = middle + 5 * median(abs(row["cpi"] - middle) for row in before)
    return min(min(r["cpi"] - bound, r["ceiling"] - r["hit_ratio"] - MATERIAL) for r in latest), "baseline"


def _documents(rows: Sequence[Mapping[str, Any]]) -> tuple[float, str] | None:
    """At least 0.4 three windows running, or a rise by more than 0.25 over the window before."""
    exact = [row["cpi"] for row in rows if row["basis"] == "exact"]
    found = []
    if len(exact) >= RUNNING:
        found.append((min(exact[-RUNNING:]) - LEVEL + 1e-9, "level"))  # at the level counts
    if len(exact) >= 2:
        found.append((exact[-1] - exact[-2] - RISE, "rise"))
    return max(found, default=None)


def finding(labels: Mapping[str, str], rows: Sequence[Mapping[str, Any]], value: float, rule: str) -> Finding:
    """Say what is wrong, since when, against what, and what to do."""
    judged = [row for row in rows if row["cpi"] is not None and (row["accesses"] or 0) >= FEWEST]
    latest = judged[-RUNNING:] if rule != "rise" else judged[-1:]
    since, last = latest[0]["bucket"].replace(tzinfo=UTC), latest[-1]
    who = ", ".join(name or "(none)" for name in labels.values()) or "all caches"
    lost = last["ceiling"] - last["hit_ratio"] if last.get("ceiling") and last["hit_ratio"] is not None else None
    missing = f"; {lost:.1%} of the lookups would have been found had nothing been evicted" if lost is not None else ""
    return Finding(
        trigger=POLLUTED.name,
        severity=POLLUTED.severity,
        labels=labels,
        value=value,
        expected=(None, POLLUTED.bound),
        since=since,
        summary=f"pollution of the prefix cache of {who} is {last['cpi']:.2f} and {value:.2g} above its bound since "
        f"{format_time(since)}, mostly {last['dominant'] or 'unknown'}{missing}. Advice: {ADVICE[rule]}",
        evidence={"rule": rule, "windows": [{"cpi": row["cpi"], "accesses": row["accesses"]} for row in latest]},
    )
