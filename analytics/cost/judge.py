"""Judge a grid by one of the methods: its drifts, and the band that every bucket is held against."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import polars as pl

from analytics.cost import CostParams, episodes, rolling, tariff
from analytics.cost.changes import Change, restarts
from analytics.cost.episodes import LEVEL, STOPPED, TREND, Drift
from analytics.cost.grid import Grid
from analytics.cost.seasonal import LEAST, LEAST_DAYS, SETTLED, SPIKE, Calendar, Flags, Judged, Walk
from analytics.cost.steps import Step, steps
from analytics.stats.smoothed import Array

NEAR = 3
"""Days by which a change point may miss a drift that was seen as it happened."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Drifts of a grid, the bands of its judged buckets (rows up to `grid.until`), and what to say beside them."""

    grid: Grid
    drifts: list[Drift]
    expected: Array
    low: Array
    high: Array
    score: Array
    notes: list[str]


def floor_of(params: CostParams) -> float:
    """Return the amount added before logs are taken: a hundredth of what matters, so that zeros have one."""
    return max(0.01 * params.least_money, 1e-6)


def judge(grid: Grid, params: CostParams, planned: Sequence[Change]) -> Verdict:
    """Judge by the method asked for."""
    if params.method == "rolling":
        return _rolling(grid, params)
    floor = floor_of(params)
    judged = _walk(grid, floor, planned)
    found = episodes.drifts(grid, judged, floor, params.least_money, params.least_percent / 100.0)
    found, jobs = episodes.weekly(grid, judged, episodes.without_weekends(grid, found))
    found = _with_steps(grid, found, steps(grid, floor), params)
    found, tiers = _without_tiers(grid, found, params)
    notes = []
    if jobs:
        notes.append(f"{jobs} spikes came again a week later at the same hour: a weekly job, no drift")
    if tiers:
        notes.append(f"{tiers} drifts begin with a month whose prices start again with their first tier: no drift")
    low, high = (np.maximum(np.exp(judged.expected + sign * SPIKE * judged.sigma) - floor, 0.0) for sign in (-1, 1))
    expected = np.maximum(np.exp(judged.expected) - floor, 0.0)
    return Verdict(grid, found, expected, low, high, judged.score, [*notes, *_short(grid)])


def _walk(grid: Grid, floor: float, planned: Sequence[Change]) -> Judged:
    until = slice(0, grid.until)
    logs = np.log(np.maximum(grid.values[until], 0.0) + floor)
    calendar = Calendar(grid.calendar.day[until], grid.calendar.slot[until], grid.calendar.slots)
    left_out, forget = _planned(grid, planned)
    return Walk(logs, calendar, left_out[until], forget).through()


def _planned(grid: Grid, planned: Sequence[Change]) -> tuple[Flags, dict[int, list[int]]]:
    """Return the buckets in which a change of their series is going on, and from which day one counts anew."""
    left_out = np.zeros(grid.values.shape, bool)
    forget: dict[int, list[int]] = {}
    if not planned or not grid.starts:
        return left_out, forget
    starts = np.array(grid.starts, dtype="datetime64[us]")
    for series, key in enumerate(grid.keys):
        labels = {name: str(value) for name, value in key.items()}
        for change in planned:
            if change.concerns(labels):
                left_out[(starts >= _naive(change.start)) & (starts < _naive(change.end)), series] = True
        for at in restarts(planned, labels):
            row = int(np.searchsorted(starts, _naive(at)))
            if 0 < row < len(starts):
                forget.setdefault(int(grid.calendar.day[row]), []).append(series)
    return left_out, forget


def _naive(at: datetime) -> np.datetime64:
    return np.datetime64(at.astimezone(UTC).replace(tzinfo=None), "us")


def _short(grid: Grid) -> list[str]:
    """Say which series have too little history to be judged."""
    hourly = grid.grain == "hour"
    least, unit = (LEAST[1], "h") if hourly else (LEAST_DAYS, "d")
    known = np.isfinite(grid.values[: grid.until]).sum(axis=0)
    short = np.flatnonzero(known <= least).tolist()
    named = [f"{name_of(grid, i)}: insufficient history ({known[i]} {unit})" for i in short[:5]]
    more = [f"and {len(short) - 5} more"] if len(short) > 5 else []
    return [f"{', '.join(named + more)}; a baseline needs more than {least} {unit}"] if short else []


