"""The baseline finds what changed as soon as science says it can, stays calm otherwise, and sees the past alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analytics.cost.seasonal import OF_DAY, OF_WEEK, Calendar, Judged, Walk, median
from analytics.stats.smoothed import Array
from benchmarks.accuracy import cost as simulated

SERIES = 40


def walked(costs: Array) -> Judged:
    hour = np.arange(len(costs))
    return Walk(np.log(np.maximum(costs, 0) + 0.01), Calendar(hour // 24, hour % 24, 24)).through()


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], tuple[float, ...]]:
    return simulated.found(SERIES, 0.05, innovations=True)


def test_a_level_is_found_within_twelve_hours(found: dict[tuple[str, str], tuple[float, ...]]) -> None:
    share, delay, _ = found["seasonal (default)", "level +40 %"]
    assert share == 1.0
    assert delay <= 12
    assert found["rolling", "level +40 %"][1] > 24


def test_spikes_are_found_at_once_and_no_alarm_is_false(
    found: dict[tuple[str, str], tuple[float, ...]],
) -> None:
    assert found["seasonal (default)", "3 h spike +120 %"][0] >= 0.95
    assert found["seasonal (default)", "none"][0] <= 0.05


def test_a_trend_is_found_within_four_days(found: dict[tuple[str, str], tuple[float, ...]]) -> None:
    share, delay, _ = found["seasonal (default)", "trend +40 % a week"]
    assert share >= 0.95
    assert delay <= 100


def test_change_points_of_daily_costs_hit_and_do_not_cry_wolf() -> None:
    made = simulated.daily(SERIES)
    assert made["+25 %: found within 2 days"] >= 0.95
    assert max(value for name, value in made.items() if "false" in name) <= 0.05


def test_noisy_nights_and_few_requests_do_not_alert() -> None:
    noises = simulated.noises(np.random.default_rng(7), 20)
    for name in ("independent, 5 % by day and 15 % by night", "about 1,000 requests an hour (Poisson)"):
        assert simulated.episodes_per_week(simulated.seasonal(noises[name])[336:]) <= 0.05, name


def test_nothing_after_an_hour_takes_part_in_its_judgement() -> None:
    costs = simulated.usual(np.random.default_rng(0), 5, 0.1)
    other = costs.copy()
    other[1000:] *= 3
    one, two = walked(costs), walked(other)
    for name in ("expected", "sigma", "score", "spike", "told"):
        assert np.array_equal(getattr(one, name)[:1000], getattr(two, name)[:1000], equal_nan=True), name


def test_series_do_not_touch_each_other() -> None:
    costs = simulated.usual(np.random.default_rng(1), 6, 0.1)
    costs[1000:1005, 2] *= 5
    costs[1100:, 3] = 0
    together, alone = walked(costs), walked(costs[:, 2:3])
    assert np.allclose(together.score[:, 2], alone.score[:, 0], equal_nan=True)


def test_the_basis_gets_better_as_history_grows() -> None:
    basis = walked(simulated.usual(np.random.default_rng(2), 1, 0.05)).basis[:, 0]
    assert basis[:24].max() == 0
    assert set(basis[5 * 24 : 6 * 24]) == {OF_DAY}
    assert set(basis[20 * 24 :]) == {OF_WEEK}


def test_what_is_unusual_stays_out_of_the_baseline() -> None:
    costs = simulated.usual(np.random.default_rng(3), 1, 0.05)
    spiked = costs.copy()
    spiked[35 * 24 + 5] *= 20
    before, after = walked(costs).expected[42 * 24 + 5, 0], walked(spiked).expected[42 * 24 + 5, 0]
    assert after == pytest.approx(before, abs=0.05)


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, (5, 4), elements=st.one_of(st.floats(-1e6, 1e6), st.just(float("nan")))))
def test_the_median_is_numpys_without_what_is_missing(values: Array) -> None:
    made, n = median(values)
    assert np.array_equal(n, (~np.isnan(values)).sum(axis=0))
    known = n > 0
    assert np.allclose(made[known], np.nanmedian(values[:, known], axis=0))
    assert np.isnan(made[~known]).all()
