"""What twice the cache is worth: in the price of cached tokens, and in GPU time."""

from datetime import timedelta
from decimal import Decimal

import polars as pl
import pytest

from tests.analytics.cache.given import run
from tests.analytics.frames_of import START, requests, times

N = 40


def traced() -> dict[str, pl.DataFrame]:
    """Blocks of 100 tokens that come again after 4 others: a cache of 4 finds none of them, one of 8 all."""
    prompts = [[i % 5] for i in range(N)]
    blocks = pl.DataFrame({"ts": times(range(N)), "service": "llm", "block_hashes": prompts, "block_size": 100,
                           "unit": "tokens"})  # fmt: skip
    columns = {"ts": times(range(N)), "provider": ["openai"] * 30 + ["own"] * 10, "model": ["gpt-4o"] * 30 + ["x"] * 10}
    spans = requests(columns | {"service": ["llm"] * N, "input_tokens": [1000] * N, "prefill_s": [0.5] * N})
    return {"blocks": blocks, "requests": spans}


def price(kind: str, per_million: str, **more: object) -> dict[str, object]:
    row = {"provider": "openai", "model": "gpt-4o", "valid_from": START - timedelta(days=9), "valid_to": None}
    row |= {"tokens_kind": kind, "batch": False, "above_input_tokens": 0, "per_million": Decimal(per_million)}
    return row | {"currency": "USD"} | more


def prices(*rows: dict[str, object]) -> pl.DataFrame:
    types = {"per_million": pl.Decimal(38, 18), "valid_from": pl.Datetime("us"), "valid_to": pl.Datetime("us")}
    return pl.DataFrame(list(rows), schema_overrides=types)


def test_tokens_found_instead_of_computed_cost_less_by_the_difference_of_two_prices() -> None:
    given = traced() | {"prices": prices(price("input", "2.50"), price("cached_input", "1.25"))}
    (row,) = run(given, blocks=4).frames["doubling"].to_dicts()
    saved = 100 * (N - 5) / N  # every access but the first of each block
    assert row["tokens_saved_per_request"] == pytest.approx(saved)
    assert (row["provider"], row["model"], row["currency"], row["requests"]) == ("openai", "gpt-4o", "USD", 30)
    assert row["saved_per_million"] == Decimal("1.25")
    assert row["saved_per_1k_requests"] == Decimal(repr(saved)) * 1000 * Decimal("1.25") / 1_000_000
    assert row["saved"] == Decimal(repr(saved)) * 30 * Decimal("1.25") / 1_000_000


def test_only_the_base_price_in_force_at_the_end_counts() -> None:
    old = {"valid_to": START - timedelta(days=1)}
    given = prices(
        price("input", "9", **old), price("input", "2.50"), price("input", "7", above_input_tokens=200_000),
        price("input", "1", batch=True), price("cached_input", "1.25"),
    )  # fmt: skip
    (row,) = run(traced() | {"prices": given}, blocks=4).frames["doubling"].to_dicts()
    assert row["saved_per_million"] == Decimal("1.25")


def test_without_a_price_of_cached_tokens_there_is_no_saving_and_gpu_time_has_its_own() -> None:
    given = traced() | {"prices": prices(price("input", "2.50"))}
    assert run(given, blocks=4).frames["doubling"].is_empty()
    (row,) = run(given, blocks=4, gpu_hour=3.6, gpus=2, currency="EUR").frames["doubling"].to_dicts()
    seconds = 100 * (N - 5) / N * 0.5 / 1000 * 2
    assert (row["basis"], row["currency"], row["requests"]) == ("GPU time", "EUR", N)
    assert row["gpu_s_saved_per_request"] == pytest.approx(seconds)
    assert float(row["saved_per_1k_requests"]) == pytest.approx(seconds * 1000 * 3.6 / 3600)
