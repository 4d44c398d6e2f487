"""Amounts of money: from text to the store to text without losing a digit."""

from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.columns import Kind
from store.money import money_text, read_money, rounded
from store.tables import COSTS

AMOUNTS = st.integers(-(10**38) + 1, 10**38 - 1).map(
    lambda n: Decimal((int(n < 0), tuple(int(digit) for digit in str(abs(n))), -18))
)


@given(st.lists(AMOUNTS, min_size=1, max_size=20))
def test_an_amount_is_read_as_it_is_written(amounts: list[Decimal]):
    read, bad, lost = read_money(pl.Series([money_text(a) for a in amounts]))
    assert [money_text(a) for a in read] == [money_text(a) for a in amounts]
    assert not bad.any()
    assert not lost.any()


@pytest.mark.parametrize(
    ("text", "kept", "lost"),
    [("0.0000000000000000005", "0.00", True), ("0.0000000000000000015", "0.000000000000000002", True),
     ("1e-7", "0.0000001", False), ("+1.5E3", "1500.00", False), (".5", "0.50", False), ("5.", "5.00", False),
     ("0.30000000000000000000", "0.30", False), ("-2.50", "-2.50", False)],
)  # fmt: skip
def test_beyond_18_decimals_an_amount_is_rounded_half_to_even(text: str, kept: str, lost: bool):
    read, bad, rounded_away = read_money(pl.Series([text]))
    assert (money_text(read[0]), bad[0], rounded_away[0]) == (kept, False, lost)


def test_text_and_what_is_too_large_is_no_amount_and_nan_is_missing():
    read, bad, _ = read_money(pl.Series(["abc", "1_0", "1e20", "100000000000000000000", "NaN", "-inf", None]))
    assert read.null_count() == 7
    assert bad.to_list() == [True, True, True, True, False, False, False]
    assert rounded(Decimal("1e20")) is None


def test_whole_numbers_have_no_decimals_and_money_at_least_two():
    assert [money_text(Decimal(t)) for t in ("5", "0.300", "2.2", "1E+2", "1.000000000000000001")] == [
        "5", "0.30", "2.2", "100", "1.000000000000000001",
    ]  # fmt: skip


def test_a_float_becomes_the_decimal_it_is_written_as():
    frame = pl.DataFrame({"billed_cost": [123456.789, 1e-7, float("nan"), None]})
    kept = COSTS.conform(frame)["billed_cost"].to_list()
    assert kept == [Decimal("123456.789"), Decimal("0.0000001"), None, None]


def test_every_amount_of_costs_is_money():
    money = {column.name for column in COSTS.columns if column.kind is Kind.MONEY}
    assert money == {name for name in COSTS.names if name.endswith("_cost")} | {"list_unit_price"}
