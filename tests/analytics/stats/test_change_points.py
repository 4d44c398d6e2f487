import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.stats.change_points import kernel_change_points


def stepped(rng: np.random.Generator, levels: list[float], each: int = 20, noise: float = 0.05) -> np.ndarray:
    return np.repeat(levels, each) + rng.normal(0, noise, each * len(levels))


def test_a_step_is_found_where_it_is_and_noise_has_none():
    rng = np.random.default_rng(1)
    rows = np.array([stepped(rng, [0.0, 0.25, 0.25]), rng.normal(0, 0.05, 60)])
    found = kernel_change_points(rows, penalty=6.0)
    assert found[0].tolist() == [20]
    assert found[1].tolist() == []


@pytest.mark.parametrize("seed", range(20))
def test_changes_are_those_of_an_independent_implementation(seed: int):
    ruptures = pytest.importorskip("ruptures", reason="no wheel for this Python")
    rng = np.random.default_rng(seed)
    row = stepped(rng, list(rng.normal(0, 0.3, 3)))
    peer = ruptures.KernelCPD("rbf", min_size=3).fit(row).predict(pen=5.0)[:-1]
    assert kernel_change_points(row[None], penalty=5.0)[0].tolist() == peer


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 100), st.floats(-1000, 1000))
def test_unit_and_origin_do_not_matter(seed: int, scale: float, origin: float):
    row = stepped(np.random.default_rng(seed), [0.0, 1.0])
    assert (
        kernel_change_points(row[None], 5.0)[0].tolist()
        == kernel_change_points(row[None] * scale + origin, 5.0)[0].tolist()
    )


def test_rows_do_not_depend_on_each_other_and_constant_or_short_ones_have_no_change():
    rng = np.random.default_rng(3)
    rows = np.array([stepped(rng, [0.0, 1.0]), np.full(40, 2.5)])
    both = kernel_change_points(rows, 5.0)
    assert both[0].tolist() == kernel_change_points(rows[:1], 5.0)[0].tolist() == [20]
    assert both[1].tolist() == []
    assert [f.tolist() for f in kernel_change_points(np.zeros((2, 4)), 1.0)] == [[], []]
