"""Tokens by factor: requests, mix of models, tokens per request, cached share, price; the same answer by all orders."""

from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.cost.explained import ATTRIBUTIONS, PARTS, rows
from analytics.cost.priced import lines as priced
from tests.analytics.cost.lines import AFTER, BEFORE, two_days

Row = dict[str, Any]
NAMES = ("requests", "mix", "tokens_per_request", "cached_share", "price")


def usage(model: str, requests: int, tokens: dict[str, float], per_million: dict[str, str]) -> list[Row]:
    """Lines of one model: the requests stand on its first line, as in usage reports."""
    made = []
    for kind, quantity in tokens.items():
        cost = Decimal(str(quantity)) * Decimal(per_million[kind]) / 1_000_000
        one = {"model": model, "tokens_kind": kind, "unit": "tokens", "quantity": quantity, "cost": str(cost)}
        made.append(one | {"requests": None if made else requests})
    return made


PRICES = {"input": "2.50", "cached_input": "1.25", "output": "10"}
TOKENS = {"input": 8e6, "cached_input": 2e6, "output": 1e6}
DOUBLE = {kind: 2 * count for kind, count in TOKENS.items()}
BASE = usage("m-large", 1000, TOKENS, PRICES)


def parts(found: list[Row]) -> dict[str, Decimal]:
    return {name: sum((row[name] or Decimal(0) for row in found), Decimal(0)) for name in PARTS}


def only(name: str, amount: str) -> dict[str, Decimal]:
    return dict.fromkeys(PARTS, Decimal(0)) | {name: Decimal(amount)}


@pytest.mark.parametrize("how", ATTRIBUTIONS)
@pytest.mark.parametrize(
    ("after", "factor", "amount"),
    [
        (usage("m-large", 2000, DOUBLE, PRICES), "requests", "32.50"),
        (usage("m-large", 1000, DOUBLE, PRICES), "tokens_per_request", "32.50"),
        (usage("m-large", 1000, {"input": 10e6, "output": 1e6}, PRICES), "cached_share", "2.50"),
        (usage("m-large", 1000, TOKENS, PRICES | {"output": "12"}), "price", "2.00"),
    ],
)  # fmt: skip
def test_a_change_of_one_factor_is_that_factor_alone(after: list[Row], factor: str, amount: str, how: str) -> None:
    found = rows(two_days(BASE, after), BEFORE, AFTER, {}, how)
    assert parts(found) == only(factor, amount)
    assert [(row["item"], row["unit"], row["volume"]) for row in found] == [("m-large", "requests", None)]


@pytest.mark.parametrize("how", ATTRIBUTIONS)
def test_requests_that_move_to_a_cheaper_model_are_mix(how: str) -> None:
    cheap = {kind: str(Decimal(price) / 10) for kind, price in PRICES.items()}
    tokens = {"input": 8e6, "cached_input": 2e6, "output": 1e6}
    half = {kind: n / 2 for kind, n in tokens.items()}
    before = [*BASE, *usage("m-mini", 1000, tokens, cheap)]
    after = [
        *usage("m-large", 500, half, PRICES),
        *usage("m-mini", 1500, {k: 1.5 * n for k, n in tokens.items()}, cheap),
    ]
    found = rows(two_days(before, after), BEFORE, AFTER, {}, how)
    assert parts(found) == only("mix", "-14.62")


def test_without_requests_in_one_period_tokens_are_explained_as_quantities() -> None:
    after = [row | {"requests": None} for row in BASE]
    after[0] |= {"quantity": 9e6, "cost": "22.5"}
    found = rows(two_days(BASE, after), BEFORE, AFTER, {})
    assert {row["unit"] for row in found} == {"tokens"}
    assert sum(row["total"] for row in found) == Decimal("2.50")


kinds = st.fixed_dictionaries({kind: st.integers(0, 5_000_000).map(float) for kind in PRICES})
models = st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(1, 5000), kinds, st.integers(1, 9)), max_size=3)


def spend(bill: dict[str, Any]) -> list[Row]:
    made = []
    for model, (requests, tokens, factor) in bill.items():
        made += usage(model, requests, tokens, {kind: str(Decimal(p) * factor) for kind, p in PRICES.items()})
    return made


