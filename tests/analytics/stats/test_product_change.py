"""Parts of the change of a product: exact, symmetric (Shapley), and equal to the mean over all orders."""

from fractions import Fraction
from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.stats import shapley as sampled
from analytics.stats.product_change import sequential, shapley

numbers = st.fractions(-1000, 1000, max_denominator=50)
factors = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5)


def product(values: list[Fraction]) -> Fraction:
    made = Fraction(1)
    for value in values:
        made *= value
    return made


@given(factors)
def test_parts_of_either_kind_add_up_to_the_change_exactly(pairs: list[tuple[Fraction, Fraction]]) -> None:
    before, after = [b for b, _ in pairs], [a for _, a in pairs]
    change = product(after) - product(before)
    assert sum(shapley(before, after)) == change
    assert sum(sequential(before, after)) == change


@given(factors)
def test_shapley_is_the_mean_of_all_orders(pairs: list[tuple[Fraction, Fraction]]) -> None:
    before, after, k = [b for b, _ in pairs], [a for _, a in pairs], len(pairs)
    totals, orders = [Fraction(0)] * k, list(permutations(range(k)))
    for order in orders:
        for part, i in zip(sequential([before[i] for i in order], [after[i] for i in order]), order, strict=True):
            totals[i] += part
    assert shapley(before, after) == [total / len(orders) for total in totals]


@given(factors)
def test_swapping_before_and_after_flips_every_sign_of_shapley(pairs: list[tuple[Fraction, Fraction]]) -> None:
    before, after = [b for b, _ in pairs], [a for _, a in pairs]
    assert shapley(after, before) == [-part for part in shapley(before, after)]


@given(factors, st.randoms())
def test_shapley_does_not_depend_on_the_order_of_the_factors(
    pairs: list[tuple[Fraction, Fraction]], random: object
) -> None:
    mixed = list(enumerate(pairs))
    random.shuffle(mixed)  # type: ignore[attr-defined]
    parts = shapley([b for _, (b, _) in mixed], [a for _, (_, a) in mixed])
    expected = shapley([b for b, _ in pairs], [a for _, a in pairs])
    assert parts == [expected[i] for i, _ in mixed]


@given(factors, st.integers(0, 4))
def test_a_factor_that_alone_changes_gets_all_of_it(pairs: list[tuple[Fraction, Fraction]], which: int) -> None:
    before = [b for b, _ in pairs]
    after = list(before)
    i = which % len(pairs)
    after[i] = pairs[i][1]
    change = product(after) - product(before)
    for parts in (shapley(before, after), sequential(before, after)):
        assert parts == [change if j == i else 0 for j in range(len(pairs))]


def test_it_agrees_with_the_values_of_coalitions() -> None:
    before, after = [3.0, 0.5, 2.0, 7.0], [4.0, 0.25, 0.0, 9.0]

    def worth(who: frozenset[int]) -> np.ndarray:
        return np.array([np.prod([after[i] if i in who else before[i] for i in range(4)])])

    expected = sampled.values(4, worth, sampled.orders(4, 0))[:, 0]
    assert np.allclose(shapley(before, after), expected)
