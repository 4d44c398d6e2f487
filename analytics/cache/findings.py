"""When a cache counts as polluted, and what to do about it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
from itertools import groupby
from statistics import median
from typing import Any

from analytics.cache import POLLUTED, CacheParams
from analytics.result import Finding
from store.window import format_time

Rows = Sequence[Mapping[str, Any]]
RUNNING = 3
BEFORE = 6
"""Windows that a baseline needs at least."""
KEPT = 288
FEWEST = 100
"""Accesses of a window that is judged."""
MATERIAL = 0.05
CITED = 12
"""Windows that a finding cites, the latest."""
LEVEL, RISE = 0.4, 0.25
UNUSED = "load mostly blocks that nobody uses before they are evicted"
ADMIT = "No alert by itself. Advice: an admission filter, or keep one-off prompts for a shorter time"
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


def excess(rows: Rows, params: CacheParams) -> tuple[float, str] | None:
    """Return how far the latest windows are above their bound, and which rule says so; None where too few can say."""
    return _rule(judged(rows), params)


def judged(rows: Rows) -> list[Mapping[str, Any]]:
    """Windows with enough accesses to be judged."""
    return [row for row in rows if row["cpi"] is not None and (row["accesses"] or 0) >= FEWEST]


def _rule(rows: Rows, params: CacheParams) -> tuple[float, str] | None:
    return _documents(rows) if params.trigger == "documents" else _baseline(rows)


def _baseline(rows: Rows) -> tuple[float, str] | None:
    """Above median + 5 MAD of the windows before, three running, and more than 5 points of hit ratio lost."""
    before, latest = rows[:-RUNNING][-KEPT:], rows[-RUNNING:]
    if len(before) < BEFORE or any(row.get("ceiling") is None or row["hit_ratio"] is None for row in latest):
        return None
    middle = median(row["cpi"] for row in before)
    bound = middle + 5 * median(abs(row["cpi"] - middle) for row in before)
    return min(min(r["cpi"] - bound, r["ceiling"] - r["hit_ratio"] - MATERIAL) for r in latest), "baseline"


def _documents(rows: Rows) -> tuple[float, str] | None:
    """At least 0.4 three windows running, or a rise by more than 0.25 over the window before."""
    exact = [row["cpi"] for row in rows if row["basis"] == "exact"]
    found = []
    if len(exact) >= RUNNING:
        found.append((min(exact[-RUNNING:]) - LEVEL + 1e-9, "level"))  # at the level counts
    if len(exact) >= 2:
        found.append((exact[-1] - exact[-2] - RISE, "rise"))
    return max(found, default=None)


def found(labels: Mapping[str, str], rows: Rows, params: CacheParams, bucket_s: int) -> list[Finding]:
    """Every run of windows at whose end the trigger held; the last one lasts where it reaches the latest window."""
    known = judged(rows)
    made: list[Finding] = []
    run: list[tuple[int, float, str]] = []
    for end in range(1, len(known) + 1):
        at = _rule(known[:end], params)
        if at is not None and POLLUTED.holds(at[0]):
            run.append((end, *at))
        elif run:
            made.append(_finding(labels, known, run, bucket_s, lasts=False))
            run = []
    if run:
        made.append(_finding(labels, known, run, bucket_s, lasts=True))
    return made


def _finding(
    labels: Mapping[str, str], known: Rows, run: list[tuple[int, float, str]], bucket_s: int, *, lasts: bool
) -> Finding:
    """Say what is or was wrong, since when, against what, and what to do."""
    end, value, rule = run[-1]
    first = run[0][0] - (1 if run[0][2] == "rise" else RUNNING)
    windows, last = known[first:end], known[end - 1]
    since = windows[0]["bucket"].replace(tzinfo=UTC)
    until = None if lasts else last["bucket"].replace(tzinfo=UTC) + timedelta(seconds=bucket_s)
    who = ", ".join(name or "(none)" for name in labels.values()) or "all caches"
    lost = last["ceiling"] - last["hit_ratio"] if last.get("ceiling") and last["hit_ratio"] is not None else None
    missing = f"; {lost:.1%} of the lookups would have been found had nothing been evicted" if lost is not None else ""
    when = f"is {last['cpi']:.2f} and {value:.2g} above its bound since {format_time(since)}"
    if until is not None:
        when = f"reached {max(row['cpi'] for row in windows):.2f} from {format_time(since)} to {format_time(until)}"
    return Finding(
        trigger=POLLUTED.name,
        severity=POLLUTED.severity,
        labels=labels,
        value=value,
        expected=(None, POLLUTED.bound),
        since=since,
        until=until,
        summary=f"pollution of the prefix cache of {who} {when}, mostly {last['dominant'] or 'unknown'}{missing}. "
        f"Advice: {ADVICE[rule]}",
        evidence={"rule": rule, "windows": [_cited(row) for row in windows[-CITED:]]},
    )


def _cited(row: Mapping[str, Any]) -> dict[str, Any]:
    at = format_time(row["bucket"].replace(tzinfo=UTC))
    return {"at": at} | {name: row.get(name) for name in ("cpi", "accesses", "expired", "redundant", "hit_ratio")}


def unused(rows: Rows) -> str | None:
    """Say in which windows mostly blocks were loaded that nobody used: advice, for no hit is lost by their eviction."""
    idle = [
        at
        for at, row in enumerate(rows)
        if row.get("hit_ratio") is not None and row["cpi"] >= LEVEL and row["dominant"] == "redundant"
    ]
    if len(idle) > len(rows) / 2:
        return f"{len(idle)} of {len(rows)} windows {UNUSED}, as is usual where prompts seldom repeat. {ADMIT}"
    runs = [[at for _, at in run] for _, run in groupby(enumerate(idle), lambda pair: pair[1] - pair[0])]
    longest = max(runs, key=len, default=[])
    if len(longest) < RUNNING:
        return None
    part = [rows[at] for at in longest]
    rest = [row["hit_ratio"] for at, row in enumerate(rows) if at not in idle and row.get("hit_ratio") is not None]
    usual = f" against {median(rest):.2f} in the others" if rest else ""
    since, found_ratio = format_time(part[0]["bucket"].replace(tzinfo=UTC)), median(row["hit_ratio"] for row in part)
    return (
        f"{len(idle)} of {len(rows)} windows {UNUSED}, the longest run from {since}: {len(part)} windows, index up to "
        f"{max(row['cpi'] for row in part):.2f}, hit ratio {found_ratio:.2f}{usual}. {ADMIT}"
    )
