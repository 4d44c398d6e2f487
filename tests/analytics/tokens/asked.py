"""Inputs of `analyze tokens` as a reader hands them over, from plain rows."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from analytics.result import Result
from analytics.tokens import ANALYSIS, COLUMNS
from collector.prices import Period, Price, PriceSource, Pricing, periods
from collector.prices.override import parse_prices
from infractl.priced import SCHEMA, price_rows
from store.tables import SPANS
from store.window import Window

AT = datetime(2026, 11, 30, 12)
WINDOW = Window.last(timedelta(hours=24), datetime(2026, 11, 30, 18, tzinfo=UTC))
BILL_SCHEMA: dict[str, Any] = {
    "bucket": pl.Datetime("us"), "provider": pl.String, "source": pl.String, "cost_service": pl.String,
    "model": pl.String, "currency": pl.String, "category": pl.String, "cost": pl.Decimal(38, 18),
    "effective": pl.Decimal(38, 18), "quantity": pl.Float64, "requests": pl.Int64, "lines": pl.Int64,
    "span_s": pl.Float64,
}  # fmt: skip


def requests(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of the SpanQuery: ids and times are filled in, a second apart."""
    schema: dict[str, Any] = {name: kind for name, kind in SPANS.schema().items() if name in COLUMNS}
    more: dict[str, Any] = {name: pl.String for row in rows for name in row if name not in schema}
    filled = [
        {"ts": AT + timedelta(seconds=i), "trace_id": f"{i:032x}", "provider": "openai", "model": "m"} | dict(row)
        for i, row in enumerate(rows)
    ]
    return pl.DataFrame(filled, schema=schema | more)


def prices(rows: Iterable[tuple[str | None, str, Price]]) -> pl.DataFrame:
    """Rows of the PriceQuery for prices that always hold."""
    made = [
        {"provider": provider, "model": model} | row
        for provider, model, price in rows
        for row in price_rows(Period(None, None, PriceSource.OVERRIDE, price))
    ]
    return priced_frame(made)


def own(text: str, pairs: Sequence[tuple[str | None, str]], window: Window = WINDOW) -> pl.DataFrame:
    """Rows of the PriceQuery for a person's own list."""
    pricing = Pricing(parse_prices(text, "own.yaml"), library=False)
    made = [
        {"provider": provider, "model": model} | row
        for provider, model in pairs
        for period in periods(pricing, provider, model, window.start, window.end)
        for row in price_rows(period)
    ]
    return priced_frame(made)


def priced_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as the reader types them."""
    return pl.DataFrame(rows, schema={name: kind.polars() for name, kind in SCHEMA.items()})


def bill(lines: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of the CostQuery: usage of OpenAI in dollars where a line says nothing else."""
    usual = {
        "provider": "OpenAI", "source": "openai_costs", "currency": "USD", "category": "Usage", "lines": 1,
        "span_s": 86_400.0,
    }  # fmt: skip
    filled = [usual | dict(line) | {"cost": Decimal(str(line["cost"]))} for line in lines]
    return pl.DataFrame(filled, schema=BILL_SCHEMA)


def answer(
    spans: pl.DataFrame,
    price: pl.DataFrame,
    bills: pl.DataFrame | None = None,
    window: Window = WINDOW,
    **params: Any,
) -> Result:
    """Run the analysis."""
    inputs = {"requests": spans, "prices": price, "bills": bill(()) if bills is None else bills}
    return ANALYSIS.run(inputs, ANALYSIS.make_params(params), window)
