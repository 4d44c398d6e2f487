"""Prompt compression: prompt tokens and money saved, and latency added, against requests that are not compressed.

Groups as they are, not an experiment: where compressed requests differ in what they ask, so does the answer.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.tokens import TokensParams

Array = NDArray[np.float64]
Row = dict[str, Any]
LEAST = 20
"""Requests of a level below which nothing is compared."""
Z = 1.959964
RESAMPLES = 500
MOST = 20_000
"""Latencies of a level that are resampled: a median of so many is sharp."""


def compression_rows(rows: pl.DataFrame, params: TokensParams) -> tuple[list[Row], tuple[str, ...]]:
    """Rows of frame compression, the uncompressed level first, and notes; rows are charged ones."""
    if not params.compression:
        return [], ()
    level = pl.col(params.compression).cast(pl.String).replace("", None).fill_null(params.uncompressed).alias("_level")
    labelled = rows.with_columns(level)
    base = labelled.filter(pl.col("_level") == params.uncompressed)
    others = labelled.filter(pl.col("_level") != params.uncompressed)["_level"].unique().sort()
    if not len(others):
        return [], (f"no request says that its prompt was compressed ({params.compression})",)
    if base.height < LEAST:
        return [], (
            f"compression: {base.height} requests are not compressed ({params.uncompressed}), too few to compare",
        )
    made = [{"level": params.uncompressed, "requests": base.height, "input_mean": _mean(base)}]
    made += [_row(base, labelled.filter(pl.col("_level") == name), name) for name in others]
    return made, ("compression: groups of requests as they came; they may differ in more than compression",)


def _mean(rows: pl.DataFrame) -> float | None:
    found = rows["input_tokens"].mean()
    return float(found) if isinstance(found, int | float) else None


def _row(base: pl.DataFrame, level: pl.DataFrame, name: str) -> Row:
    row: Row = {"level": name, "requests": level.height, "input_mean": _mean(level)}
    if level.height < LEAST:
        return row
    row |= _saved_tokens(_values(base, "input_tokens"), _values(level, "input_tokens")) | _saved_money(base, level)
    for measure in ("ttft", "e2e"):
        values = _added(_values(base, f"{measure}_s"), _values(level, f"{measure}_s"))
        row |= dict(
            zip((f"added_{measure}_s", f"added_{measure}_low_s", f"added_{measure}_high_s"), values, strict=True)
        )
    return row


def _values(rows: pl.DataFrame, name: str) -> Array:
    return rows[name].drop_nulls().cast(pl.Float64).to_numpy()


def _saved_tokens(base: Array, level: Array) -> Row:
    """One less the ratio of the means, with limits by the delta method on its logarithm (Fieller's for few tokens)."""
    if min(base.size, level.size) < LEAST or base.mean() <= 0 or level.mean() <= 0:
        return {}
    log_ratio = np.log(level.mean() / base.mean())
    error = np.sqrt(sum(float(x.var(ddof=1)) / x.size / float(x.mean()) ** 2 for x in (base, level)))
    low, high = (1.0 - float(np.exp(log_ratio + side * Z * error)) for side in (1, -1))
    return {"saved_ratio": 1.0 - float(np.exp(log_ratio)), "saved_ratio_low": low, "saved_ratio_high": high}


def _saved_money(base: pl.DataFrame, level: pl.DataFrame) -> Row:
    """Difference of the mean costs, with Welch's limits; null where they are not in one currency."""
    currencies = {*base["currency"].drop_nulls().unique(), *level["currency"].drop_nulls().unique()}
    before, after = _values(base, "cost"), _values(level, "cost")
    if len(currencies) != 1 or min(before.size, after.size) < LEAST:
        return {}
    saved = float(before.mean() - after.mean())
    error = Z * float(np.sqrt(before.var(ddof=1) / before.size + after.var(ddof=1) / after.size))
    return {
        "saved_per_request": saved, "saved_per_request_low": saved - error, "saved_per_request_high": saved + error,
        "currency": currencies.pop(),
    }  # fmt: skip


def _added(base: Array, level: Array) -> Sequence[float | None]:
    """Difference of the medians with limits of the percentile bootstrap (seed fixed)."""
    if min(base.size, level.size) < LEAST:
        return None, None, None
    random = np.random.default_rng(0)
    differences = _medians(level, random) - _medians(base, random)
    low, high = np.quantile(differences, (0.025, 0.975))
    return float(np.median(level) - np.median(base)), float(low), float(high)


def _medians(values: Array, random: np.random.Generator) -> Array:
    """Medians of resamples: the rank of a resample's median in the ordered sample is beta distributed."""
    kept = np.sort(values if values.size <= MOST else random.choice(values, MOST, replace=False))
    half = (kept.size + 1) / 2
    place = random.beta(half, half, RESAMPLES) * (kept.size - 1)
    return np.asarray(np.interp(place, np.arange(kept.size), kept))
