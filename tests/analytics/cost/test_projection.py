"""How days go on: within limits, with weekdays, after a new level, not after a spike."""

import numpy as np
import pytest

from analytics.cost.projection import fit, paths, weekday_factors
from analytics.stats.smoothed import Array

WEEK = np.array([1.1, 1.15, 1.15, 1.1, 1.0, 0.75, 0.75])


def simulated(days: int, seed: int, noise: float = 0.05) -> Array:
    """Daily costs with a weekly pattern and noise that follows itself (AR 0.5)."""
    rng = np.random.default_rng(seed)
    rest = np.zeros(days)
    for t in range(1, days):
        rest[t] = 0.5 * rest[t - 1] + rng.normal(0, noise * np.sqrt(0.75))
    return np.asarray(100 * WEEK[np.arange(days) % 7] * np.exp(rest))


def ahead(history: Array, days: int, restart: int = 0) -> Array:
    weekdays = [(history.size + i) % 7 for i in range(days)]
    return paths(fit(history, np.arange(history.size) % 7, restart), weekdays, 1.0).sum(axis=1)


def test_limits_hold_the_truth_as_often_as_they_say() -> None:
    hits, misses = [], []
    for seed in range(60):
        made = simulated(76, seed)
        drawn, truth = ahead(made[:56], 20), made[56:].sum()
        low, high = np.quantile(drawn, [0.1, 0.9])
        hits.append(low <= truth <= high)
        misses.append(abs(np.median(drawn) / truth - 1))
    assert 0.7 <= np.mean(hits) <= 0.98
    assert np.mean(misses) < 0.03


def test_it_is_nearer_than_the_mean_so_far_when_costs_grow() -> None:
    made = simulated(76, 3) * np.exp(0.007 * np.arange(76))
    truth = made[56:].sum()
    assert abs(np.median(ahead(made[:56], 20)) / truth - 1) < 0.5 * abs(made[:56].mean() * 20 / truth - 1)


def test_a_spike_is_no_level() -> None:
    calm, struck = simulated(56, 1), simulated(56, 1)
    struck[-2] *= 10
    assert np.median(ahead(struck, 20)) < 1.15 * np.median(ahead(calm, 20))


@pytest.mark.parametrize("since", [2, 5, 12])
def test_after_a_restart_only_the_new_level_counts(since: int) -> None:
    held, misses, blind = [], [], []
    for seed in range(20):
        made = simulated(76, seed)
        made[56 - since :] *= 1.4
        drawn, truth = ahead(made[:56], 20, restart=56 - since), made[56:].sum()
        held.append(np.quantile(drawn, 0.025) <= truth <= np.quantile(drawn, 0.975))
        misses.append(abs(np.median(drawn) / truth - 1))
        blind.append(abs(np.median(ahead(made[:56], 20)) / truth - 1))
    assert np.mean(held) >= 0.75
    assert np.mean(misses) < 0.06
    assert np.mean(misses) < np.mean(blind)


def test_weekdays_show_and_noise_alone_shows_none() -> None:
    assert np.abs(weekday_factors(simulated(56, 2), np.arange(56) % 7, 0) - WEEK).max() < 0.06
    flat = np.random.default_rng(0).lognormal(0, 0.3, 56)
    assert np.abs(weekday_factors(flat, np.arange(56) % 7, 0) - 1).max() < 0.2


def test_constant_zero_and_negative_days_give_finite_paths_with_the_share_of_today() -> None:
    for values in (np.full(30, 7.0), np.zeros(30), np.full(9, -2.0), np.where(np.arange(30) == 4, 900.0, 0.0)):
        drawn = paths(fit(values, np.arange(values.size) % 7), [1, 2, 3], 0.25)
        assert np.isfinite(drawn).all()
    constant = paths(fit(np.full(30, 8.0), np.arange(30) % 7), [1, 2], 0.25)
    assert np.allclose(np.median(constant, axis=0), [2.0, 8.0], rtol=0.02)


def test_costs_that_were_never_negative_are_not_forecast_to_be() -> None:
    rare = np.where(np.random.default_rng(1).uniform(size=40) < 0.2, 50.0, 0.0)
    assert paths(fit(rare, np.arange(40) % 7), [0] * 20, 1.0).min() >= 0.0
