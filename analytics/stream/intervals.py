"""95 % limits of a group's jitter and gaps. Gaps of a stream, and streams of a minute, are alike and count as fewer.

Jitter of a group is a ratio of sums, so its limits come from the sums of each block (linearised variance of a ratio,
Cochran 1977, 6.3, on the log scale); quantiles have those of their order statistics, with ranks of as many independent
values as the design effect leaves.
"""

import numpy as np
import polars as pl

from analytics.stats.clusters import design_effect, effect_of_counts
from analytics.stats.order_statistics import limit_ranks, quantile_limits
from analytics.stats.smoothed import Array

Limits = tuple[float | None, float | None]
BLOCK_S, BLOCKS = 60.0, 20
"""Streams that began in the same minute share their load; where the group spans less than twenty, a twentieth of it."""
LEAST_BLOCKS = 10
"""Blocks below which a spread between them says too little."""
FOR_MEDIAN = 6
"""Fewest values whose order gives 95 % limits of a median."""


def with_block(streams: pl.DataFrame) -> pl.DataFrame:
    """Add column block: the stretch of time in which a stream began."""
    at = streams["ts"].dt.epoch("us").to_numpy() / 1e6
    span = float(np.ptp(at)) if at.size else 0.0
    width = min(BLOCK_S, span / BLOCKS) or 1.0
    return streams.with_columns(
        pl.Series("block", ((at - at.min()) // width).astype(np.int64) if at.size else [], pl.Int64)
    )


def of_streams(streams: pl.DataFrame, column: str, q: float, fewest: int = FOR_MEDIAN) -> Limits:
    """Limits of a quantile over streams; none of fewer than `fewest`."""
    known = streams.select(column, "block").drop_nulls()
    values = known[column].to_numpy()
    if values.size < fewest:
        return None, None
    return quantile_limits(values, q, effect=design_effect(values > np.quantile(values, q), known["block"].to_numpy()))


def of_gaps(gaps: pl.DataFrame, streams: pl.DataFrame, column: str, q: float) -> Limits:
    """Limits of a quantile over the gaps (columns stream and `column`) of a group's streams (stream, gaps, block).

    They rest on streams and blocks: where a handful of streams has all the gaps, there are none.
    """
    over = gaps.filter(pl.col(column) > pl.col(column).quantile(q, "linear")).group_by("stream").len("hits")
    counted = streams.filter(pl.col("gaps") > 0).join(over, on="stream", how="left").with_columns(
        pl.col("hits").fill_null(0)
    )  # fmt: skip
    blocks = counted.group_by("block", maintain_order=True).agg(pl.col("hits").sum(), pl.col("gaps").sum())
    if blocks.height < LEAST_BLOCKS:
        return None, None
    effect = max(effect_of_counts(*_counts(counted)), effect_of_counts(*_counts(blocks)))
    return _ranked(gaps[column], q, effect)


def _counts(rows: pl.DataFrame) -> tuple[Array, Array]:
    return rows["hits"].to_numpy().astype(np.float64), rows["gaps"].to_numpy().astype(np.float64)


def _ranked(values: pl.Series, q: float, effect: float) -> Limits:
    """Limits of a quantile as `quantile_limits` gives them, selected instead of sorted: gaps come in many millions."""
    n = values.len()
    size = max(int(n / effect), min(n, 1))
    low, high = (int(rank[0]) for rank in limit_ranks(np.array([size]), q))
    stretch = n / size if size else 1.0
    lower = _at(values, int(np.floor(low * stretch))) if low >= 1 else None
    return lower, _at(values, min(int(np.ceil(high * stretch)), n)) if 1 <= high <= size else None


def _at(values: pl.Series, rank: int) -> float | None:
    found = values.quantile((rank - 1) / max(values.len() - 1, 1), "nearest")
    return None if found is None else float(found)


def pooled(streams: pl.DataFrame) -> Limits:
    """Limits of the jitter of all gaps, each about its own stream's mean (columns gaps, gap_sum, gap_m2, block)."""
    blocks = streams.group_by("block", maintain_order=True).agg(
        pl.col("gaps").sum(),
        pl.col("gap_sum").sum(),
        pl.col("gap_m2").sum(),
        (pl.col("gaps") - 1).sum().alias("freedom"),
    )
    gaps, total, squares, freedom = (_share(blocks[name]) for name in ("gaps", "gap_sum", "gap_m2", "freedom"))
    ji = ratio(streams)
    error = _error(squares / 2 - freedom / 2 - total + gaps)
    if not ji or error is None:
        return None, None
    return float(ji * np.exp(-error)), float(ji * np.exp(error))


def ratio(streams: pl.DataFrame) -> float | None:
    """Return sd over mean of all gaps, each gap about the mean of its own stream: means of streams are no jitter."""
    gaps, total, squares = (float(streams[name].sum()) for name in ("gaps", "gap_sum", "gap_m2"))
    freedom = gaps - streams.height
    return (squares / freedom) ** 0.5 / (total / gaps) if freedom > 0 and total > 0 else None


def overall(blocks: pl.DataFrame) -> tuple[float | None, float | None, float | None]:
    """Jitter of all gaps about their common mean, and its limits, from gap_n, gap_sum_s, gap_sum_squares per block.

    Streams of unequal speed side by side add to it: what is left where only sums are kept.
    """
    n, total, squares = (float(blocks[name].sum()) for name in ("gap_n", "gap_sum_s", "gap_sum_squares"))
    if n < 2 or total <= 0:
        return None, None, None
    ratio = n * squares / total**2
    ji = (max(ratio - 1, 0.0) * n / (n - 1)) ** 0.5
    error = _error(_share(blocks["gap_sum_squares"]) + _share(blocks["gap_n"]) - 2 * _share(blocks["gap_sum_s"]))
    if error is None or ji == 0:
        return ji, None, None
    low, high = (max(ratio * float(np.exp(side * error)) - 1, 0.0) ** 0.5 for side in (-1, 1))
    return ji, low, high


def _share(sums: pl.Series) -> Array:
    values = sums.fill_null(0).to_numpy().astype(np.float64)
    whole = values.sum()
    return values / whole if whole else np.zeros_like(values)


def _error(influence: Array) -> float | None:
    """Half a 95 % interval from what each block adds (Student t, blocks - 1); None below LEAST_BLOCKS."""
    from scipy.special import stdtrit

    blocks = influence.size
    if blocks < LEAST_BLOCKS:
        return None
    return float(stdtrit(blocks - 1, 0.975) * np.sqrt(blocks / (blocks - 1) * (influence @ influence)))
