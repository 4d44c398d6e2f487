"""What recurs is no anomaly: the same series, the same hour, a similar level, on three of the last four occasions.

A nightly batch that grows a little goes to values never seen each night. Nobody needs to say so, and nothing is kept
between runs: it is learnt from the points of the window before the episode, and said with its rule.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from analytics.detect.episodes import Episode

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OCCASIONS = 4
TIMES = 3
SIMILAR = 0.8
"""Least share of the way from the usual level that it went each time before."""
AROUND_S = 1800
"""Seconds around the hour within which it recurs."""
PERIODS = {"day": 86400, "week": 604800}
KINDS = ("value", "hour", "season")


def learnt(values: Floats, seconds: Ints, episodes: Sequence[Episode], zone: ZoneInfo) -> dict[int, str]:
    """Rule by place in `episodes`, of those that were so at the same time of earlier days or weeks."""
    found = {}
    for i, one in enumerate(episodes):
        if one.kind in KINDS and one.value is not None:
            rule = _rule(values[:, one.column], seconds, one, zone)
            if rule:
                found[i] = rule
    return found


def _rule(series: Floats, seconds: Ints, one: Episode, zone: ZoneInfo) -> str:
    usual = float(np.nanmedian(series[: one.first])) if np.isfinite(series[: one.first]).any() else np.nan
    away = (one.value or 0.0) - usual
    if not np.isfinite(away) or away == 0:
        return ""
    beyond = (series - usual) * np.sign(away)
    at = int(seconds[one.first])
    for name, period in PERIODS.items():
        peaks = [_peak(beyond, seconds, at - k * period) for k in range(1, OCCASIONS + 1)]
        times = sum(peak >= SIMILAR * abs(away) for peak in peaks)
        if times >= TIMES:
            clock = datetime.fromtimestamp(at, UTC).astimezone(zone)
            day = "" if name == "day" else f"{clock:%A} "
            return f"{day}{clock:%H:%M} {zone.key}: so on {times} of the {OCCASIONS} {name}s before"
    return ""


def _peak(beyond: Floats, seconds: Ints, at: int) -> float:
    low, high = np.searchsorted(seconds, [at - AROUND_S, at + AROUND_S + 1])
    inside = beyond[low:high]
    return float(np.nanmax(inside)) if np.isfinite(inside).any() else -np.inf
