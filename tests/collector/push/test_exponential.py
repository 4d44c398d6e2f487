"""Exponential histograms as classic buckets, against the values they were made of."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.push.exponential import SCALE, Buckets, ClassicBuckets, bound, le, number_text, on_grid

VALUES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60)


def index(value: float, scale: int) -> int:
    """Index of the upper bound of the bucket (lower, upper] that a value falls in."""
    return math.ceil(math.log2(value) * 2**scale)


def buckets(values: list[float], scale: int) -> Buckets:
    up = Counter(index(v, scale) for v in values if v > 0)
    down = Counter(index(-v, scale) for v in values if v < 0)
    return on_grid(scale, values.count(0), 0.0, up.items(), down.items())


@given(VALUES, VALUES, st.integers(-2, 12))
def test_counts_at_every_bound_are_those_of_the_values(up: list[float], down: list[float], scale: int) -> None:
    values = [*up, *(-v for v in down), 0.0]
    made = buckets(values, scale)
    for edge, counted in made.cumulative(made.edges()).items():
        sign, at = edge
        limit = sign * bound(at) if sign else at
        near = [v for v in values if math.isclose(v, limit, rel_tol=1e-9)]  # either side of a bound, by rounding
        below = sum(v <= limit for v in values)
        assert below - len(near) <= counted <= below + len(near)


@given(VALUES, st.integers(3, 20))
def test_a_finer_scale_gives_the_buckets_of_the_grid(values: list[float], scale: int) -> None:
    fine = {u: on_grid(scale, 0, 0, [(u, 1)]).positive for u in {index(v, scale) for v in values}}
    for u, coarse in fine.items():
        assert list(coarse) == [math.ceil(u / 2 ** (scale - SCALE))]


@given(VALUES, VALUES)
def test_the_sum_of_two_histograms_is_the_histogram_of_all_values(first: list[float], second: list[float]) -> None:
    total = buckets(first, SCALE).plus(buckets(second, SCALE))
    assert total.positive == buckets(first + second, SCALE).positive


@given(VALUES)
def test_the_largest_value_lies_within_19_percent_of_the_last_bound(values: list[float]) -> None:
    made = buckets(values, 8)
    upper = max(bound(u) for u in made.positive)
    assert max(values) <= upper * (1 + 1e-9)
    assert upper / max(values) <= 2 ** (1 / 4) * 2 ** (1 / 2**8) * (1 + 1e-9)


def test_a_bound_once_shown_is_shown_with_every_point_and_a_new_one_gets_its_earlier_count() -> None:
    shown = ClassicBuckets()
    first = shown.update(buckets([1.5] * 3, SCALE), 10)
    assert first.before == {}
    second = shown.update(buckets([1.5] * 3 + [100.0], SCALE), 20)
    assert set(first.now) <= set(second.now)
    assert set(second.before) == set(second.now) - set(first.now)
    assert (set(second.before.values()), second.before_at) == ({3}, 10)
    assert max(second.now.values()) == 4
    assert shown.update(buckets([1.5] * 3 + [100.0], SCALE), 20) == second


def test_bounds_that_a_coarser_scale_no_longer_has_end() -> None:
    shown = ClassicBuckets()
    fine = shown.update(buckets([1.3, 1.6], SCALE), 1).now
    coarse = shown.update(buckets([1.3, 1.6, 3.0], 0), 2).now
    ended = {edge for edge, n in coarse.items() if math.isnan(n)}
    assert ended == {edge for edge in fine if edge[1] % 4}
    assert {le(edge): n for edge, n in coarse.items() if edge not in ended} == {"1": 0, "2": 2, "4": 3}


def test_a_wider_zero_bucket_swallows_what_lies_within() -> None:
    total = buckets([0.001, 5.0], SCALE).plus(on_grid(SCALE, 2, 0.01, [(12, 1)]))
    assert (total.zero, total.threshold) == (3, 0.01)
    assert next(le(edge) for edge in sorted(total.edges())) == "0.01"


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (0.5, "0.5"), (math.inf, "+Inf"), (-2.0, "-2"), (1e20, "1e+20")]
)
def test_bounds_are_written_as_prometheus_writes_them(value: float, text: str) -> None:
    assert number_text(value) == text
