"""What is known of pushed series as columns, so that a request is looked up in a few array operations."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from collector.presets.preset import Interval
from collector.prometheus.series import Resolved

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
STALE_NAN = float(np.uint64(0x7FF0000000000002).view(np.float64))
"""The NaN by which Prometheus ends a series, and we do; any other one is a value that a sender does not have."""
STALE_BITS = np.float64(STALE_NAN).view(np.uint64)
_FIRST = 1024


class Points(NamedTuple):
    """Samples of one request, in parallel: slot of the series, time in us since 1970 (UTC), raw value.

    `starts_us`, where given, is since when a cumulative series counts; 0 where that is not known.
    """

    slots: Ints
    times_us: Ints
    values: Floats
    starts_us: Ints | None = None

    def where(self, kept: npt.NDArray[np.bool_]) -> "Points":
        """Return the samples for which `kept` is true."""
        starts_us = None if self.starts_us is None else self.starts_us[kept]
        return Points(self.slots[kept], self.times_us[kept], self.values[kept], starts_us)


class SeriesColumns:
    """Columns by slot: id, bounds and blanks of the raw value, last sample, start, and if the store has the row."""

    def __init__(self) -> None:
        """Start with room for a few series; it grows by doubling."""
        self.ids = np.zeros(_FIRST, np.uint64)
        self.low = np.full(_FIRST, -np.inf)
        self.high = np.full(_FIRST, np.inf)
        self.last_us = np.zeros(_FIRST, np.int64)
        self.seen_us = np.zeros(_FIRST, np.int64)
        self.starts_us = np.zeros(_FIRST, np.int64)
        self.described = np.zeros(_FIRST, np.bool_)
        self._blanks: dict[Interval, npt.NDArray[np.bool_]] = {}

    def reset(self, slot: int) -> None:
        """Make room for a slot and forget what it held."""
        while slot >= self.ids.size:
            for name in ("ids", "low", "high", "last_us", "seen_us", "starts_us", "described"):
                setattr(self, name, _doubled(getattr(self, name)))
            self._blanks = {interval: _doubled(flags) for interval, flags in self._blanks.items()}
        self.ids[slot] = self.last_us[slot] = self.seen_us[slot] = self.starts_us[slot] = 0
        self.described[slot] = False

    def set_meaning(self, slots: Ints, found: Resolved) -> None:
        """Store ids and bounds of the series in `slots`, which are parallel to `found`."""
        self.ids[slots] = found.ids
        self.low[slots] = found.low
        self.high[slots] = found.high
        for flags in self._blanks.values():
            flags[slots] = False
        for interval, flags in found.blanks:
            self._blanks.setdefault(interval, np.zeros(self.ids.size, np.bool_))[slots] = flags

    def resolved(self, slots: Ints) -> Resolved:
        """Return ids and bounds of the samples of a request."""
        blanks = tuple((interval, flags[slots]) for interval, flags in self._blanks.items())
        return Resolved((), self.ids[slots], self.low[slots], self.high[slots], blanks, {})


def _doubled(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([column, np.zeros_like(column)])
