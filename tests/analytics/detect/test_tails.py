"""Tail probabilities: they hold on tails of every kind, and are refused on too few values."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from analytics.detect.novelty import Floats
from analytics.detect.tails import LEAST, tail_probability


@pytest.mark.parametrize("kind", ["normal", "exponential", "pareto", "lognormal"])
def test_as_many_values_are_as_rare_as_it_says_or_fewer(kind: str) -> None:
    rng = np.random.default_rng(0)
    draws: dict[str, Callable[[int], Floats]] = {
        "normal": lambda n: rng.normal(50, 5, n),
        "exponential": lambda n: rng.exponential(1.0, n),
        "pareto": lambda n: np.asarray(1 + rng.pareto(3.0, n)),
        "lognormal": lambda n: rng.lognormal(0, 0.5, n),
    }
    draw = draws[kind]
    rare = [
        np.mean([tail_probability(before, v) <= 1e-2 for v in draw(200)]) for before in (draw(500) for _ in range(40))
    ]
    assert 0.002 < np.mean(rare) < 0.03  # both sides, each at .01


def test_a_farther_value_is_never_likelier() -> None:
    before = np.random.default_rng(1).gamma(3.0, 1.0, 1000)
    found = [tail_probability(before, value) for value in np.linspace(np.median(before), 60, 200)]
    assert all(a >= b - 1e-12 for a, b in pairwise(found))
    assert found[-1] < 1e-6


def test_too_few_values_say_nothing() -> None:
    assert tail_probability(np.arange(LEAST - 1.0), 1e9) == 1.0


def test_a_value_within_the_bulk_is_as_likely_as_the_share_beyond_it() -> None:
    assert tail_probability(np.arange(1000.0), 900.0) == pytest.approx(0.1)


def test_a_series_of_one_value_cannot_make_another_rarer_than_one_in_so_many() -> None:
    assert tail_probability(np.zeros(500), 3.0) == pytest.approx(1 / 500)
