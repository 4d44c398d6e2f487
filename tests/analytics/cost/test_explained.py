"""A change of cost by price, volume and mix: to the cent, whatever is new, gone, free, negative or not measured."""

import csv
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics import frames
from analytics.cost.explained import ATTRIBUTIONS, COLUMNS, PARTS, rows, sentence
from tests.analytics.cost.lines import AFTER, BEFORE, lines, two_days

CENT = Decimal("0.01")
Row = dict[str, Any]


def parts(found: list[Row]) -> dict[str, Decimal]:
    return {name: sum((row[name] or Decimal(0) for row in found), Decimal(0)) for name in PARTS}


def total(found: list[Row]) -> Decimal:
    return sum((row["total"] for row in found), Decimal(0))


def of_case(folder: Path, name: str) -> list[Row]:
    with (folder / name).open() as file:
        return [
            {"model": row["model"], "quantity": float(row["tokens_m"]), "unit": "M tokens", "cost": row["cost"]}
            for row in csv.DictReader(file)
        ]


@pytest.fixture
def case(shared: Path) -> Path:
    return shared / "cases" / "56-price-vs-volume-vs-mix"


def test_a_shift_to_the_large_model_is_mix_and_not_usage(case: Path) -> None:
    found = rows(two_days(of_case(case, "p0.csv"), of_case(case, "p1.csv")), BEFORE, AFTER, {})
    assert total(found) == Decimal("21.00")
    said = parts(found)
    assert (said["price"], said["volume"], said["mix"]) == (Decimal("1.00"), Decimal("-12.73"), Decimal("32.73"))
    assert sentence(found) == "+21.00 USD = mix +32.73, volume -12.73, price +1.00; most of it m-large (+25.00)"


@pytest.mark.parametrize("attribution", ATTRIBUTIONS)
def test_a_rise_of_prices_alone_is_price_alone(case: Path, attribution: str) -> None:
    both = two_days(of_case(case, "p0.csv"), of_case(case, "p1-price-only.csv"))
    found = rows(both, BEFORE, AFTER, {}, attribution)
    assert parts(found) == dict.fromkeys(PARTS, Decimal(0)) | {"price": Decimal("7.00")}
    assert [(row["item"], row["price"], row["volume"], row["mix"]) for row in found] == [
        ("m-large", Decimal("5.00"), Decimal(0), Decimal(0)),
        ("m-mini", Decimal("2.00"), Decimal(0), Decimal(0)),
    ]


item = st.fixed_dictionaries(
    {
        "sku": st.sampled_from("abcdef"),
        "unit": st.sampled_from(["GB", "h", None]),
        "quantity": st.one_of(st.none(), st.floats(0, 1e6), st.just(0.0)),
        "cost": st.decimals(-1000, 100000, places=4),
        "category": st.sampled_from(["Usage", "Usage", None, "Credit", "Tax"]),
    }
)
bills = st.lists(item, max_size=12)


@settings(max_examples=25, deadline=None)
@given(bills, bills, st.sampled_from(ATTRIBUTIONS))
def test_parts_add_up_to_each_row_and_rows_to_the_change(before: list[Row], after: list[Row], how: str) -> None:
    found = rows(two_days(before, after), BEFORE, AFTER, {}, how)
    change = sum((row["cost"] for row in after), Decimal(0)) - sum((row["cost"] for row in before), Decimal(0))
    assert abs(total(found) - change) <= CENT / 2
    for row in found:
        assert sum((row[name] for name in PARTS if row[name] is not None), Decimal(0)) == row["total"]
        assert row["after"] - row["before"] == row["total"]


@settings(max_examples=25, deadline=None)
@given(bills, bills)
def test_swapping_the_periods_flips_the_sign_of_every_shapley_part(before: list[Row], after: list[Row]) -> None:
    there = rows(two_days(before, after), BEFORE, AFTER, {}, "shapley")
    back = rows(two_days(after, before), BEFORE, AFTER, {}, "shapley")
    flipped = [{name: None if row[name] is None else -row[name] for name in (*PARTS, "total")} for row in back]
    assert [{name: row[name] for name in (*PARTS, "total")} for row in there] == flipped


