"""Which rows, drivers and quantile a group of requests can carry, and in words what was left out and why."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from analytics.p99.separation import listed, separate
from analytics.stats.collinearity import constant_columns
from analytics.stats.smoothed import Array

if TYPE_CHECKING:
    import polars as pl

_TAIL_ROWS_LEAST = 20
"""Tail rows at the lowest quantile tried: the error of a slope is half as large again as with 50."""
_TAIL_ROWS_PER_PARAMETER = 10
_LEAST_COVERAGE = 0.5
_LADDER = (0.95, 0.9)


@dataclass(frozen=True, slots=True)
class Selection:
    """What is fitted: `rows` (complete cases, in order of ts), the driver matrix, and what the drivers stand for.

    `names` are the columns of the design (one of each inseparable group); `players` the groups of them that share a
    contribution, `adjusted` those that are covariates. `candidates` are all that vary, which the rows are complete in,
    also those that the tail has no room for. `refusal` says why nothing can be fitted, empty otherwise.
    """

    rows: "pl.DataFrame"
    tau: float
    names: tuple[str, ...] = ()
    matrix: Array = field(default_factory=lambda: np.zeros((0, 0)))
    players: tuple[tuple[str, tuple[int, ...]], ...] = ()
    adjusted: tuple[int, ...] = ()
    inflation: tuple[tuple[str, float], ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    low_confidence: bool = False
    candidates: tuple[str, ...] = ()
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
    group: "pl.DataFrame",
    drivers: Sequence[str],
    tau: float,
    wanted: int,
    *,
    auto: bool,
    per_window: bool,
    covariates: Sequence[str] = (),
    per_parameter: int = _TAIL_ROWS_PER_PARAMETER,
) -> Selection:
    """Choose rows, drivers and quantile of one group; `group` has ts, y and one float column per driver.

    `covariates` are those of the drivers that are only adjusted for; `wanted` is how many tail rows slopes want, and
    `per_parameter` how many each slope does.

    `per_window` skips the quantile's ladder: the rows are windows, their target is already a P99.
    """
    notes: list[str] = []
    present = _present(group, drivers, covariates, notes, auto=auto)
    rows, dropped = _complete(group, present)
    varying = [name for name in present if not _constant(rows, name)]
    if constant := [name for name in present if name not in varying]:
        notes.append(f"{listed(constant)} left out: constant over the {rows.height} requests")
    enough = wanted if auto else min(wanted, _TAIL_ROWS_PER_PARAMETER * (len(varying) + 1))
    chosen, low = (tau, False) if per_window else _choose_tau(rows.height, tau, enough, wanted)
    if chosen is None:
        lowest = min(tau, _LADDER[-1])
        refusal = (
            f"not enough requests: {rows.height} have {tail_rows(rows.height, lowest):.0f} tail rows even at tau "
            f"{lowest:g}, slopes need {_TAIL_ROWS_LEAST}"
        )
        return Selection(rows, tau, dropped=dropped, notes=tuple(notes), refusal=refusal)
    if chosen != tau:
        notes.append(
            f"not enough tail rows: {tail_rows(rows.height, tau):.0f} of {wanted} at tau {tau:g}; "
            f"fitted at tau {chosen:g} instead"
        )
    if all(name in covariates for name in varying):
        return Selection(rows, chosen, dropped=dropped, notes=tuple(notes), refusal="no driver with values that vary")
    room = round(rows.height if per_window else tail_rows(rows.height, chosen)) // per_parameter - 1
    apart = separate(rows, varying, chosen, max(room, 1), covariates)
    return Selection(
        rows=rows,
        tau=chosen,
        names=apart.names,
        matrix=apart.matrix,
        players=apart.players,
        adjusted=tuple(i for i in range(len(apart.names)) if all(i not in columns for _, columns in apart.players)),
        inflation=apart.inflation,
        dropped=dropped,
        notes=(*notes, *apart.notes),
        low_confidence=low,
        candidates=tuple(varying),
    )


def tail_rows(n: int, tau: float) -> float:
    """Rows beyond the quantile, on the side that has fewer."""
    return round(n * min(tau, 1.0 - tau), 6)


def _choose_tau(n: int, tau: float, enough: int, wanted: int) -> tuple[float | None, bool]:
    """Highest quantile not above tau with `enough` tail rows; True where these are fewer than `wanted`.

    Drivers that a person named are fitted at the quantile asked for down to 10 tail rows a parameter.
    """
    steps = [tau, *(step for step in _LADDER if step < tau)]
    for step in steps:
        if tail_rows(n, step) >= enough - 0.5:  # 49.6 rows are 50
            return step, tail_rows(n, step) < wanted - 0.5
    return (steps[-1], True) if tail_rows(n, steps[-1]) >= _TAIL_ROWS_LEAST else (None, True)


def _present(
    group: "pl.DataFrame", drivers: Sequence[str], covariates: Sequence[str], notes: list[str], *, auto: bool
) -> list[str]:
    kept = []
    for name in drivers:
        share = 1.0 - group[name].null_count() / max(group.height, 1)
        named = not auto and name not in covariates
        if share >= _LEAST_COVERAGE or (share > 0 and named):
            kept.append(name)
        elif share > 0 or named:
            notes.append(f"{name} left out: {share:.0%} of requests have a value")
    return kept


def _complete(group: "pl.DataFrame", names: Sequence[str]) -> tuple["pl.DataFrame", tuple[tuple[str, int], ...]]:
    missing = tuple((f"no {name}", group[name].null_count()) for name in names if group[name].null_count())
    return group.drop_nulls(list(names)) if names else group, missing


def _constant(rows: "pl.DataFrame", name: str) -> bool:
    return bool(constant_columns(rows[name].to_numpy().astype(np.float64)[:, None]))
