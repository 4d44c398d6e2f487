"""Rounded amounts add up: in lists, along rows and along columns."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from analytics.cost.rounding import adding_up, table

CENT = Decimal("0.01")
amounts = st.decimals(-1000, 1000, places=5)


@given(st.lists(amounts, min_size=1, max_size=9))
def test_a_list_adds_up_flips_with_the_sign_and_leaves_zeros(values: list[Decimal]) -> None:
    made = adding_up(values, CENT)
    assert sum(made) == sum(values).quantize(CENT)
    assert adding_up([-value for value in values], CENT) == [-one for one in made]
    assert all(one == 0 for one, value in zip(made, values, strict=True) if value == 0 and any(values))


@given(st.lists(st.lists(amounts.filter(bool), min_size=3, max_size=3), min_size=1, max_size=7))
def test_a_table_adds_up_along_rows_and_columns_and_no_cell_moves_far(values: list[list[Decimal]]) -> None:
    rows = [dict(zip("abc", row, strict=True)) for row in values]
    totals = adding_up([sum(row) for row in values], CENT)
    made = table(rows, totals, CENT)
    assert [sum(row.values()) for row in made] == totals
    sums = [sum(row[i] for row in values) for i in range(3)]
    assert [sum(row[name] for row in made) for name in "abc"] == adding_up(sums, CENT, sum(totals))
    far = CENT * (2 + len(rows))
    assert all(abs(row[name] - exact[name]) < far for row, exact in zip(made, rows, strict=True) for name in "abc")
    flipped = table([{n: -v for n, v in row.items()} for row in rows], [-total for total in totals], CENT)
    assert flipped == [{n: -v for n, v in row.items()} for row in made]


def test_zeros_and_missing_cells_stay() -> None:
    rows = [{"a": Decimal("0.004"), "b": Decimal(0)}, {"a": Decimal("0.004"), "c": Decimal("0.002")}]
    made = table(rows, adding_up([Decimal("0.004"), Decimal("0.006")], CENT), CENT)
    assert made == [{"a": Decimal("0.00"), "b": Decimal(0)}, {"a": Decimal("0.01"), "c": Decimal("0.00")}]
