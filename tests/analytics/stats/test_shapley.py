"""Shapley shares: efficient, symmetric, and the same from drawn orders as from all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.stats.shapley import orders, shares, values
from analytics.stats.smoothed import Array


def test_values_add_up_and_twins_share_alike() -> None:
    worth = {(): 0.0, (0,): 4.0, (1,): 4.0, (2,): 1.0, (0, 1): 4.0, (0, 2): 5.0, (1, 2): 5.0, (0, 1, 2): 5.0}
    found = values(3, lambda who: np.array([worth[tuple(sorted(who))]]), orders(3, 0))
    assert found[:, 0].tolist() == [2.0, 2.0, 1.0]


def test_above_six_players_drawn_orders_still_add_up_to_the_whole() -> None:
    weights = np.arange(1.0, 9.0)

    def worth(who: frozenset[int]) -> Array:
        return np.array([float(np.sqrt(weights[list(who)].sum()))])

    found = values(8, worth, orders(8, 0))
    assert len(orders(8, 0)) == 24
    assert np.isclose(found.sum(), np.sqrt(weights.sum()))
    assert (np.diff(found[:, 0]) > -0.1).all()


@given(st.lists(st.floats(-1, 1e6), min_size=1, max_size=6))
def test_shares_add_up_to_one_or_are_undefined(parts: list[float]) -> None:
    share = shares(np.array(parts))
    if max(parts) > 0:
        assert abs(share.sum() - 1.0) < 1e-12
        assert (share >= 0).all()
    else:
        assert np.isnan(share).all()
