"""Clocks of two services that disagree: a child that begins before its parent proves it.

The child and all below it move together, as Jaeger's clock skew adjuster does: to the middle of the parent where it
fits, since neither way of the network is known to be longer, else to its start.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl

from analytics.latency.trees import Flags, Forest, Index

SLACK_US = 1000
"""Disagreement that stays as it is: clocks in step by NTP within a data centre differ by less than a millisecond."""


def straighten(forest: Forest) -> Forest:
    """Move spans of skewed clocks into their parents; doubts get skewed: spans whose own clock was corrected.

    Looked at are children in another service, and servers below a client's span. A child that ends after its parent is
    skewed only where it is the server of a call that did not fail and would have fitted: others outlive their parent
    because nobody waits for them.
    """
    across, called = _across(forest), _called(forest)
    start, end = forest.start.copy(), forest.end.copy()
    shift = np.zeros_like(start)
    skewed = 0
    for level in forest.levels[1:]:
        above = forest.parent[level]
        shift[level] = shift[above]
        low, high = start[above], end[above]
        begins = start[level] + shift[level]
        ends = end[level] + shift[level]
        fits = ends - begins <= high - low
        early = across[level] & (begins < low - SLACK_US)
        late = called[level] & fits & (ends > high + SLACK_US)
        moved = early | late
        target = np.where(fits, low + (high - low - (ends - begins)) // 2, low)
        shift[level] += np.where(moved, target - begins, 0)
        start[level] += shift[level]
        end[level] += shift[level]
        skewed += int(moved.sum())
    return replace(forest, start=start, end=end, doubts=forest.doubts + Counter(skewed=skewed))


def _across(forest: Forest) -> Flags:
    """Spans whose clock may differ from their parent's; a consumer may run at any later time, never earlier."""
    kind = forest.spans["kind"].fill_null("")
    service = forest.spans["service"].fill_null("")
    return np.asarray((_above(service, forest.parent) != service).to_numpy() | _call(kind, forest.parent))


def _called(forest: Forest) -> Flags:
    kind, status = forest.spans["kind"].fill_null(""), forest.spans["status"].fill_null("")
    return np.asarray(_call(kind, forest.parent) & (_above(status, forest.parent) != "error").to_numpy())


def _call(kind: pl.Series, parent: Index) -> Flags:
    return np.asarray(((_above(kind, parent) == "client") & (kind == "server")).to_numpy() & (parent >= 0))


def _above(column: pl.Series, parent: Index) -> pl.Series:
    """Return the parent's value of each row; for roots any value."""
    return column.gather(np.maximum(parent, 0)) if column.len() else column
