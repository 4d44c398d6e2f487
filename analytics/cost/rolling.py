"""The plain rule: an hour that costs more than mean + k standard deviations of the seven days before it.

Kept for those who know it. It forgets that nights are cheap and Sundays quiet, and an anomaly widens its own band:
benchmarks/accuracy/cost.md has it beside the default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.cost.episodes import LATEST, LEVEL, SHORT, SPIKE, Drift
from analytics.cost.grid import Grid
from analytics.stats.smoothed import Array
from store.errors import UsageError

TRAILING = {"hour": 168, "day": 7}
LEAST = {"hour": 24, "day": 7}
BASIS = "mean of the 7 days before"


@dataclass(frozen=True, slots=True)
class Kind:
    """Standard deviations and least rise over the mean of groups one of whose labels contains `name`."""

    name: str
    k: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class Bands:
    """Per hour and series: mean and sample standard deviation of the time before, factor k; where it is exceeded."""

    mean: Array
    deviation: Array
    k: Array
    over: NDArray[np.bool_]


def parse(text: str) -> Kind:
    """Read 'database=2.0/0.18'. Raises UsageError."""
    name, sign, rest = text.partition("=")
    k, _, tolerance = rest.partition("/")
    try:
        made = Kind(name.strip().lower(), float(k), float(tolerance or 0))
    except ValueError:
        made = Kind("", 0.0, 0.0)
    if not (made.name and sign):
        raise UsageError(f"kind {text!r} cannot be read", "write NAME=K/TOLERANCE, such as database=2.0/0.18")
    return made


def bands(grid: Grid, k: float, kinds: Sequence[Kind]) -> Bands:
    """Apply the rule to every bucket. Sums go over what is known: with gaps, over fewer hours."""
    centre = np.nan_to_num(np.nanmean(grid.values, axis=0)) if grid.values.size else np.zeros(len(grid.keys))
    known = np.isfinite(grid.values)
    rest = np.where(known, grid.values - centre, 0.0)
    n, total, squares = (_trailing(part, TRAILING[grid.grain]) for part in (known.astype(float), rest, rest**2))
    enough = n >= LEAST[grid.grain]
    mean = np.where(enough, total / np.maximum(n, 1), np.nan)
    deviation = np.sqrt(np.maximum(squares - total * np.nan_to_num(mean), 0.0) / np.maximum(n - 1, 1))
    of = [_kind(key, k, kinds) for key in grid.keys]
    factor, tolerance = np.array([one.k for one in of]), np.array([one.tolerance for one in of])
    usual = mean + centre
    slack = 1e-9 * np.abs(usual)  # a flat cost is not above itself
    with np.errstate(invalid="ignore"):
        over = (grid.values > usual + factor * deviation + slack) & (grid.values > usual * (1 + tolerance))
    over[grid.until :] = False
    return Bands(usual, np.where(enough, deviation, np.nan), factor, over & known)


def _trailing(values: Array, rows: int) -> Array:
    """Sum over the `rows` before each row."""
    total = np.concatenate([np.zeros((1, values.shape[1])), values.cumsum(axis=0)])[:-1]
    back = np.maximum(np.arange(len(values)) - rows, 0)
    return np.asarray(total - total[back])


def _kind(key: Mapping[str, object], k: float, kinds: Sequence[Kind]) -> Kind:
    text = " ".join(str(value) for value in key.values()).lower()
    return next((kind for kind in kinds if kind.name in text), Kind("", k, 0.0))


def drifts(grid: Grid, found: Bands, least_money: float = 0.0) -> list[Drift]:
    """Join hours that follow each other; one that is alone is a drift of one hour."""
    made = []
    for series in np.flatnonzero(found.over.any(axis=0)):
        at = np.flatnonzero(found.over[:, series])
        for part in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1):
            one = _drift(grid, found, int(series), int(part[0]), int(part[-1]))
            if one.impact >= least_money:
                made.append(one)
    return made


def _drift(grid: Grid, found: Bands, series: int, first: int, last: int) -> Drift:
    cost, mean = grid.values[first : last + 1, series], found.mean[first : last + 1, series]
    total = float(mean.sum())
    kind = LEVEL if last - first >= SHORT[grid.grain] else SPIKE
    lasting = last >= grid.until - LATEST[grid.grain]
    ratio = float((cost - mean).sum()) / total if total > 0 else None
    peak = float((cost / mean).max()) if total > 0 and (mean > 0).all() else None
    return Drift(
        series, first, last, kind, float((cost - mean).sum()), ratio, total / cost.size, peak, BASIS, lasting,
        found_by="rolling",
    )  # fmt: skip
