"""`PricedReader`: what analyses read: rows of the store, and the prices in force for the models that these name."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from infractl.pricing import priced_from
from store.columns import Kind
from store.query import PriceQuery, Query, RollupQuery
from store.window import Window

if TYPE_CHECKING:
    import polars as pl

    from collector.prices import Period, Price
    from collector.prices.override import Entry
    from store.database import Database

SCHEMA = {
    "provider": Kind.TEXT, "model": Kind.TEXT, "valid_from": Kind.TIME, "valid_to": Kind.TIME, "tokens_kind": Kind.TEXT,
    "batch": Kind.BOOL, "above_input_tokens": Kind.INT, "per_million": Kind.MONEY, "currency": Kind.TEXT,
    "source": Kind.TEXT, "origin": Kind.TEXT, "by_rule": Kind.BOOL,
}  # fmt: skip
_ASKED = """
SELECT DISTINCT provider, request_model FROM spans
WHERE operation IN ({operations}) AND request_model IS NOT NULL AND request_model IS DISTINCT FROM model
  AND ts >= TIMESTAMP '{start}' AND ts < TIMESTAMP '{end}'
"""
ASKED_UP_TO = 5_000_000
"""Spans looked through for models that were asked for and did not answer: rollups do not have them."""
Pair = tuple[str | None, str]


class PricedReader:
    """A `Reader` over a store that knows prices too: a person's own, imported lists and the library's."""

    def __init__(self, database: "Database", own: "Sequence[Entry]" = ()) -> None:
        """Read `database`; `own` are a person's own prices, of infractl.yaml."""
        self._database, self._own = database, own

    def read(self, query: Query, window: Window) -> "pl.DataFrame":
        """Rows of a query within a window."""
        if isinstance(query, PriceQuery):
            return self._prices(window)
        return self._database.read(query, window)

    def rows_estimate(self, name: str, window: Window) -> int:
        """About how many rows a table has within a window."""
        return self._database.rows_estimate(name, window)

    def newest(self) -> datetime | None:
        """Time of the newest request or sample."""
        return self._database.newest()

    def _prices(self, window: Window) -> "pl.DataFrame":
        import polars as pl

        from collector.prices import periods

        pairs = _pairs(self._database, window)
        pricing = priced_from(self._database, self._own) if pairs else None
        rows = [
            {"provider": provider, "model": model} | row
            for provider, model in pairs
            if pricing is not None
            for period in periods(pricing, provider, model, window.start, window.end)
            for row in price_rows(period)
        ]
        return pl.DataFrame(rows, schema={name: kind.polars() for name, kind in SCHEMA.items()})


def _pairs(database: "Database", window: Window) -> list[Pair]:
    """Return providers and models of the requests, from rollups, and the models asked for unless spans are too many."""
    import polars as pl

    from infractl.pricing import bounds

    answered = database.read(RollupQuery("requests", ("provider", "model")), window).drop_nulls("model")
    found: set[Pair] = set(answered.select("provider", "model").iter_rows())
    if database.rows_estimate("spans", window) <= ASKED_UP_TO:
        asked = pl.DataFrame(database.sql(_ASKED.format(**bounds(window))))
        found |= set(asked.iter_rows())
    return sorted(found, key=lambda pair: (pair[0] or "", pair[1]))


def price_rows(period: "Period") -> Iterator[dict[str, Any]]:
    """Yield the rows of one period: every kind of token, its tiers, and those of batches where stated."""
    price = period.price
    common = {
        "valid_from": _naive(period.start), "valid_to": _naive(period.end), "currency": price.currency,
        "source": str(period.source), "origin": price.origin, "by_rule": price.by_rule,
    }  # fmt: skip
    for batch in (False, True):
        yield from (common | row for row in _rates(price, batch=batch))


def _rates(price: "Price", *, batch: bool) -> Iterator[dict[str, Any]]:
    rates = price.batch if batch else price.rates
    for kind, rate in (rates or {}).items():
        steps = ((0, rate.per_million), *((tier.above_input_tokens, tier.per_million) for tier in rate.tiers))
        for above, per_million in steps:
            yield {
                "tokens_kind": str(kind), "batch": batch, "above_input_tokens": above, "per_million": per_million,
            }  # fmt: skip


def _naive(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=None)
