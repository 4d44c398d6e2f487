"""The hit ratio a cache of each size would have, where it bends, and what twice the size would save."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.cache import CacheParams
from analytics.cache.traces import Trace
from analytics.stats.stack_distance import hit_ratios, sampled_hit_ratios

POINTS, SPAN, FINE = 16, 1_000, 400
"""Sizes shown, the largest over the smallest of them, and sizes among which the bend is sought."""
NEEDED = 30
"""Requests with a prefill time that the time saved rests on, at least."""


def curve(trace: Trace, requests: pl.DataFrame, params: CacheParams) -> list[dict[str, Any]]:
    """Rows of the curve at sizes evenly spread over their logarithm, `params.blocks` among them."""
    blocks = trace.accesses["block"].to_numpy()
    unique = trace.accesses["block"].n_unique()
    exact = len(blocks) <= params.exact_to

    def at(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        return hit_ratios(trace.stack.distance, sizes) if exact else sampled_hit_ratios(blocks, sizes, params.rate)

    fine = np.unique(np.geomspace(1, max(unique, 2), FINE).round().astype(np.int64))
    bend = bend_at(fine, at(fine))
    grid = np.geomspace(max(unique / SPAN, 1), max(unique, 2), POINTS).round().astype(np.int64)
    sizes = np.unique(np.concatenate([grid, [min(params.blocks, unique)], [] if bend is None else [bend]])).astype(
        np.int64
    )
    ratios, twice = at(sizes), at(2 * sizes)
    per_request = len(blocks) / trace.requests
    tokens = trace.block_size if trace.unit == "tokens" else None
    cost = prefill_per_token(requests)
    rows = []
    for i, size in enumerate(sizes):
        gain = float(twice[i] - ratios[i])
        saved = None if tokens is None else gain * per_request * tokens
        rows.append(
            {
                "blocks": int(size),
                "hit_ratio": float(ratios[i]),
                "gain_doubling": gain,
                "tokens_saved_per_request": saved,
                "ttft_saved_s": None if saved is None or cost is None else saved * cost,
                "bend": bool(size == bend),
                "method": "Mattson" if exact else f"SHARDS-adj, {params.rate:.0%} of the blocks",
            }
        )
    return rows


def bend_at(sizes: NDArray[Any], ratios: NDArray[Any]) -> int | None:
    """Size at the point farthest above the chord from no cache to the largest (Satopaa et al. 2011, Kneedle)."""
    span = ratios[-1]
    if span <= 0 or len(sizes) < 3:
        return None
    return int(sizes[np.argmax(ratios / span - sizes / sizes[-1])])


def prefill_per_token(requests: pl.DataFrame) -> float | None:
    """Median prefill time per uncached prompt token; None below 30 requests that state both."""
    uncached = pl.col("input_tokens") - pl.col("cached_input_tokens").fill_null(0)
    known = requests.filter(uncached > 0, pl.col("prefill_s") > 0).select((pl.col("prefill_s") / uncached).alias("s"))
    middle = known["s"].median() if known.height >= NEEDED else None
    return middle if isinstance(middle, float) else None
