"""How long blocks stay: retention by age, its decay, and after what time and distance blocks are used again."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.cache.names import HISTOGRAMS
from analytics.cache.traces import Trace
from analytics.metrics.histograms import buckets
from analytics.metrics.quantiles import quantiles
from analytics.stats.decay import RESAMPLES, SEED, Decay, fit_curve
from analytics.stats.survival import Survival, survival

Rows = list[dict[str, Any]]
AGES, CELLS = 64, 100
"""Ages at which a curve is fitted, and cells of time that are resampled: blocks stored together leave together."""
SHOWN, FEWEST = 12, 30
"""Ages shown, and the least number of blocks still seen at an age that is used."""
POOR = 0.05
"""Root mean square residual from which the form does not describe the curve."""
_QS = (0.5, 0.9, 0.99)


def median_life(age_s: Sequence[float | None], evicted: Sequence[bool]) -> float | None:
    """Median time until eviction, of blocks that are still there as far as they were seen."""
    known = [(age, end) for age, end in zip(age_s, evicted, strict=True) if age is not None]
    if not known:
        return None
    ages, ends = np.array(known, dtype=np.float64).T
    return survival(ages, ends > 0).quantile(0.5)


def of_events(stored: pl.DataFrame) -> tuple[Rows, Rows, Rows]:
    """Rows of retention, decay and reuse by seconds since a block was stored, all tiers together."""
    known = stored.drop_nulls("age_s")
    start = known["ts"].dt.epoch("us").to_numpy()
    age, evicted = known["age_s"].to_numpy(), known["evicted"].to_numpy()
    return _all("KV events", "s", start, age, evicted, "lifetime")


def of_trace(trace: Trace, size: int) -> tuple[Rows, Rows, Rows]:
    """Do the same by seconds since the last use, for an LRU cache of `size` blocks; add reuse by time and distance."""
    ts = trace.accesses["ts"].dt.epoch("us").to_numpy()
    end = evicted_at(trace.stack.previous, trace.stack.following, trace.stack.distance, size)
    last = len(ts) - 1
    following = np.minimum(np.where(end < 0, trace.stack.following, end), last)
    age = (ts[following] - ts) / 1e6
    retention, decay, reuse = _all("traced requests", "s", ts, age, end >= 0, "idle_before_evict")
    again = trace.stack.following <= last
    gap = (ts[np.minimum(trace.stack.following, last)] - ts)[again] / 1e6
    distance = trace.stack.distance[trace.stack.distance > 0]
    reuse += [_spread("reuse_gap", "traced requests", "s", gap)]
    reuse += [_spread("reuse_distance", "traced requests", "blocks", distance)]
    return retention, decay, [row for row in reuse if row["n"]]


def evicted_at(
    previous: NDArray[np.int64], following: NDArray[np.int64], distance: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Find the access that evicts the block of each access from an LRU cache of `size` blocks.

    -1: it is used again before, or still there at the end.

    The cache at access j holds the blocks of the `size` latest distinct accesses, so its oldest moves up as j does.
    """
    n = len(previous)
    found = np.full(n, -1, np.int64)
    held, oldest = 0, 0
    for j, (before, far) in enumerate(zip(previous.tolist(), distance.tolist(), strict=True)):
        held += before < 0 or far > size  # a miss: one block more
        if held > size:
            while following[oldest] <= j:  # used again since: not the latest access of its block
                oldest += 1
            found[oldest] = j
            oldest += 1
            held -= 1
    return found


def of_histograms(samples: pl.DataFrame, from_zero: bool) -> Rows:
    """Rows of reuse from the engine's own histograms."""
    rows = samples.with_columns(pl.lit("").alias("all"))
    made = []
    for name, what in HISTOGRAMS.items():
        found = quantiles(buckets(rows, name, ["all"], from_zero=from_zero), ["all"], _QS)
        values = dict(zip(_QS, found.sort("q").to_dicts(), strict=False))
        if len(values) < len(_QS) or not values[0.5]["total"]:
            continue
        row = {"what": what, "source": "counters", "unit": "s", "n": round(values[0.5]["total"])}
        row |= {f"p{q * 100:.0f}": values[q]["value"] for q in _QS}
        above = values[0.99]["low"] if values[0.99]["value"] is None else None
        made.append(row | {"p99_above": above})
    return made


