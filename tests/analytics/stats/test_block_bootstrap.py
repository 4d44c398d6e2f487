"""Block bootstrap: draws blocks, agrees with exact refits, and its intervals cover the truth."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from analytics.stats.autocorrelation import block_length, block_stretch, effective_size, lag1
from analytics.stats.block_bootstrap import block_counts, interval, refit, share_interval
from analytics.stats.quantile_regression import fit
from analytics.stats.smoothed import Array

CELLS, PER_CELL = 240, 50


def autoregressive(rng: np.random.Generator, phi: float) -> Array:
    noise = rng.standard_normal(CELLS + 50)
    series = np.zeros(CELLS + 50)
    for i in range(1, CELLS + 50):
        series[i] = phi * series[i - 1] + np.sqrt(1 - phi**2) * noise[i]
    return series[50:]


def sample(rng: np.random.Generator, phi: float) -> tuple[Array, Array, NDArray[np.intp]]:
    """Requests in windows whose driver (slope 2 and 0.5) and noise are persistent."""
    cell = np.repeat(np.arange(CELLS), PER_CELL)
    n = cell.size
    design = np.column_stack([np.ones(n), 3 + autoregressive(rng, phi)[cell], rng.gamma(2, 1, n)])
    noise = 0.5 * autoregressive(rng, phi)[cell] + rng.lognormal(0, 0.8, n)
    return design, 2 * design[:, 1] + 0.5 * design[:, 2] + noise, cell.astype(np.intp)


def test_every_resample_draws_as_many_cells_as_there_are_in_whole_blocks() -> None:
    counts = block_counts(20, 4, 50, seed=3)
    assert counts.sum(axis=1).tolist() == [20.0] * 50
    assert (counts == block_counts(20, 4, 50, seed=3)).all()
    assert not (counts == block_counts(20, 4, 50, seed=4)).all()


def test_refits_agree_with_exact_fits_of_the_resampled_rows() -> None:
    design, y, cell = sample(np.random.default_rng(1), 0.5)
    best = fit(design, y, 0.9)
    counts = block_counts(CELLS, 8, 20, seed=0)
    moved = refit(design, y, cell, 0.9, best.coefficients, counts)
    for i, drawn in enumerate(counts):
        rows = np.repeat(np.arange(y.size), drawn[cell].astype(int))
        exact = fit(design[rows], y[rows] + 1e-9 * np.arange(rows.size), 0.9)
        error = moved.coefficients.std(axis=0)
        assert np.abs(moved.coefficients[i] - exact.coefficients) == pytest.approx(np.zeros(3), abs=float(error.max()))
        assert moved.losses[i] == pytest.approx(exact.loss, rel=0.003)


def test_intervals_of_slopes_cover_the_truth_where_noise_is_persistent() -> None:
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        design, y, cell = sample(rng, 0.5)
        best = fit(design, y, 0.95)
        residuals = y - design @ best.coefficients
        medians = np.median(residuals.reshape(CELLS, PER_CELL), axis=1)
        block = block_length(CELLS, lag1(design[::PER_CELL, 1]), lag1(medians))
        moved = refit(design, y, cell, 0.95, best.coefficients, block_counts(CELLS, block, 200, seed))
        low, high = interval(best.coefficients, moved.coefficients, CELLS / block)
        covered.append((low[1:] <= [2, 0.5]) & (high[1:] >= [2, 0.5]))
    assert 0.88 <= float(np.mean(covered)) <= 0.99


def test_a_share_that_is_noise_has_a_lower_limit_of_zero_and_a_clear_one_has_not() -> None:
    rng = np.random.default_rng(0)
    resampled = np.column_stack([np.abs(rng.normal(0.04, 0.03, 500)), rng.normal(0.8, 0.04, 500)])
    low, high = share_interval(np.array([0.02, 0.8]), resampled)
    assert low[0] == 0.0
    assert 0.7 < low[1] < 0.8 < high[1] < 0.9


def test_persistence_shrinks_the_effective_size_and_lengthens_the_blocks() -> None:
    assert effective_size(240, 0.0, 0.9) == 240
    assert effective_size(240, 0.9, 0.9) == pytest.approx(240 * 0.19 / 1.81)
    assert effective_size(240, -0.9, 0.9) == 240
    assert block_length(240, 0.0, 0.0) == 7  # the cube root
    assert block_length(240, 0.9, 0.9) > block_length(240, 0.5, 0.5)
    assert lag1(np.ones(5)) == 0.0
    assert lag1(np.array([1.0, -1.0] * 50)) == pytest.approx(-1.0, abs=0.02)


def test_blocks_that_are_short_for_the_persistence_make_an_error_too_small_by_the_factor_said() -> None:
    rng = np.random.default_rng(4)
    n, phi, block = 200_000, 0.8, 20
    series = lfilter([1.0], [1.0, -phi], rng.normal(size=n))
    means = series[: n // block * block].reshape(-1, block).mean(axis=1)
    seen = block * means.var()  # what blocks see of the long-run variance
    whole = series.var() * (1 + phi) / (1 - phi)
    assert np.sqrt(whole / seen) == pytest.approx(block_stretch(block, 1.0, phi), rel=0.03)
    assert block_stretch(block, 0.0, 0.9) == 1.0
    assert block_stretch(1, 0.999, 0.999) == pytest.approx(2.0)
