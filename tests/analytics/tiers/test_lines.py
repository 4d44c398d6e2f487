"""Sets of lines: equal to what linear programs say, and the longest stretches to what trying says."""

import numpy as np
import pytest
from scipy.optimize import linprog

from analytics.tiers.lines import Array, lines, origin_reach, reach


def drawn(seed: int) -> tuple[Array, Array, Array]:
    """Points on a line, on a bent one, or near a line, rounded."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    q = np.sort(rng.choice(np.arange(1, 400), n, replace=False) / 400)
    c = rng.uniform(-0.5, 0.5) + rng.uniform(-1, 2) * q
    if seed % 3 == 1:
        c = c + rng.normal(0, 0.01, n)
    if seed % 3 == 2:
        c = np.minimum(c, c[-1] + 0.5 * (q - q[-1]))
    half = float(rng.choice([1e-3, 1e-2, 3e-2]))
    c = np.round(c / (2 * half)) * 2 * half
    half *= 1.0001
    return q, c - half, c + half


@pytest.mark.parametrize("seed", range(60))
def test_slopes_and_intercepts_are_those_of_the_linear_program(seed: int) -> None:
    q, low, high = drawn(seed)
    found = lines(q, low, high)
    rows = np.column_stack([q, np.ones_like(q)])
    ask = [
        linprog(v, A_ub=np.vstack([rows, -rows]), b_ub=np.concatenate([high, -low]), bounds=[(None, None)] * 2)
        for v in ([1, 0], [-1, 0], [0, 1], [0, -1])
    ]
    assert (found is not None) == (ask[0].status == 0)
    if found is not None:
        slopes, intercepts = [ask[k].x[0] for k in (0, 1)], [ask[k].x[1] for k in (2, 3)]  # type: ignore[index]
        assert found.slope == pytest.approx(slopes, abs=1e-7)
        assert found.intercept == pytest.approx(intercepts, abs=1e-7)
        assert np.all((found.middle()[1] + found.middle()[0] * q - low) >= -1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_the_longest_stretch_is_the_longest_that_has_a_line(seed: int) -> None:
    q, low, high = drawn(seed)
    for first in range(q.size):
        last = reach(q, low, high, first)
        assert lines(q[first : last + 1], low[first : last + 1], high[first : last + 1]) is not None
        if last + 1 < q.size:
            assert lines(q[first : last + 2], low[first : last + 2], high[first : last + 2]) is None
        end = origin_reach(q, low, high, first)
        ratios = [(low[first:k] / q[first:k]).max() <= (high[first:k] / q[first:k]).min() for k in (end + 1, end + 2)]
        assert ratios[0]
        assert end + 1 == q.size or not ratios[1]


def test_lines_through_zero_are_a_part_of_all_lines() -> None:
    q, c = np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])
    found = lines(q, c - 0.1, c + 0.1)
    assert found is not None
    assert found.through_origin() == pytest.approx((1.975, 2.025))
    assert found.slope == pytest.approx((2 - 0.2 / 3, 2 + 0.2 / 3))
    shifted = lines(q, c + 0.9, c + 1.1)
    assert shifted is not None
    assert shifted.through_origin() is None
