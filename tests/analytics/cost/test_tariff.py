"""Graduated prices that start again are not a drift; a price that rose on the first of a month is."""

from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from analytics.cost.tariff import part_of
from tests.analytics.cost.lines import lines


def bill(days: int, first: datetime, quantity: float = 10.0, rise: float = 1.0) -> pl.DataFrame:
    """Daily lines at 2.0, from 50 units of a month on 1.5, from 200 on 1.0; `rise` times as much from December on."""
    rows, used, month = [], 0.0, 0
    for number in range(days):
        at = first + timedelta(days=number)
        used, month = (used, month) if at.month == month else (0.0, at.month)
        price = 2.0 if used < 50 else 1.5 if used < 200 else 1.0
        factor = rise if at.month == 12 else 1.0
        cost = Decimal(str(round(quantity * price * factor, 6)))
        rows.append({"bucket": at, "sku": "gb", "unit": "GB", "quantity": quantity, "cost": cost})
        used += quantity
    return lines(rows)


DECEMBER = datetime(2026, 12, 1), datetime(2026, 12, 4)


def test_what_the_first_tier_adds_is_known_from_the_month_before() -> None:
    assert part_of(bill(33, datetime(2026, 11, 1)), *DECEMBER, "UTC") == pytest.approx(30.0)


def test_a_price_that_rose_beyond_its_tier_is_left_over() -> None:
    assert part_of(bill(33, datetime(2026, 11, 1), rise=1.5), *DECEMBER, "UTC") == pytest.approx(30.0, abs=1.0)


def test_where_the_bill_begins_within_the_month_before_falling_prices_are_taken_for_tiers() -> None:
    assert part_of(bill(28, datetime(2026, 11, 6)), *DECEMBER, "UTC") > 0


def test_a_drift_within_a_month_has_no_such_part() -> None:
    assert part_of(bill(33, datetime(2026, 11, 1)), datetime(2026, 11, 21), datetime(2026, 11, 25), "UTC") == 0.0


def test_without_quantities_nothing_is_known() -> None:
    made = bill(33, datetime(2026, 11, 1)).with_columns(quantity=pl.lit(None, pl.Float64))
    assert part_of(made, *DECEMBER, "UTC") == 0.0
