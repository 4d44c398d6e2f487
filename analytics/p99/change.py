"""What changed between two parts of the window: the rise of a quantile, split into drivers and an unexplained rest.

Each driver is given back the distribution it had before (its value at the same rank), the later requests get faster or
slower by fit x difference, and the quantile is read again. Shapley values over the orders in which drivers could be
given back add up to what all of them explain; the rest is what the later requests take longer at equal drivers. A
counterfactual distribution after Machado & Mata (2005), with one fit's slopes at the quantile instead of all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.p99 import FOLLOWS, FULL_CACHE
from analytics.p99.model import time_cells
from analytics.p99.selection import select
from analytics.stats import autocorrelation, collinearity, shapley
from analytics.stats.block_bootstrap import block_counts, interval, refit
from analytics.stats.quantile_regression import fit
from analytics.stats.smoothed import Array

OUT_OF_LINE = 3.0
"""Usual spreads that a driver must have moved by before others are read as following from it."""
FULL = 0.9
"""Share of KV blocks in use from which requests wait for blocks."""
_PER_PARAMETER = 5
"""Tail rows per driver: half of what a slope should have, since here a driver left out is worse than a wide limit."""
_FITTED_ROWS = 40_000
"""Rows of each part that slopes come from; quantiles are of all rows."""
_REACH = 6.0
"""Rows from the top that resamples may reach, as a multiple of the tail: no resample draws the tail six times."""


@dataclass(frozen=True, slots=True)
class Part:
    """A driver (or drivers that move together), what of the change goes with it, and its mean before and after."""

    name: str
    change: float
    low: float
    high: float
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Change:
    """The quantile before and after; parts and rest add up to their difference."""

    tau: float
    before: float
    after: float
    total: Part
    parts: tuple[Part, ...]
    rest: Part
    notes: tuple[str, ...]

    @property
    def most(self) -> Part | None:
        """Part that moved the quantile most upward."""
        return max(self.parts, key=lambda part: part.change, default=None)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Slopes (of all rows, then of each resample) and, per driver, how far each later row is from its rank before."""

    names: tuple[str, ...]
    players: tuple[tuple[str, tuple[int, ...]], ...]
    slopes: Array
    shifts: Array
    y: Array
    draws: "_Draws"


@dataclass(frozen=True, slots=True)
class _Draws:
    """Cell of each row and how often cells are drawn, (1 + resamples, cells): all once, then blocks of them."""

    cell: NDArray[np.intp]
    counts: Array
    blocks: float

    @classmethod
    def of(cls, rows: pl.DataFrame, resamples: int, seed: int) -> "_Draws":
        """Blocks of cells of the time of these rows."""
        cell = time_cells(rows["ts"], rows.height)
        cells = int(cell.max()) + 1
        block = autocorrelation.block_length(cells, 0.5, 0.5)
        drawn = block_counts(cells, block, resamples, seed) if resamples else np.ones((0, cells))
        return cls(cell, np.vstack([np.ones((1, cells)), drawn]), cells / block)


def change(
    before: pl.DataFrame, after: pl.DataFrame, names: Sequence[str], tau: float, resamples: int, seed: int
) -> Change | str:
    """Split the change of the quantile; `before` and `after` have ts, y and the drivers, complete.

    The refusal in words where the rows cannot carry a fit. Without resamples there are no limits (nan).
    """
    local = select(_thinned(before, after), names, tau, 1, auto=False, per_window=False, per_parameter=_PER_PARAMETER)
    if local.refusal or local.tau != tau:
        return local.refusal or f"too few requests for tau {tau:g} on {before.height} before and {after.height} after"
    found = _fitted(local.names, local.players, before, after, local.rows, tau, resamples, seed)
    earlier = _quantiles(before["y"].to_numpy().astype(np.float64), _Draws.of(before, resamples, seed), tau)
    later, blocks = _quantiles(found.y, found.draws, tau), found.draws.blocks

    def worth(coalition: frozenset[int]) -> Array:
        columns = [i for player in coalition for i in found.players[player][1]]
        return later - _given_back(found, columns, tau)

    players = len(found.players)
    shares = shapley.values(players, worth, shapley.orders(players, seed))
    total = later - earlier
    parts = tuple(
        _part(
            name, values, blocks, *(float(rows[found.names[columns[0]]].to_numpy().mean()) for rows in (before, after))
        )
        for (name, columns), values in zip(found.players, shares, strict=True)
    )
    rest = _part("rest", total - shares.sum(axis=0), blocks, np.nan, np.nan)
    exact = float(total[0]) - fsum(part.change for part in parts)
    return Change(
        tau=tau,
        before=float(earlier[0]),
        after=float(later[0]),
        total=_part("total", total, blocks, float(earlier[0]), float(later[0])),
        parts=tuple(sorted(parts, key=lambda part: -part.change)),
        rest=Part("rest", exact, rest.low, rest.high, np.nan, np.nan),
        notes=tuple(note for note in local.notes if "move together" in note or "not separable" in note),
    )


def _part(name: str, values: Array, blocks: float, before: float, after: float) -> Part:
    estimate = values[:1]
    low, high = interval(estimate, values[1:, None], blocks) if values.size > 1 else (np.array([np.nan]),) * 2
    return Part(name, float(estimate[0]), float(low[0]), float(high[0]), before, after)


