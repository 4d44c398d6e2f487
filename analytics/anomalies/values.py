"""Values with what is usual around them, for the few series of the frame of anomalies: lines and bands to draw."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.anomalies.series import Grid, at
from analytics.detect.baseline import DAY_S, LEAST_DAYS, LEAST_SPREAD, baseline
from analytics.detect.episodes import COARSE_S, Episode

Floats = NDArray[np.float64]

SERIES = 8
POINTS = 400
"""Most points of a series; where there are more, of each stretch the one that is farthest from what is usual."""
WIDE = 3.0
"""Usual spreads from the expected value, which is what is called usual."""
FEW = 20
"""Points before, with fewer of which nothing is called usual."""
AFTER_S, BEFORE_S = 6 * 3600, 36 * 3600
LEAST_BEFORE, LEAST_AFTER = 200, 50
"""Points (or so many seconds, the more) that are drawn around the episodes of a series."""


class Usual:
    """Expected value and band of single series, made once each."""

    def __init__(self, found: Grid, episodes: Sequence[Episode]) -> None:
        self.found = found
        self._paged = [e for e in episodes if e.page]
        self._made: dict[int, tuple[Floats, Floats]] = {}

    def band(self, column: int) -> tuple[Floats, Floats]:
        """Lower and upper edge by row; never below 0 for a series that never was."""
        if column not in self._made:
            series = self.found.values[:, [column]]
            usual = baseline(series, self.found.seconds)
            middle, spread = usual.expected[:, 0], usual.spread[:, 0]
            low, high = middle - WIDE * spread, middle + WIDE * spread
            poor = ~np.isfinite(low) | (spread <= LEAST_SPREAD * np.abs(middle))
            if poor.any():
                outer = _before(self._calm(column))
                low, high = np.where(poor, outer[0], low), np.where(poor, outer[1], high)
            if not (series < 0).any():
                low = np.maximum(low, 0.0)
            self._made[column] = (low, high)
        return self._made[column]

    def _calm(self, column: int) -> Floats:
        """Values without those of episodes that page: what is unusual is not taken for usual."""
        calm = self.found.values[:, column].copy()
        for one in self._paged:
            if one.column == column:
                calm[one.first : one.last + 1] = np.nan
        return calm

    def at(self, episode: Episode) -> tuple[float, float] | None:
        """Edges at the start of an episode; None where they are not known."""
        low, high = (float(edge[episode.first]) for edge in self.band(episode.column))
        return (low, high) if np.isfinite(low) and np.isfinite(high) else None

    def by_hour(self, episode: Episode) -> bool:
        """Whether what is usual at its start is that of its hour: the series was there on enough days before."""
        seconds = self.found.seconds
        there = np.isfinite(self.found.values[: episode.first, episode.column])
        days = np.unique((seconds[: episode.first][there] - seconds[0]) // DAY_S)
        return self.found.step >= COARSE_S and days.size >= LEAST_DAYS


def values(ordered: Sequence[Episode], found: Grid, usual: Usual) -> list[dict[str, Any]]:
    """Rows of the frame: the first SERIES series in the order of the episodes, each around its first ones."""
    chosen: dict[int, list[Episode]] = {}
    for one in ordered:
        if one.column in chosen or len(chosen) < SERIES:
            chosen.setdefault(one.column, []).append(one)
    rows: list[dict[str, Any]] = []
    for column, some in chosen.items():
        loud = [e for e in some if e.page == some[0].page]
        rows += _of_series(column, min(e.first for e in loud), max(e.last for e in loud), found, usual)
    return rows


def _of_series(column: int, first: int, last: int, found: Grid, usual: Usual) -> list[dict[str, Any]]:
    before, after = max(LEAST_BEFORE, BEFORE_S // found.step), max(LEAST_AFTER, AFTER_S // found.step)
    shown = np.arange(max(0, first - before), min(len(found.seconds), last + after + 1))
    low, high = usual.band(column)
    kept = _thinned(found.values[shown, column], (low[shown] + high[shown]) / 2)
    series = found.series[column]
    return [
        {
            "series": series.name, "labels": series.labels, "ts": at(int(found.seconds[row])),
            "value": found.values[row, column], "low": low[row], "high": high[row], "unit": series.unit,
        }
        for row in shown[kept]
    ]  # fmt: skip


def _before(series: Floats) -> tuple[Floats, Floats]:
    """Median and spread of what was before each point of a young series; 5 and 95 % of one that is mostly one value."""
    low, high = np.full(series.size, np.nan), np.full(series.size, np.nan)
    at = FEW
    while at < series.size:
        until = min(series.size, at + max(1, at // 20))
        known = series[:at][np.isfinite(series[:at])]
        if known.size >= FEW:
            centre = float(np.median(known))
            spread = 1.4826 * float(np.median(np.abs(known - centre)))
            edges = (centre - WIDE * spread, centre + WIDE * spread) if spread > 0 else np.quantile(known, [0.05, 0.95])
            low[at:until], high[at:until] = edges
        at = until
    return low, high


def _thinned(shown: Floats, expected: Floats) -> NDArray[np.int64]:
    """Places of at most POINTS points: of each stretch the farthest from what is expected."""
    size = -(-len(shown) // POINTS)
    if size <= 1:
        return np.arange(len(shown))
    centre = np.where(np.isfinite(expected), expected, np.nanmedian(shown) if np.isfinite(shown).any() else 0.0)
    away = np.nan_to_num(np.abs(shown - centre), nan=-1.0)
    return np.array([start + int(np.argmax(away[start : start + size])) for start in range(0, len(shown), size)])
