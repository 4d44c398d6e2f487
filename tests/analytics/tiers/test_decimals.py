"""The plainest decimal of an interval."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from analytics.tiers.decimals import plainest


def test_price_lists_are_read_back() -> None:
    assert plainest(1.19971, 1.20013) == Decimal("1.2")
    assert plainest(49.98, 50.05) == Decimal(50)
    assert plainest(2.4e-6, 2.6e-6) == Decimal("0.0000025")
    assert plainest(-0.1, 0.2) == 0


def test_an_interval_that_is_none_has_none() -> None:
    assert plainest(2.0, 1.0) is None
    assert plainest(float("nan"), 1.0) is None
    assert plainest(1.0, float("inf")) is None


@given(st.floats(1e-6, 1e6), st.floats(0, 1))
def test_it_lies_in_the_interval_and_no_number_of_fewer_decimals_does(low: float, width: float) -> None:
    high = low * (1 + width)
    found = plainest(low, high)
    assert found is None or Decimal(low) <= found <= Decimal(high)
    if found is not None and found == found.to_integral_value() and high - low >= 1:
        assert found % 1 == 0
