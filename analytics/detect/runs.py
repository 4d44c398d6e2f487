"""Runs of points: a series that stopped moving, or stopped coming."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FLAT = 24
GAP = 6
LONGER = 3
"""A run is unusual if so many times as long as the longest one before."""
SEEN = 200
"""Points before, with fewer of which a run is not judged."""


def flat(values: Floats) -> Bools:
    """Whether a point ends a run of equal values, three times as long as any before, of a series that always moves."""
    same = np.zeros(values.shape, bool)
    same[1:] = values[1:] == values[:-1]
    share = np.cumsum(same, axis=0) / np.maximum(np.cumsum(~np.isnan(values), axis=0), 1)
    lengths, longest = _runs(same)
    seen = np.cumsum(~np.isnan(values), axis=0)
    calm = np.where(lengths > 0, _at_start(share, lengths), share)
    found: Bools = (lengths >= np.maximum(FLAT, LONGER * longest)) & (seen - lengths >= SEEN) & (calm < 0.1)
    return found


def missing(values: Floats) -> Bools:
    """Whether a point ends a gap of a series that came steadily, three times as long as any gap before."""
    absent = np.isnan(values)
    lengths, longest = _runs(absent)
    seen = np.cumsum(~absent, axis=0)
    began = np.argmax(~absent, axis=0)
    age = np.arange(len(values))[:, None] - lengths - began + 1
    steady = seen >= 0.8 * np.maximum(age, 1)
    found: Bools = (lengths >= np.maximum(GAP, LONGER * longest)) & (seen >= SEEN) & steady
    return found


def _runs(inside: Bools) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Length of the run that each point ends, and of the longest one that ended before that run."""
    lengths, longest = np.zeros(inside.shape, np.int64), np.zeros(inside.shape, np.int64)
    now, most = np.zeros(inside.shape[1], np.int64), np.zeros(inside.shape[1], np.int64)
    for at, row in enumerate(inside):
        most = np.where(row, most, np.maximum(most, now))
        now = np.where(row, now + 1, 0)
        lengths[at], longest[at] = now, most
    return lengths, longest


def _at_start(share: Floats, lengths: NDArray[np.int64]) -> Floats:
    rows = np.maximum(np.arange(len(share))[:, None] - lengths, 0)
    return np.take_along_axis(share, rows, axis=0)
