"""Why a product of factors changed: a part per factor, adding up to the change without a residual.

Shapley averages over all orders in which the factors could change, so no factor is favoured and swapping before and
after flips every sign. One order (`sequential`) gives what both factors of a pair did together to the later one:
"price x new volume" of price-volume-mix reports is the order volume, mix, price.
Logarithmic weights (LMDI) add up too, but fail where a factor is zero: items that are new or gone.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import comb
from typing import TypeVar

Number = TypeVar("Number", Fraction, Decimal, float)


def shapley(before: Sequence[Number], after: Sequence[Number]) -> list[Number]:
    """Return the Shapley value of each factor in product(after) - product(before).

    Of factor i: its change times the mean, over orders, of the product of the others, each after where it changed
    before i (Shapley 1953). By how many did, those products are coefficients of prod(b + a x): k^2 steps, not k!.
    """
    return [_mean_of_others(before, after, i) * (after[i] - before[i]) for i in range(len(before))]


def _mean_of_others(before: Sequence[Number], after: Sequence[Number], factor: int) -> Number:
    one = type(before[factor])(1)
    by_count: list[Number] = [one]
    for j in range(len(before)):
        if j != factor:
            by_count = _times(by_count, before[j], after[j])
    mean = one - one
    for size, coefficient in enumerate(by_count):
        mean += coefficient / (len(before) * comb(len(before) - 1, size))
    return mean


def _times(by_count: list[Number], before: Number, after: Number) -> list[Number]:
    """Multiply a polynomial by (before + after x)."""
    made = [one * before for one in by_count]
    made.append(by_count[-1] * after)
    for size in range(1, len(by_count)):
        made[size] += by_count[size - 1] * after
    return made


def sequential(before: Sequence[Number], after: Sequence[Number]) -> list[Number]:
    """Return what each factor changes when they change one after another in the order given."""
    parts = []
    for i, (b, a) in enumerate(zip(before, after, strict=True)):
        part = a - b
        for j in range(len(before)):
            if j != i:
                part *= after[j] if j < i else before[j]
        parts.append(part)
    return parts
