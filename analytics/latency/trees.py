"""Span trees as arrays: who is whose parent, how deep, and what had to be repaired on the way."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Index = NDArray[np.int64]
Flags = NDArray[np.bool_]
MOST_LEVELS = 200
"""Spans deeper than this are left out: no service nests so deep, a loop of spans does."""
_DOUBLINGS = 24  # pointer jumps reach 2^24 ancestors


@dataclass(frozen=True, slots=True)
class Forest:
    """Spans with an index. `parent` is a row or -1; `levels` holds the rows of each depth, roots first.

    Times are microseconds. `doubts` counts what was found: orphans, adopted, circles, open (no end), deep.
    """

    spans: pl.DataFrame
    parent: Index
    levels: tuple[Index, ...]
    root: Index
    start: Index
    end: Index
    doubts: Counter[str]


def grow(spans: pl.DataFrame) -> Forest:
    """Index spans by their parents.

    A span without an end is left out and its children go to its parent. A span whose parent is not among the rows is a
    root, unless the trace has a true root that was running all the while: then that one adopts it.
    """
    rows = spans.unique(["trace_id", "span_id"], keep="first", maintain_order=True).drop_nulls(["trace_id", "ts"])
    doubts: Counter[str] = Counter()
    parent = _parents(rows)
    named = rows["parent_span_id"].is_not_null().to_numpy()
    parent = _without_circles(parent, doubts)
    orphan = named & (parent < 0)
    open_end = rows["duration_s"].is_null().to_numpy() | (rows["duration_s"].fill_null(0.0) < 0).to_numpy()
    for _ in range(MOST_LEVELS):
        lost = (parent >= 0) & open_end[parent]
        if not lost.any():
            break
        parent[lost] = parent[parent[lost]]
    kept = np.flatnonzero(~open_end)
    place = np.full(rows.height + 1, -1, dtype=np.int64)  # the last one is for -1
    place[kept] = np.arange(kept.size)
    rows, parent, orphan = rows[kept], place[parent[kept]], orphan[kept]
    doubts += Counter(open=int(open_end.sum()), orphans=int(orphan.sum()))
    start = rows["ts"].dt.epoch("us").to_numpy().astype(np.int64)
    end = start + np.round(rows["duration_s"].to_numpy() * 1e6).astype(np.int64)
    _adopt(rows, parent, orphan, start, end, doubts)
    levels, root = _levels(parent, doubts)
    return Forest(rows, parent, levels, root, start, end, +doubts)


def _parents(rows: pl.DataFrame) -> Index:
    ids = rows.select("trace_id", pl.col("span_id").alias("parent_span_id")).with_row_index("_parent")
    asked = rows.select("trace_id", "parent_span_id")
    found = asked.join(ids, on=["trace_id", "parent_span_id"], how="left", maintain_order="left")["_parent"]
    return np.asarray(found.cast(pl.Int64).fill_null(-1).to_numpy(), dtype=np.int64).copy()


def _without_circles(parent: Index, doubts: Counter[str]) -> Index:
    """Make roots of spans that never reach one: their parents go in a circle."""
    above = parent.copy()
    for _ in range(_DOUBLINGS):
        inside = above >= 0
        if not inside.any():
            return parent
        above[inside] = above[above[inside]]
    circle = above >= 0
    doubts["circles"] = int(circle.sum())
    parent[circle] = -1
    return parent


def _adopt(rows: pl.DataFrame, parent: Index, orphan: Flags, start: Index, end: Index, doubts: Counter[str]) -> None:
    if not orphan.any():
        return
    at = pl.DataFrame({"trace_id": rows["trace_id"], "start": start, "end": end}).with_row_index("_row")
    true = at.filter(pl.Series((parent < 0) & ~orphan)).sort(pl.col("end") - pl.col("start"), descending=True)
    home = true.unique("trace_id", keep="first", maintain_order=True)
    found = at.filter(pl.Series(orphan)).join(home, on="trace_id", suffix="_home")
    found = found.filter((pl.col("start") >= pl.col("start_home")) & (pl.col("end") <= pl.col("end_home")))
    parent[found["_row"].to_numpy()] = found["_row_home"].to_numpy()
    doubts["adopted"] = found.height


def _levels(parent: Index, doubts: Counter[str]) -> tuple[tuple[Index, ...], Index]:
    """Rows by depth, and the root of every row (-1 below the deepest level)."""
    root = np.where(parent < 0, np.arange(parent.size), -1)
    order = np.argsort(parent, kind="stable")
    first = np.searchsorted(parent[order], np.arange(parent.size + 1))
    level = np.flatnonzero(parent < 0)
    levels = [level]
    while len(levels) <= MOST_LEVELS:
        sizes = first[level + 1] - first[level]
        level = order[np.repeat(first[level] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())]
        if not level.size:
            break
        root[level] = root[parent[level]]
        levels.append(level)
    doubts["deep"] = int((root < 0).sum())
    return tuple(levels), root
