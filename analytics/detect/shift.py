"""Level shifts: a two-sided CUSUM on blocks of points, each in units of the usual spread (Page 1954).

Not a search for the best segmentation (PELT, kernels): that looks at both sides of a change and so cannot say at time t
what it will say later. The sum's last zero estimates where the shift began.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DRIFT = 1.5
"""Spreads per block that are given away: smaller lasting deviations are no shift."""
LIMIT = 15.0
"""Sum from which it is one: six blocks (hours, at 5 min) beyond the clip, a day at two spreads."""
CLIP = 4.0
"""Most that one block adds, so that a spike is no shift."""


@dataclass(frozen=True)
class Shift:
    """A shift of one series: rows where it began and where it was found, and its direction."""

    column: int
    began: int
    found: int
    up: bool


def blocks(z: Floats, points: int) -> Floats:
    """Mean of each whole block of points, each clipped; NaN where all are missing."""
    whole = len(z) // points * points
    cut = np.clip(z[:whole], -2 * CLIP, 2 * CLIP).reshape(-1, points, z.shape[1])
    there = (~np.isnan(cut)).sum(axis=1)
    mean: Floats = np.divide(np.nansum(cut, axis=1), there, out=np.full(there.shape, np.nan), where=there > 0)
    return mean


def shifts(z: Floats, points: int) -> list[Shift]:
    """Every shift, in order of detection; after one, the sum starts anew and is silent until it has been at zero."""
    summed = np.clip(blocks(z, points), -CLIP, CLIP)
    found: list[Shift] = []
    for up in (True, False):
        total, began = np.zeros(z.shape[1]), np.zeros(z.shape[1], np.int64)
        told = np.zeros(z.shape[1], bool)
        for at, block in enumerate(summed if up else -summed):
            grown = np.maximum(total + np.nan_to_num(block) - DRIFT, 0.0)
            began = np.where((total <= 0) & (grown > 0), at, began)
            total = np.minimum(grown, 2 * LIMIT)
            told &= total > 0
            new = (total > LIMIT) & ~told
            told |= new
            found += [Shift(int(c), int(began[c]) * points, (at + 1) * points - 1, up) for c in np.flatnonzero(new)]
    return sorted(found, key=lambda shift: (shift.found, shift.column))
