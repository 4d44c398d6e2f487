"""Streams of an hour with known gaps: lognormal, with streams of unequal speed and minutes of unequal load."""

from datetime import timedelta

import numpy as np
import polars as pl

from tests.analytics.stream.test_stream import START, arrivals

USUAL_S = 0.03


def hour(
    seed: int, n: int = 500, minutes: float = 0.1, own: float = 0.3, slow: tuple[float, float, float] = (0, 0, 1)
) -> pl.DataFrame:
    """Arrivals of n streams of 5 to 80 gaps; from second slow[0] to slow[1] all gaps are slow[2] times as long."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.uniform(0, 3600, n))
    load = np.exp(rng.normal(0, minutes, 60))
    offsets = []
    for second in at:
        size = int(rng.integers(5, 80))
        speed = USUAL_S * np.exp(rng.normal(0, own)) * load[int(second // 60)]
        speed *= slow[2] if slow[0] <= second < slow[1] else 1.0
        gaps = (1e6 * speed * np.exp(rng.normal(0, 0.5, size))).astype(np.int64) + 1
        offsets.append(np.cumsum([100_000, *gaps]).tolist())
    times = pl.Series("ts", [START + timedelta(seconds=float(second)) for second in at]).cast(pl.Datetime("us"))
    return arrivals(offsets).with_columns(times)
