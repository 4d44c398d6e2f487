"""The score of the Numenta Anomaly Benchmark, written anew from its paper (Lavin & Ahmad 2015) and code (v1.1).

A window counts once, by its earliest alert: sigmoid of the position in it. Each alert outside costs a share of a miss,
less just after a window. Alerts in the first 15 % of a series (at most 750 points) count for nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PROFILES = {"standard": (1.0, 0.11, 1.0), "low FP": (1.0, 0.22, 1.0), "low FN": (1.0, 0.11, 2.0)}
"""Weights of a hit, of a false alert and of a miss."""


@dataclass(frozen=True)
class Labelled:
    """A series with its windows, as first and last point."""

    name: str
    values: Floats
    windows: Sequence[tuple[int, int]]
    ts: Sequence[str] = ()


@dataclass(frozen=True)
class Weighed:
    """What an alert at each point is worth, and the window it lies in (-1: none, -2: probation)."""

    worth: Floats
    window: NDArray[np.int64]
    windows: int


def sigmoid(position: Floats) -> Floats:
    """2 / (1 + e^5x) - 1; -1 beyond three window widths."""
    return np.where(position > 3.0, -1.0, 2.0 / (1.0 + np.exp(5.0 * np.minimum(position, 3.0))) - 1.0)


def weigh(series: Labelled) -> Weighed:
    """Worth of an alert at each point before the profile's weights: up to 1 in a window, down to -1 outside."""
    length = len(series.values)
    worth, window = np.full(length, -1.0), np.full(length, -1)
    for number, (first, last) in enumerate(series.windows):
        width = last - first + 1
        after = np.arange(last + 1, length)
        worth[after] = sigmoid((after - last) / (width - 1.0))
        inside = np.arange(first, last + 1)
        worth[inside] = sigmoid(-(last - inside + 1.0) / width) / sigmoid(np.array(-1.0))
        window[inside] = number
    window[: int(min(0.15 * length, 750))] = -2
    return Weighed(worth, window, len(series.windows))


def totals(scores: Floats, weighed: Weighed, thresholds: Floats) -> tuple[Floats, Floats, Floats]:
    """Of one series for each threshold (ascending): sum of the worth of hits, of false alerts, and windows missed."""
    outside = weighed.window == -1
    order = np.argsort(-scores[outside], kind="stable")
    falling = np.concatenate([[0.0], np.cumsum(weighed.worth[outside][order])])
    alerts = np.searchsorted(-scores[outside][order], -thresholds, side="right")
    hits, missed = np.zeros(len(thresholds)), np.zeros(len(thresholds))
    for number in range(weighed.windows):
        inside = np.flatnonzero(weighed.window == number)
        reached = np.maximum.accumulate(scores[inside]) if inside.size else np.zeros(0)
        first = np.searchsorted(reached, thresholds, side="left")
        found = first < inside.size
        hits[found] += weighed.worth[inside[first[found]]]
        missed += ~found
    return hits, falling[alerts], missed


def normalised(
    scores: Mapping[str, Floats], weighed: Mapping[str, Weighed], profile: str, thresholds: Floats
) -> Floats:
    """Score for each threshold over all series: 0 for silence, 100 for every window at its first point."""
    gain, cost, miss = PROFILES[profile]
    raw, windows = np.zeros(len(thresholds)), 0
    for name, of_series in scores.items():
        hits, false, missed = totals(of_series, weighed[name], thresholds)
        raw += gain * hits + cost * false - miss * missed
        windows += weighed[name].windows
    return 100.0 * (raw + miss * windows) / ((gain + miss) * windows)
