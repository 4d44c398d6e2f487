"""Periods in which a price holds: exact, without gaps where a price is known, the same as asking at any moment."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.prices import ImportedPrices, Price, Pricing, Rate, periods
from collector.prices.listed import Listed, rows_of
from collector.prices.override import parse_prices
from collector.prices.price import TokenKind

START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 4, tzinfo=UTC)
OWN = """
- {model: gpt-4o, valid_from: 2026-11-02, input_per_1m: 1, output_per_1m: 2}
- {model: gpt-4o, valid_from: 2026-11-03T06:30:00Z, input_per_1m: 1, output_per_1m: 2}
- {model: m, valid_from: 2026-11-02T12:00:00+02:00, input_per_1m: 3}
"""


def pricing() -> Pricing:
    price = Price("m", {TokenKind.INPUT: Rate(Decimal(7))})
    ending = Listed("list", None, "m", "m", price, None, START + timedelta(hours=30))
    rows = rows_of([ending], "test").fill_null(datetime(1970, 1, 1)).with_columns(valid_to=datetime(2026, 11, 2, 6))
    return Pricing(parse_prices(OWN, "own.yaml"), ImportedPrices(rows.iter_rows(named=True)))


def test_an_own_price_follows_the_list_price_to_the_second() -> None:
    (listed, own, newer) = periods(pricing(), "openai", "gpt-4o", START, END)
    assert listed.end == own.start == datetime(2026, 11, 2, tzinfo=UTC)
    assert (own.end, newer.end) == (datetime(2026, 11, 3, 6, 30, tzinfo=UTC), None)
    assert [str(p.source) for p in (listed, own, newer)] == ["genai-prices", "override", "override"]


def test_an_imported_price_that_ended_leaves_a_gap_until_the_next() -> None:
    imported, own = periods(pricing(), None, "m", START, END)
    assert (imported.start, imported.end) == (None, datetime(2026, 11, 2, 6, tzinfo=UTC))
    assert (own.start, own.end) == (datetime(2026, 11, 2, 10, tzinfo=UTC), None)


def test_a_price_by_time_of_day_has_a_period_for_each_stretch() -> None:
    found = periods(Pricing(), "deepseek", "deepseek-chat", START, END)
    assert len(found) == 7
    assert {(p.start.hour, p.start.minute) for p in found if p.start} == {(16, 30), (0, 30)}


def test_a_model_that_nobody_prices_has_no_period() -> None:
    assert periods(pricing(), "openai", "gpt-4o-vision-of-mine", START, END) == ()


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", "gpt-4o"), (None, "m"), ("deepseek", "deepseek-reasoner"), ("x", "unknown")]
)
@given(st.integers(0, 3 * 86400 - 1))
def test_at_every_moment_the_period_says_what_a_look_up_says(provider: str | None, model: str, second: int) -> None:
    at = START + timedelta(seconds=second)
    prices = pricing()
    holding = [
        p
        for p in periods(prices, provider, model, START, END)
        if (p.start is None or p.start <= at) and (p.end is None or at < p.end)
    ]
    expected = prices.found(provider, model, at)
    assert [(p.source, p.price) for p in holding] == ([] if expected is None else [expected])
