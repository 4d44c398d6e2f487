"""Cuts into stretches: as few as trying all cuts finds, and the core in every one of them."""

from itertools import combinations

import numpy as np
import pytest

from analytics.tiers.lines import Array, lines
from analytics.tiers.segments import Segments


def drawn(seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    q = np.sort(rng.choice(np.arange(1, 300), 9, replace=False)).astype(float)
    c = np.interp(q, [0, 60, 150, 300], [0, 72, 150, 260]) if seed % 2 else q * rng.uniform(0.9, 1.1, 9)
    return q, np.round(c) - 0.501, np.round(c) + 0.501


def all_cuts(q: Array, low: Array, high: Array) -> list[tuple[tuple[int, int], ...]]:
    """Every cut into the fewest stretches, by trying."""
    n = q.size
    for k in range(n):
        found = []
        for ends in combinations(range(n - 1), k):
            starts = [0, *(end + 1 for end in ends)]
            cut = tuple(zip(starts, [*ends, n - 1], strict=True))
            if all(lines(q[a : b + 1], low[a : b + 1], high[a : b + 1]) is not None for a, b in cut):
                found.append(cut)
        if found:
            return found
    raise AssertionError("single points always fit")


@pytest.mark.parametrize("seed", range(30))
def test_cuts_are_the_fewest_and_cores_are_in_all(seed: int) -> None:
    q, low, high = drawn(seed)
    points, truth = Segments(q, low, high), all_cuts(*drawn(seed))
    assert set(points.cuts(10_000)) == set(truth)
    for k in range(len(points.late)):
        first, last = points.core(k)
        assert first == max(cut[k][0] for cut in truth)
        assert last == min(cut[k][1] for cut in truth)


def test_points_without_any_order_are_given_up() -> None:
    rng = np.random.default_rng(0)
    q = np.sort(rng.uniform(1, 100, 80))
    c = rng.uniform(0, 100, 80)
    assert Segments(q, c - 0.01, c + 0.01).late == []
