"""Statistics of comparisons beside second implementations, and under their own promises."""

import numpy as np
import pytest
from scipy.stats import levene
from scipy.stats.mstats import hdquantiles

from analytics.stats.harrell_davis import quantile, resampled
from analytics.stats.proportion import newcombe
from analytics.stats.sequential import always_valid_p, log_ratio
from analytics.stats.two_way import about_median, analyse


@pytest.mark.parametrize("n", [3, 50, 2_000])
def test_harrell_davis_quantiles_are_those_of_scipy(n: int) -> None:
    values, taus = np.random.default_rng(n).lognormal(size=n), (0.5, 0.9, 0.99)
    np.testing.assert_allclose([quantile(values, tau) for tau in taus], hdquantiles(values, taus), rtol=1e-9)


@pytest.mark.parametrize("counts", [(82, 100, 97, 100), (0, 50, 3, 40), (10, 10, 10, 10), (1_900, 2_000, 1_960, 2_000)])
def test_newcombe_limits_are_those_of_statsmodels(counts: tuple[int, int, int, int]) -> None:
    from statsmodels.stats.proportion import confint_proportions_2indep

    hits_a, n_a, hits_b, n_b = counts
    wanted = confint_proportions_2indep(hits_b, n_b, hits_a, n_a, method="newcomb")
    np.testing.assert_allclose(newcombe(hits_a, n_a, hits_b, n_b), wanted, atol=1e-9)


def test_looking_every_500_requests_gives_at_most_5_percent_false_alarms_in_1000_runs() -> None:
    rng = np.random.default_rng(0)
    looks = np.arange(500, 20_001, 500)
    a, b = (rng.binomial(500, 0.01, (1_000, looks.size)).cumsum(axis=1) for _ in "ab")
    alarms = sum(always_valid_p(log_ratio(x, looks, y, looks))[-1] <= 0.05 for x, y in zip(a, b, strict=True))
    assert alarms <= 50


def test_a_doubled_tail_is_found_and_its_p_never_rises() -> None:
    looks = np.arange(500, 20_001, 500)
    p = always_valid_p(log_ratio(looks * 0.01, looks, looks * 0.02, looks))
    assert p[-1] < 0.001
    assert (np.diff(p) <= 0).all()


def test_unbalanced_cells_give_the_table_of_statsmodels() -> None:
    import polars as pl
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(1)
    a, b = rng.choice(3, 90, p=[0.5, 0.3, 0.2]), rng.integers(0, 2, 90)
    y = rng.normal(size=90) + a + 2.0 * b * (a == 1)
    rows = pl.DataFrame({"y": y, "a": a, "b": b}).to_dict(as_series=False)
    fit = ols("y ~ C(a, Sum) * C(b, Sum)", {name: np.asarray(column) for name, column in rows.items()}).fit()
    for robust in (None, "hc3"):
        table = anova_lm(fit, typ=3, robust=robust)
        found = analyse(y, a, b, robust=robust is not None)
        np.testing.assert_allclose([t.f for t in found], table["F"].to_numpy()[1:4], rtol=1e-6)
        np.testing.assert_allclose([t.p for t in found], table["PR(>F)"].to_numpy()[1:4], rtol=1e-6, atol=1e-12)


def test_distances_from_cell_medians_are_those_of_levene() -> None:
    from scipy.stats import f_oneway

    rng = np.random.default_rng(2)
    a, b = np.repeat([0, 0, 1, 1], 30), np.repeat([0, 1, 0, 1], 30)
    y = rng.normal(size=120) * (1 + a + b)
    groups = [(a == i) & (b == j) for i in (0, 1) for j in (0, 1)]
    away = about_median(y, a, b)
    wanted = levene(*(y[g] for g in groups), center="median")
    assert f_oneway(*(away[g] for g in groups)).statistic == pytest.approx(wanted.statistic)


def test_a_cell_with_one_row_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        analyse(np.arange(5.0), np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1]))


def test_a_resample_is_the_quantile_of_the_values_it_drew() -> None:
    rng = np.random.default_rng(3)
    values, cell = rng.lognormal(size=4_000), rng.integers(0, 40, 4_000)
    counts = rng.multinomial(40, np.full(40, 1 / 40), 20).astype(float)
    for tau in (0.5, 0.9, 0.99):
        found = resampled(values, cell, counts, tau, 2.0)
        drawn = [quantile(np.repeat(values, row[cell].astype(int)), tau) for row in counts]
        np.testing.assert_allclose(found, drawn, rtol=0.003)
