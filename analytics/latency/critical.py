"""Critical path: which span the time of a trace was spent in, each moment given to exactly one.

At any moment within a span, the path runs through the child that is running then and ends last, else through the span
itself (its self time): work that delayed the end, as in Jaeger's critical path and CRISP (Zhang et al., USENIX ATC
2022), but a child that overlaps with a later one keeps the time it had alone. Parts of a trace add up to its length.
"""

from dataclasses import dataclass

import numpy as np

from analytics.latency.skew import SLACK_US
from analytics.latency.trees import Forest, Index

OUTLIVES_RATIO = 0.01
"""A child that ends later than its parent by this share of it, and a millisecond, was not waited for."""


@dataclass(frozen=True, slots=True)
class Path:
    """Microseconds on the critical path: those of each span itself, and how many spans outlived their parent."""

    self_us: Index
    outlived: int


def critical_path(forest: Forest) -> Path:
    """Divide the time of every trace among its spans. Several roots share their trace as children of one span."""
    size = forest.start.size
    low, high = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    own = np.zeros(size, dtype=np.int64)
    outlived = 0
    for depth, level in enumerate(forest.levels):
        if depth == 0:
            _roots(forest, level, low, high)
        else:
            above = forest.parent[level]
            slack = np.maximum(SLACK_US, OUTLIVES_RATIO * (forest.end[above] - forest.start[above]))
            waited = forest.end[level] <= forest.end[above] + slack
            outlived += int((~waited).sum())
            inside, above = level[waited], above[waited]
            _divide(forest, inside, above, low[above], high[above], low, high)
            np.subtract.at(own, above, high[inside] - low[inside])
        own[level] += high[level] - low[level]
    return Path(own, outlived)


def _roots(forest: Forest, level: Index, low: Index, high: Index) -> None:
    trace = forest.spans["trace_id"].gather(level).rank("dense").to_numpy().astype(np.int64) - 1
    if not level.size:
        return
    first = np.full(int(trace.max()) + 1, np.iinfo(np.int64).max)
    last = np.full(first.size, np.iinfo(np.int64).min)
    np.minimum.at(first, trace, forest.start[level])
    np.maximum.at(last, trace, forest.end[level])
    _divide(forest, level, trace, first[trace], last[trace], low, high)


def _divide(forest: Forest, rows: Index, above: Index, floor: Index, roof: Index, low: Index, high: Index) -> None:
    """Give every child its stretch of [floor, roof): from its start to where one that ends later takes over.

    Ordered by end, the latest first, a child has the moments in which none before it was running: those before the
    least of their starts.
    """
    start, end = np.maximum(forest.start[rows], floor), np.minimum(forest.end[rows], roof)
    order = np.lexsort((forest.start[rows], -forest.end[rows], above))
    order = order[end[order] > start[order]]
    if not order.size:
        return
    group = np.cumsum(np.diff(above[order], prepend=above[order[0]]) != 0)
    since = start[order] - floor[order]
    step = int((roof - floor)[order].max()) + 1
    least = np.minimum.accumulate(since - group * step) + group * step  # of this one and those before it
    taken = np.concatenate([[0], least[:-1]])
    fresh = np.diff(group, prepend=-1) != 0
    taken = np.where(fresh, (roof - floor)[order], taken) + floor[order]
    low[rows[order]] = start[order]
    high[rows[order]] = np.maximum(np.minimum(end[order], taken), start[order])
