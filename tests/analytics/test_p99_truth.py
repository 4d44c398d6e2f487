"""Simulated truth in small: the benchmark of accuracy with fewer windows and runs, held to its must-criteria."""

import pytest

from benchmarks.accuracy.p99 import CAUSES, Scenario, judge, no_effect_covers_zero, slopes_cover, true_effects


@pytest.mark.parametrize("cause", CAUSES)
def test_the_driver_with_the_largest_true_effect_has_the_largest_estimate(cause: str) -> None:
    scenario = Scenario(cause)
    effects = true_effects(scenario, 60_000)
    assert max(effects, key=lambda name: effects[name]) == cause
    found = judge(scenario, 3, effects, windows=240)
    assert found.by_effect
    assert found.by_share
    assert 0.5 < found.ratio < 1.6
    assert abs(found.coverage - 0.99) <= 0.012 or found.verdict != "ok"


def test_limits_of_a_slope_hold_its_true_value() -> None:
    held, width, worth = slopes_cover(12, 100, 40, 0.5, 0.9)
    assert held >= 0.75  # of 12 runs at .95, fewer hold it once in 400
    assert width < 0.35
    assert worth > 20


def test_limits_of_a_driver_without_effect_hold_zero() -> None:
    slope, share = no_effect_covers_zero(3)
    assert slope >= 0.6
    assert share == 1.0