def _all(
    source: str, unit: str, start: NDArray[Any], age: NDArray[Any], evicted: NDArray[Any], what: str
) -> tuple[Rows, Rows, Rows]:
    if not evicted.any():
        return [], [], []
    found = survival(age, evicted)
    seen = found.age[found.at_risk >= FEWEST]
    if not len(seen):
        return [], [], []
    quantile = {f"p{q * 100:.0f}": found.quantile(q) for q in _QS}
    above = float(found.age[-1]) if quantile["p99"] is None else None
    reuse = {"what": what, "source": source, "unit": unit, "n": len(age), "p99_above": above} | quantile
    longest = float(seen[-1])
    fitted = _fitted(start, age, evicted, longest)
    return _retention(source, found, longest), [_decay(source, unit, len(age), fitted)], [reuse]


def _retention(source: str, found: Survival, longest: float) -> Rows:
    steps = np.unique(np.searchsorted(found.age, np.linspace(0, longest, SHOWN + 1)[1:], side="right") - 1)
    return [
        {
            "source": source,
            "step": float(found.age[i]),
            "at_risk": int(found.at_risk[i]),
            "retention": float(found.share[i]),
            "low": float(found.low[i]),
            "high": float(found.high[i]),
        }
        for i in steps
        if i >= 0
    ]


def _fitted(start: NDArray[Any], age: NDArray[Any], evicted: NDArray[Any], longest: float) -> Decay | None:
    """Fit the curve, and its resamples over cells of the time at which blocks came."""
    if longest <= 0:
        return None
    edges = np.linspace(0, longest, AGES + 1)[1:]
    at = np.minimum(np.searchsorted(edges, age, side="left"), AGES)
    low, span = int(start.min()), max(int(np.ptp(start)), 1)
    cell = np.minimum((start - low) * CELLS // (span + 1), CELLS - 1).astype(np.intp)
    used, cell = np.unique(cell, return_inverse=True)
    key = cell * (AGES + 1) + at
    shape = (len(used), AGES + 1)
    left = np.bincount(key, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    ends = np.bincount(key, evicted.astype(np.float64), shape[0] * shape[1]).reshape(shape)
    counts = np.random.default_rng(SEED).multinomial(len(used), np.full(len(used), 1 / len(used)), RESAMPLES)
    drawn = counts.astype(np.float64)
    whole = _life_table(left.sum(axis=0)[None, :], ends.sum(axis=0)[None, :])
    return fit_curve(edges, whole[0], _life_table(drawn @ left, drawn @ ends), len(used))


def _life_table(left: NDArray[Any], ends: NDArray[Any]) -> NDArray[Any]:
    """Share still there at the end of each age (rows: resamples); what was lost from sight counts half its interval."""
    total = left.sum(axis=1, keepdims=True)
    risk = total - np.cumsum(left, axis=1) + left - (left - ends) / 2
    made: NDArray[Any] = np.cumprod(1 - ends / np.maximum(risk, 1e-9), axis=1)[:, :-1]
    return made


def _decay(source: str, step: str, n: int, found: Decay | None) -> dict[str, Any]:
    row: dict[str, Any] = {"source": source, "step": step, "n": n}
    if found is not None and found.r0[1] > 1:  # a share cannot: blocks stay alike for a while, then leave together
        return row | {"rmse": found.rmse, "verdict": "the form does not describe it: few leave at first, then many"}
    if found is not None and found.told and found.rmse >= POOR:
        return row | decay_columns(found) | {"verdict": "fitted, but the form describes the curve poorly"}
    return row | decay_columns(found)


def decay_columns(found: Decay | None) -> dict[str, Any]:
    """Columns of a fit; without tau and a where the steps do not tell them."""
    if found is None:
        return {"verdict": "not fitted: fewer than 8 steps or 20 clusters, or no change at all"}
    names = ("", "_low", "_high")
    row: dict[str, Any] = {f"r0{end}": value for end, value in zip(names, found.r0, strict=True)}
    row["rmse"] = found.rmse
    if not found.told:
        return row | {"verdict": "tau is not told: no decay stands out, or the steps end before it does"}
    for name, values in (("a", found.a), ("tau", found.tau)):
        row |= {f"{name}{end}": value for end, value in zip(names, values, strict=True)}
    return row | {"verdict": "fitted"}


def _spread(what: str, source: str, unit: str, values: NDArray[Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"what": what, "source": source, "unit": unit, "n": len(values)}
    found = np.quantile(values, _QS) if len(values) else [None] * len(_QS)
    return row | {f"p{q * 100:.0f}": None if v is None else float(v) for q, v in zip(_QS, found, strict=True)}
