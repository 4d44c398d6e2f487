"""What compressing a context costs: quality and first token per level, and how quality decays with the turns."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from analytics.cache.survival import decay_columns
from analytics.stats.decay import fit

FEWEST_WINDOWS = 2


def weighted(values: NDArray[np.float64], gamma: float) -> float:
    """Exponentially weighted mean of a window, the latest turn with weight 1."""
    weights = gamma ** np.arange(len(values))[::-1]
    return float((weights * values).sum() / weights.sum())


def compression(requests: pl.DataFrame, level: str, score: str, turns: int, gamma: float) -> list[dict[str, Any]]:
    """One row per level, the least compressed first: means over whole windows of `turns` turns in order of time."""
    known = requests.with_columns(
        pl.col(score).cast(pl.Float64, strict=False).alias("quality"), pl.col(level).alias("level")
    ).drop_nulls(["quality", "level"])
    if known.is_empty():
        return []
    rows = [_level(name[0], part, turns, gamma) for name, part in known.sort("ts").group_by("level")]
    rows.sort(key=lambda row: _order(row["level"]))
    base = rows[0]
    for row in rows:
        for name, cost in (("quality", "quality_cost"), ("ttft_s", "ttft_cost_s")):
            row[cost] = None if row[name] is None or base[name] is None else row[name] - base[name]
    return rows


def _order(level: str) -> tuple[int, float, str]:
    """Levels that are numbers by size, after words that mean none, before other words."""
    if level.lower() in ("none", "off", "0", "full"):
        return (0, 0.0, level)
    try:
        return (1, float(level.rstrip("%")), level)
    except ValueError:
        return (2, 0.0, level)


def _level(name: Any, part: pl.DataFrame, turns: int, gamma: float) -> dict[str, Any]:
    whole = part.height // turns
    row: dict[str, Any] = {"level": str(name), "turns": part.height, "windows": whole}
    quality = [weighted(values, gamma) for values in _windows(part["quality"], turns, whole)]
    times = [weighted(values, gamma) for values in _windows(part["ttft_s"], turns, whole) if np.isfinite(values).all()]
    row["quality"] = float(np.mean(quality)) if quality else None
    row["ttft_s"] = float(np.mean(times)) if times else None
    if len(quality) >= FEWEST_WINDOWS:
        half = stats.t.ppf(0.975, whole - 1) * np.std(quality, ddof=1) / np.sqrt(whole)
        row |= {"quality_low": row["quality"] - half, "quality_high": row["quality"] + half}
    return row


def _windows(values: pl.Series, turns: int, whole: int) -> NDArray[np.float64]:
    found = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    made: NDArray[np.float64] = found[: whole * turns].reshape(whole, turns)
    return made


def by_turn(requests: pl.DataFrame, key: str, score: str) -> list[dict[str, Any]]:
    """Row of decay: the score by the number of the turn in its conversation (from 0), conversations resampled."""
    known = requests.with_columns(
        pl.col(score).cast(pl.Float64, strict=False).alias("quality"), pl.col(key).alias("conversation")
    ).drop_nulls("conversation")
    turn = pl.col("ts").rank("ordinal").over("conversation").cast(pl.Float64) - 1
    known = known.with_columns(turn.alias("turn")).drop_nulls("quality")
    if known.is_empty():
        return []
    cluster = (known["conversation"].rank("dense") - 1).to_numpy().astype(np.intp)
    found = fit(known["turn"].to_numpy(), known["quality"].to_numpy(), cluster)
    row: dict[str, Any] = {"source": f"{score} by turn", "step": "turns", "n": known.height}
    return [row | decay_columns(found)]
