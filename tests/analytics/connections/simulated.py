"""Simulated connections, and hours whose unit cost has a known minimum."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.connections import ANALYSIS, HANDSHAKES
from analytics.result import Result
from store.tables import SPANS
from store.window import Window
from tests.analytics.frames_of import START, times

Array = NDArray[np.float64]
COSTS: dict[str, Any] = {
    "bucket": pl.Datetime("us"), "service": pl.String, "currency": pl.String, "category": pl.String,
    "cost": pl.Decimal(38, 18), "effective": pl.Decimal(38, 18), "quantity": pl.Float64, "requests": pl.Int64,
    "lines": pl.Int64, "span_s": pl.Float64,
}  # fmt: skip


def run(rows: pl.DataFrame, window: Window, costs: pl.DataFrame | None = None, **params: Any) -> Result:
    """Answer for spans (all of one frame: the queries are made here) and costs."""
    made = ANALYSIS.make_params(params)
    queries: Any = ANALYSIS.inputs(made)
    share = rows["share_read"] if "share_read" in rows.columns else pl.Series("share_read", [1.0] * rows.height)
    inputs = {"costs": pl.DataFrame(schema=COSTS) if costs is None else costs}
    for name in ("requests", "handshakes"):
        types = {c: SPANS.schema()[c] for c in queries[name].columns}
        wanted = types | dict.fromkeys(queries[name].attributes, pl.String())
        whole = rows.with_columns(pl.lit(None, t).alias(c) for c, t in wanted.items() if c not in rows.columns)
        whole = whole.with_columns(share.alias("share_read"))
        asked = pl.col("name").is_in(HANDSHAKES) if name == "handshakes" else pl.col("kind") != "internal"
        inputs[name] = whole.filter(asked).select(*wanted, "share_read").sort("ts")
    return ANALYSIS.run(inputs, made, window)


@dataclass(frozen=True, slots=True)
class Regime:
    """Traffic of a stretch of time: connections per second, mean requests on one, seconds of request and handshake."""

    opened_per_s: float
    reuse: float
    request_s: float
    handshake_s: float


BEFORE = Regime(0.5, 14.2, 0.12, 0.2106)
"""Reuse 14.2 and 11 % of the time in handshakes: 0.2106 / (0.2106 + 14.2 x 0.12)."""
AFTER = Regime(3.4, 2.1, 0.12, 0.2235)
"""The same requests at reuse 2.1 and 47 %; with unchanged handshakes it would be 45.5 %."""


def traffic(seed: int, *regimes: tuple[float, Regime], timed: float = 1.0, port: bool = False) -> pl.DataFrame:
    """Requests on connections, each regime for so many seconds; `timed` is the share of connections whose handshake is.

    A connection has a geometric number of requests; its requests follow each other after pauses of a second.
    """
    rng = np.random.default_rng(seed)
    parts, begin, number = [], 0.0, 0
    for seconds, regime in regimes:
        count = rng.poisson(regime.opened_per_s * seconds)
        opened = np.sort(rng.uniform(begin, begin + seconds, count))
        n = rng.geometric(1.0 / regime.reuse, count)
        at = np.repeat(np.arange(count), n)
        nth = np.arange(at.size) - np.repeat(np.cumsum(n) - n, n)
        took = rng.gamma(4.0, regime.request_s / 4.0, at.size)
        pause = rng.exponential(1.0, at.size)
        before = np.cumsum(took + pause) - (took + pause)
        offset = before - np.repeat(before[np.cumsum(n) - n], n)
        handshake = rng.gamma(9.0, regime.handshake_s / 9.0, count)
        known = rng.random(count) < timed
        parts.append(
            pl.DataFrame(
                {
                    "s": opened[at] + offset,
                    "connection.id": (number + at).astype(str),
                    "nth": nth,
                    "duration_s": took,
                    "tls.handshake_s": np.where(known, handshake, np.nan)[at],
                }
            )
        )
        begin, number = begin + seconds, number + count
    rows = pl.concat(parts).filter(pl.col("s") < begin)
    name = pl.lit("a1b2c3d4-") + pl.col("connection.id") if port else pl.col("connection.id")
    return rows.select(
        times(rows["s"]).alias("ts"), name.alias("connection.id"), "duration_s",
        pl.when(pl.col("tls.handshake_s").is_not_nan()).then("tls.handshake_s").cast(pl.String).alias("tls.handshake_s"),
        pl.format("{}", pl.int_range(pl.len())).str.zfill(32).alias("trace_id"),
        service=pl.lit("edge"), kind=pl.lit("server"), name=pl.lit("POST /v1/chat/completions"),
    )  # fmt: skip


def window_of(seconds: float) -> Window:
    """Window from START for so long."""
    from datetime import UTC

    start = START.replace(tzinfo=UTC)
    return Window(start, start + timedelta(seconds=seconds))


def unit_costs(
    seed: int, best: float, growth: float, hours: int = 28 * 24, noise: float = 0.06, shape: str = "bend"
) -> tuple[Array, Array]:
    """Concurrency and cost of 1,000 requests of each hour, with the cheapest at `best`.

    Concurrency swings over the day between a quarter of the best and three times it; at three times it a request costs
    (1 + growth) times the least. Noise is autocorrelated (0.6).
    """
    rng = np.random.default_rng(seed)
    hour = np.arange(hours)
    swing = 0.5 - 0.5 * np.cos(2 * np.pi * hour / 24)
    concurrency = best * np.exp(np.log(0.25) + swing * np.log(12.0)) * np.exp(rng.normal(0, 0.12, hours))
    at = concurrency / best
    below = 0.5 + 0.5 / np.minimum(at, 1.0)
    if shape == "smooth":  # a parabola on the logarithm
        side = np.where(at > 1, growth / np.log(3.0) ** 2, 0.5)
        cost = 1.0 + side * np.log(at) ** 2
    elif shape == "saturating":  # rises quickly, then levels off
        cost = np.where(at > 1, 1 + growth * (1 - np.exp(-3 * (at - 1))) / (1 - np.exp(-6)), below)
    else:
        cost = np.where(at > 1, 1 + growth * (at - 1) / 2.0, below)
    shocks = rng.normal(0, noise * np.sqrt(1 - 0.36), hours)
    drift = np.zeros(hours)
    for i in range(1, hours):
        drift[i] = 0.6 * drift[i - 1] + shocks[i]
    return concurrency, 0.04 * cost * np.exp(drift)
