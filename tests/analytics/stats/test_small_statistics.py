"""Collinearity, order statistics, proportions and least squares against second implementations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.stats import collinearity
from analytics.stats.least_squares import fit_hac, unexplained
from analytics.stats.order_statistics import limit_ranks, quantile_limits
from analytics.stats.proportion import wilson
from analytics.stats.smoothed import Array


def test_variance_inflation_is_that_of_statsmodels() -> None:
    from statsmodels.stats.outliers_influence import variance_inflation_factor

    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(300, 3))
    matrix[:, 2] += 2 * matrix[:, 0]
    design = np.column_stack([np.ones(300), matrix])
    peer = [variance_inflation_factor(design, i) for i in (1, 2, 3)]
    assert collinearity.variance_inflation(matrix) == pytest.approx(peer)


def test_exact_multiples_inflate_without_end_and_constants_are_named() -> None:
    one = np.random.default_rng(0).normal(size=100)
    matrix = np.column_stack([one, 2 * one + 1, np.random.default_rng(1).normal(size=100)])
    inflation = collinearity.variance_inflation(matrix)
    assert np.isinf(inflation[:2]).all()
    assert inflation[2] == pytest.approx(1.0, abs=0.1)
    assert collinearity.groups(matrix, inflation, 10.0) == [[0, 1], [2]]
    assert collinearity.constant_columns(np.column_stack([one, np.full(100, 0.63)])) == [1]
    assert collinearity.usable_columns(np.column_stack([np.full(100, 0.63), matrix])) == ([1, 3], [0, 2])


def test_ranks_of_quantile_limits_are_binomial_quantiles() -> None:
    from scipy.stats import binom

    n = np.arange(1, 1500)
    for q in (0.5, 0.95, 0.99):
        low, high = limit_ranks(n, q)
        assert (low == binom.ppf(0.025, n, q)).all()
        assert (high == np.minimum(binom.ppf(0.975, n, q) + 1, n + 1)).all()


def test_six_values_have_no_upper_limit_of_their_p99() -> None:
    values = np.array([0.2, 0.21, 0.22, 0.25, 0.3, 9.0])
    low, high = quantile_limits(values, 0.99)
    assert low == 0.3
    assert high is None


@given(st.integers(1, 10_000), st.data())
def test_wilson_limits_hold_the_ratio_and_are_those_of_statsmodels(n: int, data: st.DataObject) -> None:
    from statsmodels.stats.proportion import proportion_confint

    hits = data.draw(st.integers(0, n))
    low, high = wilson(hits, n)
    assert 0 <= low <= hits / n + 1e-12
    assert hits / n - 1e-12 <= high <= 1
    assert (float(low), float(high)) == pytest.approx(proportion_confint(hits, n, method="wilson"), abs=1e-9)


def test_no_trials_have_no_limits() -> None:
    assert np.isnan(wilson(0, 0)).all()


def test_autocorrelation_robust_errors_are_wider_where_noise_persists() -> None:
    rng = np.random.default_rng(0)
    noise, driver = np.zeros(400), np.zeros(400)
    for i in range(1, 400):
        noise[i], driver[i] = 0.9 * noise[i - 1] + rng.normal(), 0.9 * driver[i - 1] + rng.normal()
    design = np.column_stack([np.ones(400), driver])
    short, long = fit_hac(design, driver + noise, 1), fit_hac(design, driver + noise, 20)
    assert long.high[1] - long.low[1] > 1.3 * (short.high[1] - short.low[1])
    assert long.low[1] < 1 < long.high[1]


def test_weighted_residual_sums_are_those_of_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    design, y = np.column_stack([np.ones(50), rng.normal(size=50)]), rng.normal(size=50)
    weights = rng.integers(0, 3, 50)
    rows = np.repeat(np.arange(50), weights)
    beta = np.linalg.lstsq(design[rows], y[rows], rcond=None)[0]
    direct = float(np.square(y[rows] - design[rows] @ beta).sum())
    assert unexplained(design, y, weights[None].astype(float))[0] == pytest.approx(direct)


def test_a_prior_estimated_from_the_cells_predicts_counts_better_than_an_assumed_one() -> None:
    from analytics.stats.negative_binomial import shrunk_ratio

    rng = np.random.default_rng(5)
    expected = rng.uniform(0.3, 8.0, (24, 168))
    ratio = rng.gamma(4.0, 0.25, expected.shape) * np.where(rng.random(expected.shape) < 0.01, 6.0, 1.0)
    seen, later = rng.poisson(ratio * expected).astype(float), rng.poisson(ratio * expected)

    def worth(found: Array) -> float:
        return float((later * np.log(found) - found * expected).sum())

    ours, assumed = shrunk_ratio(seen, expected), (seen + 1) / (expected + 1)
    assert worth(ours) > worth(assumed) + 50
    assert ours[ratio > 4].mean() > assumed[ratio > 4].mean()
    assert np.abs(np.log(ours[ratio < 1.5])).mean() < np.abs(np.log(assumed[ratio < 1.5])).mean()
    alone = shrunk_ratio(np.array([[3.0]]), np.array([[0.05]]))
    assert alone.item() == pytest.approx(4 / 1.05, rel=0.02)  # the assumed prior: a cell says nothing about its own
    assert np.isnan(shrunk_ratio(np.ones((1, 2)), np.array([[np.nan, 1.0]]))).tolist() == [[True, False]]
