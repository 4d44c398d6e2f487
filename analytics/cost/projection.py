"""How daily amounts go on: a level that follows them, factors of the weekday, and paths drawn from past errors.

Exponential smoothing of amounts over weekday factors (Winters 1960, without trend). How fast the level follows is not
known from few weeks, so each speed counts by how well it foretold the week ahead. A slope that stands out of its own
error goes on as drift. A single day moves the level no farther than `_CLIP` times the usual error (Gelper, Fried &
Croux 2010): a spike is no level.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.stats.autocorrelation import lag1
from analytics.stats.smoothed import Array

LEAST_DAYS = 7
SEASON_DAYS = 14
DRIFT_DAYS = 14
PATHS = 1000
_ALPHAS = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65])
_SLOW = 0.1
_RARE = 0.3
"""Share of days without cost above which the days with cost are no outliers and the level is a slow mean."""
_CLIP = 2.5
_NEVER = 1e12
_BLOCK = 3
_RECENT = 84
_DRIFT = 0.7
_UNSEEN = 0.084
"""Slope per day, over the days known, that may go unseen: with 21 days 0.4 % a day. Without it, limits are too narrow
for costs that grow or wander (benchmarks/accuracy/cost_forecast.md)."""


@dataclass(frozen=True, slots=True)
class Fit:
    """State after the last day, per speed `alpha` with its weight; `errors` are those of each day (alphas, days)."""

    alphas: Array
    weights: Array
    levels: Array
    level_errors: Array
    errors: Array
    factors: Array
    drift: float
    drift_error: float
    floor: float


def fit(amounts: Array, weekdays: NDArray[np.int64], restart: int = 0) -> Fit:
    """Fit the amounts of consecutive days, whose level begins anew at index `restart`; at least LEAST_DAYS."""
    skip = max(0, min(amounts.size - _RECENT, restart))
    amounts, weekdays, restart = amounts[skip:], weekdays[skip:], restart - skip
    factors = weekday_factors(amounts, weekdays, restart)
    expected = factors[weekdays]
    rare = float((amounts == 0).mean()) > _RARE
    levels, errors, weight = _smooth(amounts, expected, restart, _NEVER if rare else _CLIP)
    chances = _slow() if rare else _chances(amounts, expected, levels, restart)
    if amounts.size < SEASON_DAYS:  # factors of a single week leave no error: that of days about their mean is wider
        errors = np.tile(amounts - amounts.mean(), (_ALPHAS.size, 1))
    warm = LEAST_DAYS if amounts.size >= SEASON_DAYS else 0
    own = errors[:, warm:] if amounts.size - restart < LEAST_DAYS + warm else errors[:, max(warm, restart) :]
    rho = np.clip([lag1(row) for row in own], 0.0, 0.8)
    spread = np.sqrt(np.mean(np.square(own), axis=1))
    widen = np.sqrt(own.shape[1] / max(own.shape[1] - 3.0, 1.0))
    own = np.stack([row - row.mean() + standing_out(row.mean(), _error(row)) for row in own])
    drift, drift_error = _drift(amounts[restart:], expected[restart:])
    unseen = _UNSEEN / amounts.size * abs(float(levels[:, -1].mean()))
    return Fit(
        _ALPHAS, chances, levels[:, -1], spread * widen * np.sqrt(weight * (1 + rho) / (1 - rho)), own * widen,
        factors, drift, float(np.hypot(drift_error, unseen)), min(0.0, float(amounts.min())),
    )  # fmt: skip


def weekday_factors(amounts: Array, weekdays: NDArray[np.int64], restart: int) -> Array:
    """Return seven factors whose mean is 1: medians of amount over the mean of the 7 days about it, drawn towards 1.

    Medians of few weeks are noisy: each factor keeps the share of its distance from 1 that is not explained by the
    spread within weekdays (James & Stein 1961). Below SEASON_DAYS they are as they were; about a level of 0 all are 1.
    """
    if amounts.size < SEASON_DAYS:
        return _as_they_were(amounts, weekdays)
    ratios, days = [], []
    for i in range(amounts.size):
        start = 0 if i < restart else restart
        end = restart if i < restart else amounts.size
        low = min(max(i - 3, start), max(end - 7, start))
        near = amounts[low : min(low + 7, end)]
        if near.size == 7 and near.mean() > 0:
            ratios.append(amounts[i] / near.mean())
            days.append(int(weekdays[i]))
    if len(ratios) < SEASON_DAYS - 1:
        return np.ones(7)
    of, at = np.array(ratios), np.array(days)
    raw = np.array([np.median(of[at == d]) if (at == d).any() else 1.0 for d in range(7)])
    count = np.array([max(int((at == d).sum()), 1) for d in range(7)])
    noise = float(np.mean(np.square(of - raw[at]))) * of.size / max(of.size - 7, 1)
    between = float(raw.var())
    keep = max(0.0, 1.0 - 0.8 * noise * float(np.mean(1.0 / count)) / between) if between > 0 else 0.0
    made = np.maximum(1.0 + keep * (raw - raw.mean()), 0.0)
    return np.asarray(made / made.mean())


def _as_they_were(amounts: Array, weekdays: NDArray[np.int64]) -> Array:
    """Return the mean of each weekday over the mean of all seven: in a single week the pattern is the best guess."""
    if len(set(weekdays.tolist())) < 7 or not amounts.mean() > 0:
        return np.ones(7)
    means = np.maximum([amounts[weekdays == day].mean() for day in range(7)], 0.0)
    return np.asarray(means / means.mean())


def _smooth(amounts: Array, expected: Array, restart: int, clip: float) -> tuple[Array, Array, Array]:
    """Return levels before each day and after the last, errors one day ahead, and the last squared weights.

    The level of the first days, and of the first days after a restart, is their mean.
    """
    levels, errors = np.zeros((_ALPHAS.size, amounts.size + 1)), np.zeros((_ALPHAS.size, amounts.size))
    level, spread, weight, since = np.zeros(_ALPHAS.size), np.zeros(_ALPHAS.size), np.ones(_ALPHAS.size), 0
    for t in range(amounts.size):
        if t in (0, restart):
            level, weight, since = (
                np.full(_ALPHAS.size, _first(amounts[t : t + 7], expected[t : t + 7])),
                np.ones(_ALPHAS.size),
                0,
            )
        since += 1
        levels[:, t], errors[:, t] = level, amounts[t] - level * expected[t]
        bounded = errors[:, t]
        if since > 3:
            bounded = np.clip(bounded, -clip * spread, clip * spread)
        size = 1.25 * np.abs(bounded)  # of a normal error, the mean absolute one is 0.8 of its spread
        spread = size if t == 0 else spread + max(0.1, 1.0 / (t + 1)) * (size - spread)
        step = np.maximum(_ALPHAS, 1.0 / since)
        level = level + step * bounded * expected[t] / max(expected[t] ** 2, 0.25)
        weight = (1.0 - step) ** 2 * weight + step**2
    levels[:, -1] = level
    return levels, errors, np.asarray(weight)


def _first(amounts: Array, expected: Array) -> float:
    return float(np.median(amounts[expected > 0] / expected[expected > 0])) if (expected > 0).any() else 0.0


def _chances(amounts: Array, expected: Array, levels: Array, restart: int) -> Array:
    """Weigh the speeds by the likelihood of their errors of the week ahead, as many as there are whole weeks."""
    span = 7
    starts = [t for t in range(span, amounts.size - span + 1) if not t - span < restart < t + span or restart == 0]
    if not starts:
        return _slow()
    ahead = [amounts[t : t + span].sum() - levels[:, t] * expected[t : t + span].sum() for t in starts]
    missed = np.mean(np.abs(np.array(ahead)), axis=0)
    best = missed.min()
    if best <= 0:
        return np.asarray(np.where(missed <= 0, 1.0, 0.0) / max(int((missed <= 0).sum()), 1))
    chance = (missed / best) ** -(1.0 + len(starts) / span)
    return np.asarray(chance / chance.sum())


def _slow() -> Array:
    """Return the weights where nothing tells the speed: those at which single days do not move the level far."""
    return np.asarray((_ALPHAS <= _SLOW) / (_ALPHAS <= _SLOW).sum())


def _drift(amounts: Array, expected: Array) -> tuple[float, float]:
    """Return the slope per day that is kept and its standard error, damped, since slopes seldom last."""
    if amounts.size < DRIFT_DAYS:
        return 0.0, 0.0
    t = np.arange(amounts.size) - (amounts.size - 1) / 2.0
    y = amounts / np.maximum(expected, 0.25)
    slope = float(t @ y / (t @ t))
    error = _error(y - y.mean() - slope * t) * float(np.sqrt(amounts.size / (t @ t)))
    kept = standing_out(slope, error)
    return _DRIFT * kept, _DRIFT * error * (kept / slope if slope else 0.0)


def _error(rest: Array) -> float:
    """Return the standard error of a mean, which grows with the autocorrelation."""
    rho = min(max(lag1(rest), 0.0), 0.9)
    return float(np.sqrt(rest.var() / max(rest.size - 2, 1) * (1 + rho) / (1 - rho)))


def standing_out(estimate: float, error: float) -> float:
    """Return what is kept of an estimate: nothing within two errors of 0, nearly all of it far from there."""
    return estimate * max(0.0, 1.0 - 4.0 * error**2 / estimate**2) if estimate else 0.0


def paths(fitted: Fit, weekdays: Sequence[int], first_share: float, seed: int = 0, count: int = PATHS) -> Array:
    """Draw amounts (count, days) of the days ahead; of the first only `first_share` is still to come.

    Weeks of past errors are drawn, so that errors that follow each other do, and each moves the level as a real one
    would; speed, level and drift are drawn too.
    """
    rng = np.random.default_rng(seed)
    ahead, days = len(weekdays), fitted.errors.shape[1]
    speed = np.sort(rng.choice(fitted.alphas.size, count, p=fitted.weights))
    starts = rng.integers(0, days, (count, -(-ahead // _BLOCK)))
    picks = ((starts[:, :, None] + np.arange(_BLOCK)) % days).reshape(count, -1)[:, :ahead]
    errors = fitted.errors[speed[:, None], picks]
    alpha = fitted.alphas[speed]
    bound = _CLIP * np.sqrt(np.mean(np.square(fitted.errors), axis=1))[speed]
    level = fitted.levels[speed] + fitted.level_errors[speed] * rng.standard_normal(count)
    drift = fitted.drift + fitted.drift_error * rng.standard_normal(count)
    made = np.empty((count, ahead))
    for h, weekday in enumerate(weekdays):
        made[:, h] = level * fitted.factors[weekday] + errors[:, h]
        level = level + drift + alpha * np.clip(errors[:, h], -bound, bound)
    made[:, 0] *= first_share
    return np.maximum(made, fitted.floor)
