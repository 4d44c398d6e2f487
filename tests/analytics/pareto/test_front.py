"""Fronts and hypervolumes: against second ways to compute them, and the laws they obey."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analytics.pareto.front import Array, contributions, dominators, hypervolume, on_front, worst_by

COORDINATES = st.integers(0, 12).map(float)
POINTS = st.integers(2, 3).flatmap(
    lambda d: st.integers(1, 8).flatmap(lambda n: arrays(np.float64, (n, d), elements=COORDINATES))
)


def by_inclusion_exclusion(points: Array, reference: Array) -> float:
    """Volume of a union of boxes, from all intersections."""
    total = 0.0
    for size in range(1, len(points) + 1):
        for some in combinations(range(len(points)), size):
            sides = np.maximum(reference - points[list(some)].max(axis=0), 0)
            total += (-1) ** (size + 1) * float(np.prod(sides))
    return total


def by_counting(points: Array, reference: Array) -> float:
    """Volume on a grid of whole numbers, cell by cell."""
    cells = np.stack(np.meshgrid(*[np.arange(0, r) for r in reference], indexing="ij"), axis=-1)
    cells = cells.reshape(-1, reference.size)
    return float((points[:, None, :] <= cells[None]).all(axis=2).any(axis=0).sum())


@given(POINTS)
def test_the_volume_is_that_of_all_intersections_and_of_counted_cells(points: Array) -> None:
    reference = np.full(points.shape[1], 10.0)
    found = hypervolume(points, reference)
    assert found == pytest.approx(by_inclusion_exclusion(points, reference))
    assert found == pytest.approx(by_counting(points, reference))


def test_the_volume_of_many_points_is_that_of_random_darts() -> None:
    rng = np.random.default_rng(0)
    for d in (2, 3):
        points = rng.uniform(0, 1, (40, d))
        darts = rng.uniform(0, 1, (200_000, d))
        share = (points[:, None, :] <= darts[None]).all(axis=2).any(axis=0).mean()
        assert hypervolume(points, np.ones(d)) == pytest.approx(share, abs=0.005)


@given(POINTS, st.integers(0, 7), st.lists(st.integers(0, 5), min_size=3, max_size=3))
def test_a_dominated_point_changes_nothing(points: Array, which: int, worse: list[int]) -> None:
    reference = np.full(points.shape[1], 20.0)
    beaten = points[which % len(points)] + np.array(worse[: points.shape[1]])
    more = np.vstack([points, beaten])
    assert hypervolume(more, reference) == hypervolume(points, reference)
    front = {tuple(p) for p in points[on_front(points)]}
    assert {tuple(p) for p in more[on_front(more)]} == front


@given(POINTS)
def test_the_front_is_what_trying_every_pair_leaves(points: Array) -> None:
    beaten = [
        any((q <= p).all() and (q < p).any() for j, q in enumerate(points) if j != i) for i, p in enumerate(points)
    ]
    assert on_front(points).tolist() == [not b for b in beaten]
    assert [bool(dominators(points, i)) for i in range(len(points))] == beaten


@given(POINTS)
def test_order_does_not_matter_and_more_points_never_take_volume_away(points: Array) -> None:
    reference = np.full(points.shape[1], 13.0)
    whole = hypervolume(points, reference)
    assert hypervolume(points[::-1], reference) == pytest.approx(whole)
    lost = contributions(points, reference)
    assert (lost >= -1e-9).all()
    assert lost.sum() <= whole + 1e-9


def test_equal_points_stand_together_and_neither_adds_alone() -> None:
    points = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 1.0]])
    assert on_front(points).tolist() == [True, True, True]
    assert contributions(points, np.array([4.0, 4.0])).tolist() == [0.0, 0.0, 1.0]


def test_points_beyond_the_reference_add_nothing() -> None:
    assert hypervolume(np.array([[5.0, 1.0]]), np.array([4.0, 4.0])) == 0.0


def test_the_reference_lies_beyond_the_worst_even_of_nothing_and_of_negative_values() -> None:
    points = np.array([[2.0, 0.0, -4.0], [1.0, 0.0, -2.0]])
    assert worst_by(points, 0.1).tolist() == pytest.approx([2.2, 0.1, -1.8])
