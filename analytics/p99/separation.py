"""Drivers that can be told apart, those that share one effect, and those the tail has no room for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.stats import collinearity
from analytics.stats.quantile_regression import fit, fit_smallest
from analytics.stats.smoothed import Array

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Apart:
    """Columns of the design by name, the groups of them (named) that share a contribution, and inflation of all."""

    names: tuple[str, ...]
    matrix: Array
    players: tuple[tuple[str, tuple[int, ...]], ...]
    inflation: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]


def separate(
    rows: "pl.DataFrame", names: Sequence[str], tau: float, room: int, covariates: Sequence[str] = ()
) -> Apart:
    """Let one driver of an inseparable group stand for it, keep at most `room`, and group what moves together.

    Covariates are no players, and the first to go where there is no room.
    """
    matrix = rows.select(names).to_numpy().astype(np.float64)
    y = rows["y"].to_numpy().astype(np.float64)
    inflation = collinearity.variance_inflation(matrix)
    notes: list[str] = []
    stands = {}
    for members in collinearity.groups(matrix, inflation, collinearity.JOINT_EFFECT):
        kept = _representative(matrix, y, names, members, tau)
        stands[kept] = members
        if len(members) > 1:
            notes.append(_inseparable(names, members, kept))
    order = _strongest(matrix, y, names, sorted(stands), tau, room, covariates, notes)
    reduced = np.ascontiguousarray(matrix[:, order])
    players = []
    joint = collinearity.groups(reduced, collinearity.variance_inflation(reduced), collinearity.JOINT_SHARE)
    for columns in joint:
        members = [i for j in columns for i in stands[order[j]]]
        if all(names[i] in covariates for i in members):
            continue
        name = collinearity.name_group(names, members)
        players.append((name, tuple(columns)))
        if len(columns) > 1:
            notes.append(
                f"{name} move together (variance inflation above {collinearity.JOINT_SHARE:g}): "
                "one share for all of them; single slopes are uncertain"
            )
    inflated = tuple(zip(names, map(float, inflation), strict=True))
    return Apart(tuple(names[i] for i in order), reduced, tuple(players), inflated, tuple(notes))


def _inseparable(names: Sequence[str], members: Sequence[int], kept: int) -> str:
    others = listed([names[i] for i in members if i != kept])
    return (
        f"{collinearity.name_group(names, members)} are not separable (variance inflation above "
        f"{collinearity.JOINT_EFFECT:g}): {names[kept]} stands for the joint effect, {others} has no slope of its own"
    )


def _representative(matrix: Array, y: Array, names: Sequence[str], members: Sequence[int], tau: float) -> int:
    """Return the member that explains most alone; the first by name where they explain the same to two digits."""
    if len(members) == 1:
        return members[0]
    base = fit_smallest(y, tau).loss

    def worth(i: int) -> float:
        design = np.column_stack([np.ones(y.size), matrix[:, i]])
        return 1.0 - fit(design, y, tau).loss / base if base > 0 else 0.0

    return min(members, key=lambda i: (-round(worth(i), 2), names[i]))


def _strongest(
    matrix: Array,
    y: Array,
    names: Sequence[str],
    columns: list[int],
    tau: float,
    room: int,
    covariates: Sequence[str],
    notes: list[str],
) -> list[int]:
    """Keep the drivers whose ranks differ most between the tail and the rest, as many as the tail can carry."""
    if len(columns) <= room:
        return columns
    tail = y >= np.quantile(y, tau)
    strength = {}
    for i in columns:
        _values, place, counts = np.unique(matrix[:, i], return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - counts / 2)[place]
        strength[i] = abs(float(ranks[tail].mean() - ranks.mean()))
    kept = sorted(sorted(columns, key=lambda i: (names[i] in covariates, -strength[i]))[:room])
    left = [names[i] for i in columns if i not in kept]
    notes.append(f"{listed(left)} left out: {int(tail.sum())} tail rows carry {room} drivers, 10 for each parameter")
    return kept


def listed(names: Sequence[str]) -> str:
    """Write 'a', 'a and b' or 'a, b and c'."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
