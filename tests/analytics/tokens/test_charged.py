"""The vectorised arithmetic against `cost_of`, request by request: the same decimals, the same refusals and doubts."""

from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.tokens import TokensParams
from analytics.tokens.cards import cards_of
from analytics.tokens.charged import charged, doubted
from analytics.tokens.charged import requests as shaped
from analytics.tokens.exact import sums
from collector.prices import Price, Rate, Tier, Usage, cost_of, is_far_above
from collector.prices.price import TokenKind
from tests.analytics.tokens.asked import prices, requests

FIELDS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")
counts = st.one_of(st.none(), st.integers(0, 50), st.integers(0, 3_000_000))
money = st.decimals(0, 100, places=6)
tiers = st.lists(st.tuples(st.sampled_from([10, 1000, 200_000]), money), max_size=2, unique_by=lambda tier: tier[0])


@st.composite
def rates(draw: Any) -> dict[TokenKind, Rate]:
    kinds = draw(st.lists(st.sampled_from(list(TokenKind)), min_size=1, unique=True))
    return {kind: Rate(draw(money), tuple(Tier(above, rate) for above, rate in draw(tiers))) for kind in kinds}


listed = st.builds(
    Price, model=st.just("m"), rates=rates(), batch=st.one_of(st.none(), rates()), currency=st.just("EUR"),
    by_rule=st.booleans(), origin=st.just("list"),
)  # fmt: skip
usages = st.builds(Usage, **dict.fromkeys(FIELDS, counts), batch=st.booleans())


@given(st.lists(usages, min_size=1, max_size=12), st.one_of(st.none(), listed), st.one_of(st.none(), st.floats(0, 1e9)))
@settings(max_examples=150, deadline=None)
def test_every_request_costs_what_cost_of_says(usage: list[Usage], price: Price | None, stated: float | None) -> None:
    rows = [
        {name: getattr(one, name) for name in FIELDS} | {"batch": str(one.batch), "cost_usd": stated} for one in usage
    ]
    cards = cards_of(prices([("openai", "m", price)] if price else []))
    found = charged(shaped(requests(rows), TokensParams()), cards)
    exact = sums(found, ["trace_id"], cards)
    tested = found.with_columns(test.alias(f"test {name}") for name, test in doubted(found).items())
    for row, one in zip(tested.iter_rows(named=True), usage, strict=True):
        expected = cost_of(one, price)
        total = exact.get((row["trace_id"], "EUR"))
        assert (row["lacks"] is not None) == (expected.amount is None)
        if expected.amount is None:
            assert total is None
            assert row["lacks"] in (expected.quality if price else ("no_price", "no_tokens"))
        else:
            assert (Decimal(0) if total is None else total.total) == expected.amount
            assert abs(row["cost"] - float(expected.amount)) <= 1e-9 * max(1.0, float(expected.amount))
            doubts = {name.removeprefix("test ") for name in tested.columns if name.startswith("test ") and row[name]}
            assert doubts - {"stated_cost_far_above"} == set(expected.quality)
        if price is not None and stated is not None:
            far = is_far_above(Decimal(stated), one, price)
            assert row["test stated_cost_far_above"] == far or abs(stated) < 1e-9


@given(st.lists(usages, min_size=1, max_size=30), listed)
@settings(max_examples=50, deadline=None)
def test_tokens_are_charged_once_and_none_is_lost(usage: list[Usage], price: Price) -> None:
    rows = [{name: getattr(one, name) for name in FIELDS} for one in usage]
    found = charged(shaped(requests(rows), TokensParams()), cards_of(prices([("openai", "m", price)])))
    kinds = ("input", "cached_input", "cache_write", "output", "reasoning")
    assert found.select(pl.sum_horizontal(kinds).sum()).item() == sum(
        (one.input_tokens or 0) + (one.output_tokens or 0) for one in usage
    )
    assert found.select(pl.min_horizontal(kinds).min()).item() >= 0
