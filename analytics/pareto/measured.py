"""Configurations from requests: each objective with what chance alone could have made of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from analytics import frames
from analytics.engines.measured import load_seconds, prepared
from analytics.pareto.front import Array
from analytics.tokens.cards import cards_of
from analytics.tokens.charged import TOKENS, charged

QUANTILE = re.compile(r"(ttft|tpot|e2e)_(?:p(\d+(?:\.\d+)?)|(mean))_s")
KNOWN = (
    "ttft_p50_s", "ttft_p99_s", "tpot_p99_s", "e2e_p99_s (any percentile, or mean)", "error_ratio",
    "throughput_tokens_per_second", "throughput_output_tokens_per_second", "throughput_requests_per_second",
    "tokens_per_second", "cost_per_1k", "cost_per_request",
)  # fmt: skip
MOST_UNPRICED = 0.01
"""Share of requests without a cost above which a cost per token is none."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is compared: its labels, the requests behind it, the value of each objective and draws of what it may be.

    `values` has None where it is not measured; `draws` (draws x objectives) is None where nothing says how sure it is.
    """

    labels: dict[str, str]
    name: str
    source: str
    n: int | None
    values: tuple[float | None, ...]
    draws: Array | None = None


def configurations(
    requests: pl.DataFrame, prices: pl.DataFrame | None, by: list[str], objectives: Sequence[str], draws: int
) -> list[Configuration]:
    """Measure the objectives of each group of requests; `prices` are asked for where a cost is one of them."""
    rows = prepared(requests, by)
    if prices is not None:
        rows = _costs(rows, prices)
    rng = np.random.default_rng(0)
    found = []
    for labels, group in frames.groups(rows, by):
        drawn = [_measure(group, name, draws, rng) for name in objectives]
        values = tuple(value for value, _ in drawn)
        sure = None if None in values else np.column_stack([draw for _, draw in drawn])
        name = ", ".join(value or "(none)" for value in labels.values()) or "all"
        found.append(Configuration(labels, name, "requests", group.height, values, sure))
    return found


def _costs(rows: pl.DataFrame, prices: pl.DataFrame) -> pl.DataFrame:
    """Add `usd`: what the request states it cost, else its tokens at the prices in force."""
    ready = rows.sort("ts").with_columns(
        *(pl.col(name).cast(pl.Int64) for name in TOKENS),
        pl.col("input_tokens").cast(pl.Int64).fill_null(0).alias("length"),
        pl.lit(value=False).alias("batch"),
        pl.lit(1, pl.Int64).alias("weight"),
    )
    priced = charged(ready, cards_of(prices))
    listed = pl.when(pl.col("currency") == "USD").then(pl.col("cost"))
    return priced.with_columns(pl.coalesce("cost_usd", listed).alias("usd"))


def _measure(rows: pl.DataFrame, name: str, draws: int, rng: np.random.Generator) -> tuple[float | None, Array]:
    """Return the value of one objective and its draws."""
    nothing = None, np.empty(0)
    asked = QUANTILE.fullmatch(name)
    if asked:
        values = rows[f"{asked[1]}_s"].drop_nulls().to_numpy()
        return _mean(values, draws, rng) if asked[3] else _quantile(values, float(asked[2]) / 100, draws, rng)
    if name == "error_ratio":
        share = float(rows["failed"].sum()) / rows.height
        return share, rng.binomial(rows.height, share, draws) / rows.height
    good = rows.filter(~pl.col("failed"))
    if name.startswith("throughput_"):
        amounts = _amounts(good, name)
        seconds = load_seconds(rows)
        if amounts is None or not seconds:
            return nothing
        shown = rows["share_read"].drop_nulls().max() if "share_read" in rows.columns else None
        return _rate(amounts, seconds * (shown if isinstance(shown, float) and shown else 1.0), draws, rng)
    if name == "tokens_per_second":
        speed = good.filter((pl.col("e2e_s") > 0) & (pl.col("output_tokens") > 0))
        return _quantile((speed["output_tokens"] / speed["e2e_s"]).to_numpy(), 0.5, draws, rng)
    if name in ("cost_per_1k", "cost_per_request"):
        return _cost(rows, name, draws, rng)
    return nothing


def _amounts(good: pl.DataFrame, name: str) -> Array | None:
    if name == "throughput_requests_per_second":
        return np.ones(good.height)
    output = pl.col("output_tokens")
    both = {
        "throughput_tokens_per_second": pl.col("input_tokens") + output,
        "throughput_output_tokens_per_second": output,
    }
    if name not in both:
        return None
    amounts = good.select(both[name].cast(pl.Float64).alias("n"))["n"].drop_nulls().to_numpy()
    return amounts if amounts.size else None


def _quantile(values: Array, q: float, draws: int, rng: np.random.Generator) -> tuple[float | None, Array]:
    """Return the sample quantile and what resampling makes of it.

    A quantile of a resample is the order statistic at a Beta-distributed place (Efron 1979), so none has to be drawn.
    """
    n = values.size
    rank = int(np.ceil(q * n))
    if not n or not 0 < q < 1 or n * (1 - q) < 1 - 1e-9:
        return None, np.empty(0)
    ordered = np.sort(values)
    place = rng.beta(rank, n + 1 - rank, draws)
    return float(ordered[rank - 1]), ordered[np.minimum((place * n).astype(np.int64), n - 1)]


def _mean(values: Array, draws: int, rng: np.random.Generator) -> tuple[float | None, Array]:
    if values.size < 2:
        return None, np.empty(0)
    error = float(values.std(ddof=1)) / np.sqrt(values.size)
    return float(values.mean()), rng.normal(values.mean(), error, draws)


def _rate(amounts: Array, seconds: float, draws: int, rng: np.random.Generator) -> tuple[float | None, Array]:
    """Return a sum per second; its error is that of a compound Poisson process."""
    rate = float(amounts.sum()) / seconds
    return rate, np.maximum(rng.normal(rate, float(np.sqrt((amounts**2).sum())) / seconds, draws), 0.0)


def _cost(rows: pl.DataFrame, name: str, draws: int, rng: np.random.Generator) -> tuple[float | None, Array]:
    """Return cost over tokens or requests, as a ratio of sums with the error of its linearisation."""
    tokens = pl.col("input_tokens").fill_null(0) + pl.col("output_tokens").fill_null(0)
    told = rows.filter(pl.col("usd").is_finite()).select(pl.col("usd"), tokens.alias("tokens"))
    if not told.height or told.height < (1 - MOST_UNPRICED) * rows.filter(~pl.col("failed")).height:
        return None, np.empty(0)
    usd = told["usd"].to_numpy()
    units = told["tokens"].to_numpy() / 1000 if name == "cost_per_1k" else np.ones(told.height)
    if units.sum() <= 0:
        return None, np.empty(0)
    ratio = float(usd.sum() / units.sum())
    error = float(np.sqrt(((usd - ratio * units) ** 2).sum()) / units.sum())
    return ratio, np.maximum(rng.normal(ratio, error, draws), 0.0)