def name_of(grid: Grid, series: int) -> str:
    """Name a series by its labels."""
    key = grid.keys[series]
    values = [str(v) for name, v in key.items() if name not in ("currency", "basis") and v]
    return " ".join(values) or f"all {key['currency'] or 'cost'}"


def _with_steps(grid: Grid, found: list[Drift], later: list[Step], params: CostParams) -> list[Drift]:
    """Use what change points of whole days say: several one way are a trend; one that nothing else saw is a level."""
    days = grid.calendar.day[: grid.until]
    made = list(found)
    for group in _same_way(later):
        first = int(np.searchsorted(days, group[0].day))
        near = [i for i, one in enumerate(made) if one.series == group[0].series and _meets(one, group, days)]
        if near:
            one = made[near[0]]
            if len(group) > 1 and one.kind == LEVEL:
                made[near[0]] = replace(one, kind=TREND)
        elif first < len(days):
            added = _added(grid, group, first)
            if abs(added.impact) >= params.least_money and abs(added.ratio or 0.0) >= params.least_percent / 100.0:
                made.append(added)
    return made


def _same_way(found: list[Step]) -> list[list[Step]]:
    """Group the steps of a series that follow each other in one direction."""
    groups: list[list[Step]] = []
    for step in sorted(found, key=lambda one: (one.series, one.day)):
        last = groups[-1][-1] if groups else None
        if last is not None and last.series == step.series and (last.size > 0) == (step.size > 0):
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def _meets(one: Drift, group: Sequence[Step], days: np.ndarray) -> bool:
    if (one.impact > 0) != (group[0].size > 0):
        return False
    low, high = int(days[one.first]) - NEAR, int(days[one.last]) + NEAR
    return any(low <= step.day <= high for step in group)


def _added(grid: Grid, group: Sequence[Step], first: int) -> Drift:
    """Return a drift that only whole days show: against the level before it, up to the newest bucket or seven days."""
    series, size = group[0].series, sum(step.size for step in group)
    days = grid.calendar.day[: grid.until]
    end = min(len(days), int(np.searchsorted(days, group[-1].day + SETTLED)))
    cost = np.nan_to_num(grid.values[first:end, series])
    expected = cost / np.exp(np.where(days[first:end] >= group[-1].day, size, group[0].size))
    impact, total = float((cost - expected).sum()), float(expected.sum())
    settled = end - 1 if end < len(days) else None
    limits = tuple(float(np.expm1(value)) for value in (size, size + group[-1].low - group[-1].size,
                                                        size + group[-1].high - group[-1].size))  # fmt: skip
    return Drift(
        series, first, end - 1, TREND if len(group) > 1 else LEVEL, impact, impact / total if total > 0 else None,
        total / max(cost.size, 1), None, "daily level before, weekdays evened out", settled is None,
        (limits[0], limits[1], limits[2]), settled, "change points",
    )  # fmt: skip


def _without_tiers(grid: Grid, found: list[Drift], params: CostParams) -> tuple[list[Drift], int]:
    """Leave out drifts that graduated prices at the start of a month account for."""
    kept = []
    for one in found:
        if one.impact > 0 and one.kind != STOPPED and "quantity" in grid.lines.columns:
            rest = one.impact - _tiers(grid, one, params)
            usual = one.expected * (one.last - one.first + 1)
            if rest < params.least_money or (usual > 0 and rest / usual < params.least_percent / 100.0):
                continue
        kept.append(one)
    return kept, len(found) - len(kept)


def _tiers(grid: Grid, one: Drift, params: CostParams) -> float:
    if not tariff.begins_a_month(grid.starts[one.first], params.zone):
        return 0.0
    part = grid.lines.filter(pl.col("series") == one.series).with_columns(pl.col("at").alias("bucket"))
    return tariff.part_of(part, grid.starts[one.first], grid.end(one.last), params.zone)


def _rolling(grid: Grid, params: CostParams) -> Verdict:
    bands = rolling.bands(grid, params.k, [rolling.parse(text) for text in params.kinds])
    rows = slice(0, grid.until)
    mean, spread = bands.mean[rows], bands.deviation[rows] * bands.k
    with np.errstate(divide="ignore", invalid="ignore"):
        score = (grid.values[rows] - mean) / bands.deviation[rows]
    found = rolling.drifts(grid, bands)
    return Verdict(grid, found, mean, np.maximum(mean - spread, 0.0), mean + spread, score, _short(grid))