def _thinned(*parts: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([rows.gather_every(-(-rows.height // _FITTED_ROWS)) for rows in parts if rows.height]).sort("ts")


def _fitted(
    names: tuple[str, ...],
    players: tuple[tuple[str, tuple[int, ...]], ...],
    before: pl.DataFrame,
    after: pl.DataFrame,
    rows: pl.DataFrame,
    tau: float,
    resamples: int,
    seed: int,
) -> _Fit:
    """Fit both parts together, then credit upstream drivers that are out of line with what follows from them."""
    matrix, earlier, later = (part.select(names).to_numpy().astype(np.float64) for part in (rows, before, after))
    y = rows["y"].to_numpy().astype(np.float64)
    design = np.column_stack([np.ones(y.size), matrix])
    best = fit(design, y, tau)
    slopes = best.coefficients[None, 1:]
    if resamples:
        cell = time_cells(rows["ts"], y.size)
        cells = int(cell.max()) + 1
        counts = block_counts(cells, autocorrelation.block_length(cells, 0.5, 0.5), resamples, seed)
        slopes = np.vstack([slopes, refit(design, y, cell, tau, best.coefficients, counts).coefficients[:, 1:]])
    for first, followers in _precedence(names, earlier, later):
        known = matrix[:, [first]] - matrix[:, [first]].mean()
        follows = (known * matrix[:, followers]).sum(axis=0) / np.square(known).sum()
        slopes[:, first] += slopes[:, followers] @ follows
        for values in (matrix, earlier, later):
            values[:, followers] -= values[:, [first]] * follows
    full = FULL_CACHE[0] in before.columns and _full(before[FULL_CACHE[0]], after[FULL_CACHE[0]])
    players = _players(names, players, matrix, FULL_CACHE if full else ())
    shifts = later - np.column_stack([_at_same_rank(a, b) for a, b in zip(later.T, earlier.T, strict=True)])
    y = after["y"].to_numpy().astype(np.float64)
    return _Fit(names, players, slopes, shifts, y, _Draws.of(after, resamples, seed + 1))


def _players(
    names: tuple[str, ...], players: tuple[tuple[str, tuple[int, ...]], ...], matrix: Array, one: tuple[str, ...]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Group again what moves together, now that what follows from a driver is taken out of the others.

    The drivers of `one` go together whatever they do.
    """
    stands_for = {columns[0]: name for name, columns in players if len(columns) == 1}
    label = [stands_for.get(i, name) for i, name in enumerate(names)]
    inseparable = {i for i, said in enumerate(label) if set(said.split(" + ")) & set(one)}
    groups = collinearity.groups(matrix, collinearity.variance_inflation(matrix), collinearity.JOINT_SHARE)
    joined = sorted({i for columns in groups if set(columns) & inseparable for i in columns})
    apart = [columns for columns in groups if not set(columns) & set(joined)] + ([joined] if joined else [])
    return tuple((" + ".join(label[i] for i in columns), tuple(columns)) for columns in apart)


def _precedence(names: Sequence[str], earlier: Array, later: Array) -> list[tuple[int, list[int]]]:
    """Drivers that are out of line, each with those that follow from it (`FOLLOWS`).

    The model stays the same: a follower's column loses what goes with the first, whose slope gains it.
    """
    found = []
    for first, followers in FOLLOWS.items():
        columns = [names.index(name) for name in followers if name in names]
        if first in names and columns:
            i = names.index(first)
            if _out_of_line(earlier[:, i], later[:, i]):
                found.append((i, columns))
    return found


def _full(earlier: pl.Series, later: pl.Series) -> bool:
    """Whether the cache was full for a tenth of the later requests and not before."""
    was, is_now = (values.quantile(0.9, "linear") for values in (earlier, later))
    return was is not None and is_now is not None and was < FULL <= is_now


def _out_of_line(earlier: Array, later: Array) -> bool:
    """Whether the median left the usual range."""
    middle, low, high = np.median(earlier), *np.quantile(earlier, [0.25, 0.75])
    spread = max(1.4826 * float(np.median(np.abs(earlier - middle))), float(high - low) / 1.349)
    return bool(abs(float(np.median(later) - middle)) > OUT_OF_LINE * spread)


def _at_same_rank(values: Array, others: Array) -> Array:
    """Value that `others` have at the rank of each value; ties share their middle rank."""
    _unique, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2.0)[place] / values.size
    return np.quantile(others, ranks)


def _given_back(found: _Fit, columns: Sequence[int], tau: float) -> Array:
    """Quantile of the later requests with these drivers as before: of all rows, then of each resample."""
    if not columns:
        return _quantiles(found.y, found.draws, tau)
    moved = found.shifts[:, columns] @ found.slopes[0, columns]
    adjusted = found.y - moved
    known = _quantiles(adjusted, found.draws, tau)
    near = np.abs(adjusted - known[0])
    closest = np.argpartition(near, min(near.size - 1, max(50, near.size // 200)))[: max(50, near.size // 200)]
    typical = found.shifts[closest][:, columns].mean(axis=0)
    return np.asarray(known - (found.slopes[:, columns] - found.slopes[0, columns]) @ typical)


def _quantiles(y: Array, draws: _Draws, tau: float) -> Array:
    """Quantile of all rows (linear between order statistics), then of each resample relative to that."""
    exact = float(np.quantile(y, tau))
    if draws.counts.shape[0] == 1:
        return np.array([exact])
    top = tau >= 0.5
    size = min(y.size, int(_REACH * max(y.size * min(tau, 1.0 - tau), 10.0)) + 1)
    key = -y if top else y
    order = np.argpartition(key, size - 1)[:size]
    order = order[np.argsort(key[order], kind="stable")]
    rows = draws.counts @ np.bincount(draws.cell, minlength=draws.counts.shape[1])
    drawn = draws.counts[:, draws.cell[order]].cumsum(axis=1) / rows[:, None]
    place = (drawn < (1.0 - tau if top else tau)).sum(axis=1)
    found = y[order][np.minimum(place, size - 1)]
    return np.asarray(found - found[0] + exact)
