"""PriceQuery through the reader of a run: prices of the models that requests in the window name, and of no others."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from collector.prices.override import parse_prices
from infractl.priced import SCHEMA, PricedReader
from store.batch import Batch
from store.database import Database
from store.query import PriceQuery, SpanQuery
from store.tables import SPANS
from store.window import Window

AT = datetime(2026, 11, 30, 12)
DAY = Window.last(timedelta(hours=2), AT.replace(tzinfo=UTC) + timedelta(hours=1))
OWN = """
- {model: m-own, input_per_1m: 1, output_per_1m: 2, batch_factor: 0.5, valid_from: 2026-11-30T11:30:00Z,
   tiers: [{above_input_tokens: 1000, input_per_1m: 4}]}
- {model: m-absent, input_per_1m: 1}
"""


@pytest.fixture
def reader(tmp_path: Path) -> PricedReader:
    rows = [("openai", "gpt-4o-2024-08-06", "gpt-4o"), ("vllm", "m-own", None), ("vllm", "m-unknown", None)]
    spans = [
        {
            "trace_id": f"{i:032x}", "span_id": f"{i:016x}", "ts": AT, "operation": "chat", "provider": provider,
            "model": model, "request_model": asked, "input_tokens": 10,
        }
        for i, (provider, model, asked) in enumerate(rows, 1)
    ]  # fmt: skip
    database = Database(tmp_path)
    database.append([Batch("test", {"spans": SPANS.conform(pl.DataFrame(spans))})])
    return PricedReader(database, parse_prices(OWN, "own.yaml"))


def test_prices_are_of_the_models_that_answered_and_those_asked_for(reader: PricedReader) -> None:
    found = reader.read(PriceQuery(), DAY)
    assert set(found["model"]) == {"gpt-4o-2024-08-06", "gpt-4o", "m-own"}
    assert dict(found.schema) == {name: kind.polars() for name, kind in SCHEMA.items()}


def test_tiers_batches_and_the_start_are_rows_of_their_own(reader: PricedReader) -> None:
    own = reader.read(PriceQuery(), DAY).filter(pl.col("model") == "m-own")
    assert own["valid_from"].unique().to_list() == [datetime(2026, 11, 30, 11, 30)]
    rows = {(r["tokens_kind"], r["batch"], r["above_input_tokens"]): r["per_million"] for r in own.to_dicts()}
    assert rows == {
        ("input", False, 0): Decimal(1), ("input", False, 1000): Decimal(4), ("output", False, 0): Decimal(2),
        ("input", True, 0): Decimal("0.5"), ("input", True, 1000): Decimal(2), ("output", True, 0): Decimal(1),
    }  # fmt: skip


def test_very_many_spans_take_their_models_from_rollups(reader: PricedReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infractl.priced.ASKED_UP_TO", 0)
    found = reader.read(PriceQuery(), Window.last(timedelta(days=30), DAY.end))
    assert set(found["model"]) == {"gpt-4o-2024-08-06", "m-own"}


def test_without_requests_there_is_nothing_to_price(reader: PricedReader) -> None:
    past = Window.last(timedelta(hours=1), DAY.start)
    assert reader.read(PriceQuery(), past).height == 0
    assert reader.read(SpanQuery(("ts",)), past).height == 0
