"""`Schedule`: exact costs by tier, in both readings of a price list."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.tiers.schedule import Schedule, Tier, parse_schedule
from store.errors import UsageError

TEXTS = ("0:1.20", "50:0.95", "200:0.78")
QUANTITIES = st.decimals(min_value=0, max_value=1000, places=3)
PRICES = st.decimals(min_value=0, max_value=10, places=4)


def test_the_documents_schedule_costs_what_it_says_both_ways() -> None:
    graduated, volume = parse_schedule(TEXTS), parse_schedule(TEXTS, "volume")
    assert [graduated.cost(Decimal(q)) for q in (30, 80, 250)] == [Decimal(x) for x in ("36", "88.5", "241.5")]
    assert [volume.cost(Decimal(q)) for q in (30, 80, 250)] == [Decimal(x) for x in ("36", "76", "195")]


def test_a_quantity_at_a_limit_is_still_in_the_tier_below() -> None:
    assert parse_schedule(TEXTS, "volume").cost(Decimal(50)) == Decimal(60)
    assert parse_schedule(TEXTS).tier_of(Decimal(50)).unit_price == Decimal("1.20")


def test_fee_and_minimum_hold_for_the_month() -> None:
    tiers = parse_schedule(TEXTS).tiers
    assert Schedule("graduated", tiers, fee=Decimal(10)).cost(Decimal(0)) == 10
    assert Schedule("graduated", tiers, minimum=Decimal(20)).cost(Decimal(5)) == 20
    assert Schedule("graduated", tiers, minimum=Decimal(20)).cost(Decimal(30)) == 36


@given(QUANTITIES, QUANTITIES, st.lists(PRICES, min_size=1, max_size=4))
def test_what_is_added_adds_up_and_never_falls_under_graduated_prices(
    a: Decimal, b: Decimal, prices: list[Decimal]
) -> None:
    schedule = Schedule("graduated", tuple(Tier(Decimal(100 * k), price) for k, price in enumerate(prices)))
    low, high = min(a, b), max(a, b)
    assert schedule.added(low, high) >= 0
    assert schedule.cost(low) + schedule.added(low, high) == schedule.cost(high)


def test_beyond_the_largest_quantity_seen_it_says_so() -> None:
    schedule = Schedule("graduated", (Tier(Decimal(0), Decimal(1)),), known_to=Decimal(10))
    assert schedule.knows(Decimal(10))
    assert not schedule.knows(Decimal("10.1"))


@pytest.mark.parametrize("texts", [("1:2",), ("0:1", "0:2"), ("0",), ("0:x",), ("0:nan",), ()])
def test_what_is_no_schedule_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parse_schedule(texts)
