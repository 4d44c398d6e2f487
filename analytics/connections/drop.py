"""Whether clients reuse connections less than they used to."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.connections import DROPPED

Array = NDArray[np.float64]
LEAST_OPENED = 20
"""Connections opened in a bucket for a judgement: their number alone then varies by 22 %."""
LEAST_BEFORE = 6


@dataclass(frozen=True, slots=True)
class Judged:
    """Per bucket: upper 95 % limit of reuse, baseline, the one over the other; nan where not judged."""

    high: Array
    usual: Array
    kept: Array


def judge(known: Array, opened: Array) -> Judged:
    """Hold the reuse of each bucket against the calm buckets before it.

    The limit takes the larger of two errors of log reuse: that of a count of connections (1/sqrt(opened)) and the
    spread of the buckets before (1.4826 MAD). The baseline is the median of the calm ones, of all once those that fell
    are more than half: the new normal. The first bucket is no baseline: what was open already seems opened in it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        enough = (opened >= LEAST_OPENED) & (known > 0)
        log = np.where(enough, np.log(known / opened), np.nan)
    high, usual, kept = (np.full(log.size, np.nan) for _ in range(3))
    before: list[float] = []
    calm: list[float] = []
    for i, value in enumerate(log):
        if not math.isfinite(value):
            continue
        base = before if len(calm) * 2 < len(before) else calm
        spread = 1.0 / math.sqrt(opened[i])
        fell = False
        if len(base) >= LEAST_BEFORE:
            middle = float(np.median(base))
            spread = max(spread, 1.4826 * float(np.median(np.abs(np.asarray(base) - middle))))
            usual[i], kept[i] = math.exp(middle), math.exp(value + 1.96 * spread - middle)
            fell = DROPPED.holds(kept[i])
        high[i] = math.exp(value + 1.96 * spread)
        if i:
            before.append(float(value))
            calm += [] if fell else [float(value)]
    return Judged(high, usual, kept)


def runs(judged: Judged) -> list[tuple[int, int]]:
    """Stretches of buckets (first, after the last) in which the trigger holds; one that was not judged parts none."""
    found: list[tuple[int, int]] = []
    going = False
    for i, value in enumerate(judged.kept):
        if not math.isfinite(value):
            continue
        if DROPPED.holds(float(value)):
            found = [*found[:-1], (found[-1][0], i + 1)] if going else [*found, (i, i + 1)]
            going = True
        else:
            going = False
    return found
