"""Imported prices: history, precedence, and the way to the store and back."""

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from collector.prices import ImportedPrices, Price, Pricing, Rate, Tier
from collector.prices.history import dated
from collector.prices.listed import OWN, Listed, price_of, rows_of
from collector.prices.override import parse_prices
from collector.prices.price import TokenKind
from store.tables import PRICES

NOW = datetime(2026, 11, 30, tzinfo=UTC)
EMPTY = pl.DataFrame(schema=PRICES.schema())
FIGURE = st.decimals(0, 1000, places=6, allow_nan=False, allow_infinity=False)


def listed(per_million: str, origin: str = "litellm", start: datetime | None = None) -> pl.DataFrame:
    price = Price("m", {TokenKind.INPUT: Rate(Decimal(per_million))})
    return rows_of([Listed(origin, "openai", "m", "m", price, start)], "list.json")


def after(*imports: tuple[str, int]) -> pl.DataFrame:
    """Rows after imports of an undated list, one a day."""
    stored = EMPTY
    for per_million, day in imports:
        new = dated(listed(per_million), stored, datetime(2026, 11, day, tzinfo=UTC))
        stored = pl.concat([stored, new]).unique(list(PRICES.key), keep="first", maintain_order=True)
    return stored


def in_force(rows: pl.DataFrame, day: int) -> Decimal:
    price = ImportedPrices(rows.iter_rows(named=True)).price("openai", "m", datetime(2026, 11, day, 12, tzinfo=UTC))
    assert price is not None
    return price.rates[TokenKind.INPUT].per_million


def test_the_first_import_holds_from_the_beginning_and_a_later_one_from_its_time() -> None:
    rows = after(("2.5", 10), ("2.5", 11), ("2", 12), ("2.5", 14))
    assert rows.height == 3
    right = [Decimal("2.5"), Decimal("2.5"), Decimal(2), Decimal(2), Decimal("2.5")]
    assert [in_force(rows, day) for day in (1, 11, 12, 13, 14)] == right


def test_a_stated_date_stays() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert dated(listed("1", start=start), after(("2", 10)), NOW)["valid_from"].to_list() == [datetime(2026, 1, 1)]


def test_overrides_go_before_imported_lists_and_those_before_the_library() -> None:
    imported = ImportedPrices(dated(_named("gpt-4o", "7"), EMPTY, NOW).iter_rows(named=True))
    own = parse_prices("- {model: gpt-4o, input_per_1m: 9, valid_from: 2026-11-15}", "p.yaml")
    pricing = Pricing(own, imported)
    found = [pricing.found("openai", model, at) for model, at in (
        ("gpt-4o", NOW), ("gpt-4o", datetime(2026, 11, 1)), ("gpt-4o-mini", NOW), ("gpt-4o-of-ours", NOW),
    )]  # fmt: skip
    assert [one and str(one[0]) for one in found] == ["override", "imported", "genai-prices", None]


def test_an_imported_own_list_goes_before_public_ones_whatever_its_date() -> None:
    rows = pl.concat([dated(listed("1", OWN), EMPTY, NOW), listed("2", start=datetime(2026, 11, 20, tzinfo=UTC))])
    assert in_force(rows, 25) == 1


def _named(model: str, per_million: str) -> pl.DataFrame:
    price = Price(model, {TokenKind.INPUT: Rate(Decimal(per_million))})
    return rows_of([Listed("litellm", "openai", model, model, price)], "list.json")


@given(st.dictionaries(st.sampled_from(TokenKind), FIGURE, min_size=1), FIGURE, st.booleans())
def test_a_price_is_the_same_after_the_store(figures: dict[TokenKind, Decimal], tier: Decimal, batch: bool) -> None:
    rates = {kind: Rate(figure, (Tier(200_000, tier),)) for kind, figure in figures.items()}
    price = Price("m", rates, rates if batch else None, "EUR")
    row = rows_of([Listed("litellm", None, "m", "m", price)], "x").row(0, named=True)
    back = price_of(row)
    assert (back.rates, back.batch, back.currency) == (price.rates, price.batch, "EUR")
