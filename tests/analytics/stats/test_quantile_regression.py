"""Exact quantile regression: against a linear program, statsmodels, and known truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.stats import quantile_regression
from analytics.stats.quantile_regression import DIRECT_ROWS, fit, fit_smallest
from analytics.stats.smoothed import Array


def sample(n: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.gamma(2, 100, n), rng.poisson(0.5, n), rng.random(n)])
    return design, 1 + 0.01 * design[:, 1] + 2 * design[:, 2] + rng.lognormal(0, 1, n) * (1 + design[:, 3])


def linear_program(design: Array, y: Array, tau: float) -> float:
    """Least check loss, by HiGHS."""
    from scipy.optimize import linprog
    from scipy.sparse import csc_matrix, eye, hstack

    n, p = design.shape
    cost = np.r_[np.zeros(p), np.full(n, tau), np.full(n, 1 - tau)]
    bounds = [(None, None)] * p + [(0, None)] * (2 * n)
    equal = hstack([csc_matrix(design), eye(n), -eye(n)], format="csc")
    return float(linprog(cost, A_eq=equal, b_eq=y, bounds=bounds, method="highs").fun)


@pytest.mark.parametrize("tau", [0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("kind", ["continuous", "tied", "heavy"])
def test_the_loss_is_that_of_the_linear_program(tau: float, kind: str) -> None:
    design, y = sample(400)
    if kind == "tied":
        design, y = np.round(design), np.round(y)
    if kind == "heavy":
        y = y + np.random.default_rng(1).pareto(0.8, y.size) * 100
    found = fit(design, y, tau)
    assert found.exact
    assert found.loss == pytest.approx(linear_program(design, y, tau), rel=1e-8)


def test_coefficients_are_those_of_a_tight_statsmodels_fit() -> None:
    from statsmodels.regression.quantile_regression import QuantReg

    design, y = sample(4_000)
    peer = QuantReg(y, design).fit(q=0.9, p_tol=1e-10, max_iter=5_000)
    assert fit(design, y, 0.9).coefficients == pytest.approx(peer.params, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("tau", [0.5, 0.99])
def test_globbing_gives_what_fitting_all_rows_gives(tau: float, monkeypatch: pytest.MonkeyPatch) -> None:
    design, y = sample(8 * DIRECT_ROWS)
    globbed = fit(design, y, tau)
    monkeypatch.setattr(quantile_regression, "DIRECT_ROWS", y.size)
    direct = fit(design, y, tau)
    assert globbed.exact
    assert globbed.coefficients == pytest.approx(direct.coefficients, rel=1e-9, abs=1e-9)
    assert globbed.loss == pytest.approx(direct.loss, rel=1e-12)


def test_globbing_copes_with_quantised_and_infinite_variance_latencies() -> None:
    design, y = sample(6 * DIRECT_ROWS)
    for values in (np.round(y), y + np.random.default_rng(2).pareto(0.8, y.size) * 1e3, np.round(y * 0)):
        found = fit(design, values, 0.99)
        assert found.exact
        assert found.below >= 0.99 - 1e-9


def test_the_share_below_and_the_subgradient_prove_the_optimum() -> None:
    design, y = sample(30_000)
    found = fit(design, y, 0.99)
    p = design.shape[1]
    assert 0 <= found.below - 0.99 <= p / y.size
    assert found.subgradient <= p


def test_known_slopes_come_back() -> None:
    design, y = sample(200_000)
    slopes = fit(design, y, 0.5).coefficients
    assert slopes[1:] == pytest.approx([0.01, 2.0, 1.0], rel=0.05)


def test_an_intercept_alone_is_the_order_statistic() -> None:
    y = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    assert fit(np.ones((5, 1)), y, 0.5).coefficients[0] == 3.0
    assert fit_smallest(y, 0.5).coefficients[0] == 3.0
    assert fit_smallest(y, 0.5).loss == pytest.approx(fit(np.ones((5, 1)), y, 0.5).loss)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(8, 60),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.floats(0.1, 100),
    st.floats(-5, 5),
)
def test_the_fit_follows_a_change_of_scale_and_place(seed: int, n: int, tau: float, scale: float, place: float) -> None:
    rng = np.random.default_rng(seed)
    design, y = np.column_stack([np.ones(n), rng.normal(size=(n, 2))]), rng.normal(size=n)
    plain, moved = fit(design, y, tau), fit(design, scale * y + place * design[:, 1], tau)
    assert moved.loss == pytest.approx(scale * plain.loss, rel=1e-7, abs=1e-9)
    assert moved.exact


def test_a_quantile_outside_its_range_and_too_few_rows_are_refused() -> None:
    design, y = sample(10)
    with pytest.raises(ValueError, match="between 0 and 1"):
        fit(design, y, 1.0)
    with pytest.raises(ValueError, match="coefficients"):
        fit(design[:3], y[:3], 0.5)


@pytest.mark.parametrize("n", [200, 100_000])
def test_values_that_follow_a_law_exactly_give_that_law_at_once(n: int):
    from analytics.stats.block_bootstrap import refit

    x = np.arange(n, dtype=float) % 1024
    design = np.column_stack([np.ones(n), x, (7 * x) % 13])
    y = 0.1 + x / 1000
    found = fit(design, y, 0.99)
    assert found.coefficients == pytest.approx([0.1, 0.001, 0.0], abs=1e-9)
    assert found.loss == pytest.approx(0.0, abs=1e-6)
    cell = np.arange(n) * 50 // n
    again = refit(design, y, cell, 0.99, found.coefficients, np.ones((5, 50)))
    assert again.coefficients == pytest.approx(np.tile(found.coefficients, (5, 1)))


def test_many_ties_among_few_values_end_soon():
    rng = np.random.default_rng(3)
    n = 60_000
    x = rng.integers(0, 8, n).astype(float)
    design = np.column_stack([np.ones(n), x])
    y = np.round(0.1 + 0.05 * x + rng.gamma(2.0, 0.1, n), 1)
    found = fit(design, y, 0.99)
    assert 0.98 <= found.below <= 1.0


@pytest.mark.parametrize("n", [2_000, 40_000])
def test_where_the_search_begins_changes_nothing(n: int) -> None:
    design, y = sample(n)
    plain = fit(design, y, 0.99)
    for near in (np.zeros(4), np.array([*fit(design[:, :3], y, 0.99).coefficients, 0.0]), plain.coefficients):
        again = fit(design, y, 0.99, near)
        assert again.exact
        assert again.coefficients == pytest.approx(plain.coefficients, rel=1e-9, abs=1e-9)


def test_a_column_that_rarely_moves_is_fitted_although_a_subsample_misses_it() -> None:
    design, y = sample(60_000)
    rare = np.zeros(y.size)
    rare[[5, 20_001, 40_002, 59_000]] = 1.0
    found = fit(np.column_stack([design, rare]), y + 50.0 * rare, 0.9)
    assert found.exact
    assert found.coefficients[-1] > 40.0
