"""Value novelty: a plain second implementation, and laws: no look-ahead, no matter of scale."""

import math

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from analytics.detect.novelty import Floats, logarithmic, nearest_before, ranges, scores

VALUES = arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=st.sampled_from(
    [0.0, 1.0, 1.5, 2.0, -3.0, 7.0, 1e6, math.nan]
))  # fmt: skip
SERIES = arrays(np.float64, st.tuples(st.integers(60, 160), st.integers(1, 2)), elements=st.floats(-1e6, 1e6, width=32))


def plainly(values: Floats, groups: np.ndarray) -> Floats:
    """Distance to the nearest earlier value of the group, by looking at each."""
    out = np.full_like(values, np.nan)
    for column in range(values.shape[1]):
        for at, value in enumerate(values[:, column]):
            before = [
                abs(value - other)
                for i, other in enumerate(values[:at, column])
                if not math.isnan(other) and groups[i, column] == groups[at, column]
            ]
            if not math.isnan(value):
                out[at, column] = min(before, default=math.inf)
    return out


@given(VALUES, st.integers(1, 3))
@settings(deadline=None)
def test_the_nearest_value_before_is_the_one_that_looking_at_each_finds(values: Floats, parts: int) -> None:
    groups = np.add.outer(np.arange(len(values)), np.arange(values.shape[1])) % parts
    np.testing.assert_array_equal(nearest_before(values, groups), plainly(values, groups))
    np.testing.assert_array_equal(nearest_before(values), plainly(values, np.zeros_like(groups)))


def hours(values: Floats) -> np.ndarray:
    return (np.arange(len(values)) // 2 % 24)[:, None]


@given(SERIES, st.integers(1, 59), st.floats(-1e6, 1e6))
@settings(deadline=None, max_examples=40)
def test_a_score_does_not_change_when_the_future_does(values: Floats, left: int, other: float) -> None:
    until = len(values) - left
    whole = scores(values, hours(values))
    np.testing.assert_array_equal(scores(values[:until], hours(values)[:until]), whole[:until])
    changed = values.copy()
    changed[until:] = other
    np.testing.assert_array_equal(scores(changed, hours(values))[:until], whole[:until])


@given(st.integers(0, 1000), st.sampled_from([2.0**-20, 0.25, 8.0, 2.0**30]))
@settings(deadline=None, max_examples=20)
def test_a_score_does_not_depend_on_the_unit(seed: int, factor: float) -> None:
    values = np.random.default_rng(seed).lognormal(0, 1, (400, 2))
    np.testing.assert_allclose(scores(factor * values, hours(values)), scores(values, hours(values)), atol=1e-9)


def test_series_do_not_see_each_other() -> None:
    values = np.random.default_rng(0).normal(size=(500, 4))
    together = scores(values, hours(values))
    alone = np.hstack([scores(values[:, [column]], hours(values)) for column in range(4)])
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_long_ranges_are_those_of_the_trailing_points() -> None:
    from analytics.detect.novelty import Settings

    values = np.random.default_rng(1).normal(size=(300, 2))
    found = ranges(values, Settings(range_points=50))
    for at in (1, 49, 50, 51, 120, 299):
        before = values[max(0, at - 50) : at]
        np.testing.assert_allclose(found[at], before.max(axis=0) - before.min(axis=0))


def test_a_value_far_from_all_before_scores_its_share_of_the_range() -> None:
    values = np.random.default_rng(2).uniform(0, 10, (3000, 1))
    values[2000] = 15.0
    found = scores(values, hours(values))[:, 0]
    assert found[2000] == found.max()
    assert 0.3 < found[2000] < 0.6


def test_a_series_of_one_value_or_of_none_has_no_scores() -> None:
    values = np.stack([np.full(300, 5.0), np.zeros(300), np.full(300, np.nan)], axis=1)
    assert not scores(values, hours(values)).any()
    assert np.isfinite(logarithmic(values[:, :2], 20)).all()