@settings(max_examples=20, deadline=None)
@given(bills, bills, st.sampled_from(ATTRIBUTIONS))
def test_other_names_and_another_order_of_lines_change_nothing(before: list[Row], after: list[Row], how: str) -> None:
    names = dict(zip("abcdef", "uvwxyz", strict=True))
    renamed = [[row | {"sku": names[row["sku"]]} for row in reversed(part)] for part in (before, after)]
    first = rows(two_days(before, after), BEFORE, AFTER, {}, how)
    second = rows(two_days(*renamed), BEFORE, AFTER, {}, how)
    assert [row["item"].translate(str.maketrans(names)) for row in first if len(row["item"]) == 1] == [
        row["item"] for row in second if len(row["item"]) == 1
    ]
    assert [row["total"] for row in first] == [row["total"] for row in second]
    assert parts(first) == parts(second)


def brute(before: list[tuple[str, float, Decimal]], after: list[tuple[str, float, Decimal]]) -> dict[str, Fraction]:
    """Shapley values of volume, mix and price by all six orders, of items that are bought in both periods."""

    def state(bill: list[tuple[str, float, Decimal]]) -> tuple[Fraction, dict[str, Fraction], dict[str, Fraction]]:
        quantity = {name: Fraction(str(q)) for name, q, _ in bill}
        whole = sum(quantity.values(), Fraction(0))
        return whole, {n: q / whole for n, q in quantity.items()}, {n: Fraction(c) / quantity[n] for n, _, c in bill}

    old, new = state(before), state(after)
    made: dict[str, Fraction] = defaultdict(Fraction)

    def cost(changed: set[int]) -> Fraction:
        volume, share, price = ((new if i in changed else old)[i] for i in range(3))
        return sum((volume * share[n] * price[n] for n in share), Fraction(0))  # type: ignore[operator, index, union-attr]

    for order in permutations(range(3)):
        changed: set[int] = set()
        for who in order:
            made[("volume", "mix", "price")[who]] += (cost(changed | {who}) - cost(changed)) / 6
            changed.add(who)
    return made


prices = st.tuples(st.floats(0.01, 1000).map(lambda q: round(q, 3)), st.decimals(0, 5000, places=2))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(prices, prices), min_size=1, max_size=6))
def test_shapley_parts_are_those_of_all_orders(pairs: list[Any]) -> None:
    bills = [[(f"sku{i}", *pair[when]) for i, pair in enumerate(pairs)] for when in (0, 1)]
    found = rows(
        two_days(*([{"model": n, "unit": "tokens", "quantity": q, "cost": c} for n, q, c in bill] for bill in bills)),
        BEFORE, AFTER, {}, "shapley",
    )  # fmt: skip
    expected, said = brute(*bills), parts(found)
    for name in ("volume", "mix", "price"):
        assert abs(Fraction(said[name]) - expected[name]) <= Fraction(3 * len(pairs), 200)


def test_new_and_removed_items_are_volume_and_mix_and_never_price() -> None:
    old = [{"sku": "a", "unit": "GB", "quantity": 10.0, "cost": 10}]
    new = [{"sku": "b", "unit": "GB", "quantity": 10.0, "cost": 30}]
    for how in ATTRIBUTIONS:
        found = rows(two_days(old, new), BEFORE, AFTER, {}, how)
        assert parts(found) == dict.fromkeys(PARTS, Decimal(0)) | {"mix": Decimal("20.00")}
        assert {row["item"]: row["total"] for row in found} == {"b": Decimal("30.00"), "a": Decimal("-10.00")}


def test_hours_of_unlike_machines_have_no_mix_unless_one_fell_as_another_rose() -> None:
    gpu = {"sku": "gpu", "unit": "h", "quantity": 100.0, "cost": 400}
    cpu = {"sku": "cpu", "unit": "h", "quantity": 50.0, "cost": 50}
    more = {"sku": "cpu", "unit": "h", "quantity": 100.0, "cost": 100}
    for how in ATTRIBUTIONS:
        [row] = rows(two_days([gpu, cpu], [gpu, more]), BEFORE, AFTER, {}, how)
        assert (row["item"], row["volume"], row["mix"]) == ("cpu", Decimal("50.00"), 0)
        fewer = gpu | {"quantity": 50.0, "cost": 200}
        assert parts(rows(two_days([gpu, cpu], [fewer, more]), BEFORE, AFTER, {}, how))["mix"] == Decimal("-150.00")


def test_a_model_that_did_not_move_has_no_part_in_what_others_moved() -> None:
    large = {"model": "m-large", "unit": "M", "quantity": 10.0, "cost": 25}
    mini = {"model": "m-mini", "unit": "M", "quantity": 100.0, "cost": 10}
    for how in ATTRIBUTIONS:
        [row] = rows(two_days([large, mini], [large, mini | {"quantity": 200.0, "cost": 20}]), BEFORE, AFTER, {}, how)
        assert row["item"] == "m-mini"
        assert row["volume"] > 0 > row["mix"], "more tokens, of the cheaper model"
        assert row["total"] == 10


