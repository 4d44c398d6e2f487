"""Which rows, drivers and quantile a group of requests can carry, and in words what was left out and why."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from analytics.stats import collinearity
from analytics.stats.quantile_regression import fit, fit_smallest
from analytics.stats.smoothed import Array

if TYPE_CHECKING:
    import polars as pl

_TAIL_ROWS_LEAST = 20
"""Tail rows at the lowest quantile tried: the error of a slope is half as large again as with 50 (science.md 3)."""
_TAIL_ROWS_PER_PARAMETER = 10
_LEAST_COVERAGE = 0.5
_LADDER = (0.95, 0.9)


@dataclass(frozen=True, slots=True)
class Selection:
    """What is fitted: `rows` (complete cases, in order of ts), the driver matrix, and what the drivers stand for.

    `players` are the groups that share a contribution; `columns` the drivers in the design (one of each inseparable
    group). `refusal` says why nothing can be fitted, empty otherwise.
    """

    rows: "pl.DataFrame"
    tau: float
    names: tuple[str, ...] = ()
    matrix: Array = field(default_factory=lambda: np.zeros((0, 0)))
    players: tuple[tuple[str, tuple[int, ...]], ...] = ()
    inflation: tuple[tuple[str, float], ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    low_confidence: bool = False
    refusal: str = ""

    @property
    def y(self) -> Array:
        """Target of each row."""
        return self.rows["y"].to_numpy().astype(np.float64)

    @property
    def design(self) -> Array:
        """Matrix with the constant in column 0."""
        return np.column_stack([np.ones(self.matrix.shape[0]), self.matrix])


def select(
    group: "pl.DataFrame", drivers: Sequence[str], tau: float, tail_rows: int, *, auto: bool, per_window: bool
) -> Selection:
    """Choose rows, drivers and quantile of one group; `group` has ts, y and one float column per driver.

    `per_window` skips the quantile's ladder: the rows are windows, their target is already a P99.
    """
    notes: list[str] = []
    present = _present(group, drivers, notes, auto=auto)
    rows, dropped = _complete(group, present)
    varying = [name for name in present if not _constant(rows, name)]
    if constant := [name for name in present if name not in varying]:
        notes.append(f"{_listed(constant)} left out: constant over the {rows.height} requests")
    chosen, low = (tau, False) if per_window else _choose_tau(rows.height, tau, tail_rows)
    if chosen is None:
        lowest = min(tau, _LADDER[-1])
        refusal = (
            f"not enough requests: {rows.height} have {_tail_rows(rows.height, lowest):.0f} tail rows even at tau "
            f"{lowest:g}, slopes need {_TAIL_ROWS_LEAST}"
        )
        return Selection(rows, tau, dropped=dropped, notes=tuple(notes), refusal=refusal)
    if chosen != tau:
        notes.append(
            f"not enough tail rows: {_tail_rows(rows.height, tau):.0f} of {tail_rows} at tau {tau:g}; "
            f"fitted at tau {chosen:g} instead"
        )
    if not varying:
        return Selection(rows, chosen, dropped=dropped, notes=tuple(notes), refusal="no driver with values that vary")
    room = round(rows.height if per_window else _tail_rows(rows.height, chosen)) // _TAIL_ROWS_PER_PARAMETER - 1
    varying = _strongest(rows, varying, max(room, 1), chosen, notes)
    return _separate(rows, varying, chosen, dropped, notes, low)


def _tail_rows(n: int, tau: float) -> float:
    return round(n * min(tau, 1.0 - tau), 6)


def _choose_tau(n: int, tau: float, tail_rows: int) -> tuple[float | None, bool]:
    """Highest quantile not above tau whose tail carries slopes; True where it does so barely."""
    steps = [tau, *(step for step in _LADDER if step < tau)]
    for step in steps:
        if _tail_rows(n, step) >= tail_rows - 0.5:  # 49.6 rows are 50
            return step, False
    return (steps[-1], True) if _tail_rows(n, steps[-1]) >= _TAIL_ROWS_LEAST else (None, True)


def _present(group: "pl.DataFrame", drivers: Sequence[str], notes: list[str], *, auto: bool) -> list[str]:
    kept = []
    for name in drivers:
        share = 1.0 - group[name].null_count() / max(group.height, 1)
        if share >= _LEAST_COVERAGE or (share > 0 and not auto):
            kept.append(name)
        elif share > 0 or not auto:
            notes.append(f"{name} left out: {share:.0%} of requests have a value")
    return kept


def _complete(group: "pl.DataFrame", names: Sequence[str]) -> tuple["pl.DataFrame", tuple[tuple[str, int], ...]]:
    missing = tuple((f"no {name}", group[name].null_count()) for name in names if group[name].null_count())
    return group.drop_nulls(list(names)) if names else group, missing


def _constant(rows: "pl.DataFrame", name: str) -> bool:
    return bool(collinearity.constant_columns(rows[name].to_numpy().astype(np.float64)[:, None]))


def _strongest(rows: "pl.DataFrame", names: list[str], room: int, tau: float, notes: list[str]) -> list[str]:
    """Keep the drivers whose values differ most between the tail and the rest, as many as the tail can carry."""
    if len(names) <= room:
        return names
    y = rows["y"].to_numpy()
    tail = y >= np.quantile(y, tau)
    strength = {}
    for name in names:
        ranks = rows[name].rank("average").to_numpy()
        strength[name] = abs(float(ranks[tail].mean() - ranks.mean())) / (float(ranks.std()) or 1.0)
    kept = sorted(names, key=lambda name: -strength[name])[:room]
    left = [name for name in names if name not in kept]
    notes.append(f"{_listed(left)} left out: {int(tail.sum())} tail rows carry {room} drivers, 10 for each parameter")
    return [name for name in names if name in kept]


def _separate(
    rows: "pl.DataFrame",
    names: list[str],
    tau: float,
    dropped: tuple[tuple[str, int], ...],
    notes: list[str],
    low: bool,
) -> Selection:
    """Group drivers that move together; of an inseparable group only one stands in the design, for all of it."""
    matrix = rows.select(names).to_numpy().astype(np.float64)
    inflation = collinearity.variance_inflation(matrix)
    joint = collinearity.groups(matrix, inflation, collinearity.JOINT_EFFECT)
    y = rows["y"].to_numpy().astype(np.float64)
    stands = {_representative(matrix, y, names, members, tau): members for members in joint}
    for kept, members in stands.items():
        if len(members) > 1:
            others = _listed([names[i] for i in members if i != kept])
            notes.append(
                f"{collinearity.name_group(names, members)} are not separable (variance inflation above "
                f"{collinearity.JOINT_EFFECT:g}): {names[kept]} stands for the joint effect, "
                f"{others} has no slope of its own"
            )
    order = sorted(stands)
    reduced = matrix[:, order]
    left = collinearity.variance_inflation(reduced)
    players = []
    for members in collinearity.groups(reduced, left, collinearity.JOINT_SHARE):
        everyone = [i for j in members for i in stands[order[j]]]
        players.append((collinearity.name_group(names, everyone), tuple(members)))
        if len(members) > 1:
            notes.append(
                f"{players[-1][0]} move together (variance inflation above {collinearity.JOINT_SHARE:g}): "
                "one share for all of them; single slopes are uncertain"
            )
    return Selection(
        rows, tau, tuple(names[i] for i in order), reduced, tuple(players),
        tuple(zip(names, map(float, inflation), strict=True)), dropped, tuple(notes), low,
    )  # fmt: skip


def _representative(matrix: Array, y: Array, names: list[str], members: list[int], tau: float) -> int:
    """Return the member that explains most alone; the first by name where they explain the same to two digits."""
    if len(members) == 1:
        return members[0]
    base = fit_smallest(y, tau).loss

    def worth(i: int) -> float:
        design = np.column_stack([np.ones(y.size), matrix[:, i]])
        return 1.0 - fit(design, y, tau).loss / base if base > 0 else 0.0

    return min(members, key=lambda i: (-round(worth(i), 2), names[i]))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
