"""Who says how much of the prompts was found, side by side: counters, spans, events and traces of one cache."""

from typing import Any

import polars as pl

from analytics.cache.tier import Count
from analytics.metrics.counters import increase
from analytics.metrics.series import with_labels

MODEL = "traced requests on an LRU cache"
APART = 0.02
"""Difference of two hit ratios that is worth a note."""


def of_counters(samples: pl.DataFrame, from_zero: bool) -> list[dict[str, Any]]:
    """Rows of the prefix-cache counters and of the cached-token counters; gateways left out."""
    grown = with_labels(increase(samples, from_zero=from_zero), ("tier",)).drop_nulls("increase")
    grown = grown.filter(pl.col("tier").ne_missing("gateway"))
    pairs = {
        "prefix-cache counters": ("prefix_cache_queries_total", "prefix_cache_hits_total"),
        "cached-token counters": ("prompt_tokens_total", "cached_tokens_total"),
    }
    rows = []
    for source, (queries, hits) in pairs.items():
        engines = grown.filter(pl.col("name") == hits)
        both = grown.join(engines, on=["service", "instance"], how="semi", nulls_equal=True)
        looked_up, found, generated = (Count(name).of(both) for name in (queries, hits, "generation_tokens_total"))
        if looked_up and found is not None:
            computed = None if generated is None else looked_up - found + generated
            rows.append(row(source, looked_up, found, computed))
    return rows


def row(source: str, looked_up: float | None, found: float | None, computed: float | None = None) -> dict[str, Any]:
    """One row; the ratio where both are known."""
    known = looked_up is not None and found is not None and looked_up > 0
    return {
        "source": source,
        "looked_up": None if looked_up is None else round(looked_up),
        "found": None if found is None else round(found),
        "hit_ratio": min(found / looked_up, 1.0) if known and looked_up and found is not None else None,
        "computed": None if computed is None or computed < 0 else round(computed),
    }


def apart(rows: list[dict[str, Any]]) -> str | None:
    """Say that two sources disagree; None where they do not."""
    said = [r for r in rows if not r["source"].startswith(MODEL)]  # what another cache would have found is no dispute
    known = sorted((r["hit_ratio"], r["source"]) for r in said if r["hit_ratio"] is not None)
    if len(known) < 2 or known[-1][0] - known[0][0] <= APART:
        return None
    (low, under), (high, over) = known[0], known[-1]
    return f"hit ratios differ: {high:.1%} by {over}, {low:.1%} by {under}; do they see the same requests?"
