"""Windows of `p99`: what is found does not hang on where the windows begin."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from analytics.p99 import ABOVE
from analytics.p99.windows import Episode, by_window, episodes
from store.window import Window

END = datetime(2026, 11, 30, 12, tzinfo=UTC)
SIZE = timedelta(minutes=5)


def found(rows: pl.DataFrame, shift: timedelta) -> list[Episode]:
    window = Window(END - timedelta(hours=12) - shift, END - shift)
    inside = rows.filter(pl.col("ts") < window.end.replace(tzinfo=None))
    return episodes(by_window(inside, window, SIZE, 0.99), ABOVE, SIZE)


@pytest.mark.parametrize("seed", range(12))
def test_windows_that_begin_elsewhere_find_the_same_episodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = np.sort(rng.uniform(0, 12 * 3600, 60_000))
    began, lasted = rng.uniform(4 * 3600, 9 * 3600), rng.uniform(900, 2_400)
    slow = (at >= began) & (at < began + lasted)
    values = rng.lognormal(-1, 0.4, at.size) * np.where(slow, 4.0, 1.0)
    start = (END - timedelta(hours=12)).replace(tzinfo=None)
    rows = pl.DataFrame({"ts": [start + timedelta(seconds=float(s)) for s in at], "y": values})
    first = found(rows, timedelta(0))
    truth = start + timedelta(seconds=began)
    for part in (0.25, 0.5, 0.75):
        moved = found(rows, part * SIZE)
        assert len(moved) == len(first) == 1
        assert abs(moved[0].since - first[0].since) <= SIZE
        assert abs(moved[0].until - first[0].until) <= SIZE
        assert abs(moved[0].since - truth) <= SIZE
        assert moved[0].ratio == pytest.approx(first[0].ratio, rel=0.25)