@settings(max_examples=25, deadline=None)
@given(models, models, st.sampled_from(ATTRIBUTIONS))
def test_parts_of_tokens_add_up_to_the_cent(before: dict[str, Any], after: dict[str, Any], how: str) -> None:
    old, new = spend(before), spend(after)
    found = rows(two_days(old, new), BEFORE, AFTER, {}, how)
    change = sum((Decimal(row["cost"]) for row in new), Decimal(0)) - sum(
        (Decimal(row["cost"]) for row in old), Decimal(0)
    )
    assert abs(sum((row["total"] for row in found), Decimal(0)) - change) <= Decimal("0.005")
    for row in found:
        assert sum((row[name] for name in PARTS if row[name] is not None), Decimal(0)) == row["total"]
    if how == "shapley":
        back = rows(two_days(new, old), BEFORE, AFTER, {}, how)
        assert parts(back) == {name: -part for name, part in parts(found).items()}


def state(bill: dict[str, Any]) -> tuple[Any, ...]:
    """Return requests, model shares, tokens per request, shares of the prompt and prices, in fractions."""
    whole = sum(Fraction(requests) for requests, _, _ in bill.values())
    prompt = {m: Fraction(t["input"] + t["cached_input"]) for m, (_, t, _) in bill.items()}
    tokens = {
        (m, side): n / bill[m][0]
        for m in bill
        for side, n in (("in", prompt[m]), ("out", Fraction(bill[m][1]["output"])))
    }
    shares = {(m, k): Fraction(bill[m][1][k]) / prompt[m] for m in bill for k in ("input", "cached_input")}
    rates = {(m, k): Fraction(PRICES[k]) * bill[m][2] / 1_000_000 for m in bill for k in PRICES}
    return whole, {m: Fraction(bill[m][0]) / whole for m in bill}, tokens, shares, rates


def cost(values: tuple[Any, ...]) -> Fraction:
    requests, mix, tokens, shares, rates = values
    total = Fraction(0)
    for m in mix:
        prompt = sum(shares[m, k] * rates[m, k] for k in ("input", "cached_input"))
        total += requests * mix[m] * (tokens[m, "in"] * prompt + tokens[m, "out"] * rates[m, "output"])
    return total


some = st.fixed_dictionaries({kind: st.integers(1000, 5_000_000).map(float) for kind in PRICES})
full = st.fixed_dictionaries({model: st.tuples(st.integers(1, 5000), some, st.integers(1, 9)) for model in "ab"})


@settings(max_examples=8, deadline=None)
@given(full, full)
def test_shapley_parts_are_those_of_all_120_orders(before: dict[str, Any], after: dict[str, Any]) -> None:
    old, new = state(before), state(after)
    expected: dict[str, Fraction] = defaultdict(Fraction)
    for order in permutations(range(5)):
        values = list(old)
        for who in order:
            was = cost(tuple(values))
            values[who] = new[who]
            expected[NAMES[who]] += (cost(tuple(values)) - was) / 120
    said = parts(rows(two_days(spend(before), spend(after)), BEFORE, AFTER, {}, "shapley"))
    for name in NAMES:
        assert abs(Fraction(said[name]) - expected[name]) <= Fraction(6, 100)


def test_requests_and_prices_make_lines_that_are_explained_like_a_bill() -> None:
    def rollup(day: int, requests: int, cached: int) -> Row:
        at = datetime(2026, 11, day, 5)
        tokens = {"input_tokens": 1000 * requests, "cached_input_tokens": cached, "output_tokens": 100 * requests}
        return {"bucket": at, "service": "chat", "provider": "openai", "model": "m", "requests": requests} | tokens

    requests = pl.DataFrame([rollup(1, 1000, 0), rollup(2, 1000, 500_000)])
    prices = pl.DataFrame(
        [
            {"provider": "openai", "model": "m", "valid_from": datetime(2026, 1, 1), "valid_to": None,
             "tokens_kind": kind, "batch": False, "above_input_tokens": 0, "per_million": Decimal(price),
             "currency": "USD", "source": "override", "origin": "mine", "by_rule": False}
            for kind, price in PRICES.items()
        ],
        schema_overrides={"valid_to": pl.Datetime("us"), "per_million": pl.Decimal(38, 18)},
    )  # fmt: skip
    made = priced(requests, prices, ("service",))
    assert made["cost"].sum() == Decimal("7.000") - Decimal("0.625")
    assert made["requests"].sum() == 2000
    found = rows(made, BEFORE, AFTER, {"service": "chat"})
    assert parts(found) == only("cached_share", "-0.625")
    assert found[0]["since"] == datetime(2026, 11, 2, tzinfo=UTC).replace(tzinfo=None)