def test_units_are_never_added_over_kinds_of_units() -> None:
    old = [
        {"sku": "disk", "unit": "GB", "quantity": 1e6, "cost": 10},
        {"sku": "vm", "unit": "h", "quantity": 1.0, "cost": 10},
    ]
    new = [
        {"sku": "disk", "unit": "GB", "quantity": 1e6, "cost": 10},
        {"sku": "vm", "unit": "h", "quantity": 2.0, "cost": 20},
    ]
    [found] = rows(two_days(old, new), BEFORE, AFTER, {})
    assert (found["item"], found["volume"], found["mix"], found["price"]) == ("vm", Decimal("10.00"), 0, 0)


def test_what_states_no_quantity_is_volume_and_its_unit_is_null() -> None:
    old = [{"sku": "support", "cost": 100}]
    new = [
        {"sku": "support", "cost": 150},
        {"sku": "support", "cost": -30, "quantity": 2.0, "unit": "h", "category": "Credit"},
    ]
    found = rows(two_days(old, new), BEFORE, AFTER, {})
    assert [(row["item"], row["unit"], row["volume"], row["price"]) for row in found] == [
        ("support", None, Decimal("50.00"), None),
        ("support (Credit)", None, Decimal("-30.00"), None),
    ]


def test_currencies_are_explained_apart() -> None:
    old = [{"sku": "a", "cost": 1}, {"sku": "a", "cost": 100, "currency": "JPY"}]
    new = [{"sku": "a", "cost": 3}, {"sku": "a", "cost": 500, "currency": "JPY"}]
    found = rows(two_days(old, new), BEFORE, AFTER, {"service": "chat"})
    assert [(row["currency"], row["total"], row["service"]) for row in found] == [
        ("JPY", Decimal(400), "chat"), ("USD", Decimal(2), "chat"),
    ]  # fmt: skip


def test_the_time_before_is_scaled_to_the_length_of_the_time_after() -> None:
    start = datetime(2026, 11, 1)
    made = [
        {"bucket": start + timedelta(hours=h), "sku": "a", "unit": "h", "quantity": 3.0, "cost": 3} for h in range(72)
    ]
    found = rows(lines(made), (BEFORE[0], AFTER[1]), (AFTER[1], AFTER[1] + timedelta(days=1)), {})
    assert found == []
    made[-1]["cost"] = 5
    [row] = rows(lines(made), (BEFORE[0], AFTER[1]), (AFTER[1], AFTER[1] + timedelta(days=1)), {})
    assert (row["before"], row["after"], row["price"]) == (Decimal(72), Decimal(74), Decimal(2))
    assert row["since"] == datetime(2026, 11, 3)


def test_small_changes_are_shown_in_millionths_and_many_small_items_as_one_row() -> None:
    old = [{"sku": f"s{i:02}", "unit": "k", "quantity": 1.0, "cost": "0.000100"} for i in range(40)]
    new = [row | {"cost": f"0.0002{i:02}"} for i, row in enumerate(old)]
    found = rows(two_days(old, new), BEFORE, AFTER, {})
    assert len(found) == 21
    assert "other (20 items)" in [row["item"] for row in found]
    assert total(found) == Decimal("0.004780")


def test_rows_fit_their_frame() -> None:
    found = rows(two_days([{"sku": "a", "cost": 1}], [{"sku": "a", "cost": 3}]), BEFORE, AFTER, {"service": "chat"})
    frame = frames.build(["service"], COLUMNS, found)
    assert frame["total"].to_list() == [Decimal(2)]


def test_no_change_is_no_row_and_no_sentence() -> None:
    same = [{"sku": "a", "unit": "h", "quantity": 2.0, "cost": 1}]
    assert rows(two_days(same, same), BEFORE, AFTER, {}) == []
    assert rows(lines([]), BEFORE, AFTER, {}) == []
    assert sentence([]) == ""


def test_hours_outside_both_times_count_in_neither() -> None:
    at = datetime(2026, 11, 5)
    made = lines([{"sku": "a", "cost": 5, "bucket": at}])
    assert rows(made, BEFORE, AFTER, {}) == []
    assert AFTER[0].tzinfo is UTC
