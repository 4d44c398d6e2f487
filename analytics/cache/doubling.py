"""What twice the cache would have saved, in money: cached tokens cost less, or prefill takes less GPU time."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import polars as pl

from analytics.cache import CacheParams

MILLION, HOUR_S = Decimal(1_000_000), Decimal(3600)


def rows(
    at_size: Mapping[str, Any], requests: pl.DataFrame, prices: pl.DataFrame | None, params: CacheParams, end: datetime
) -> list[dict[str, Any]]:
    """One row per model with a price for cached tokens, and one of GPU time where --gpu-hour is given.

    `at_size` is the row of the curve at --blocks. Tokens saved are of the mean traced request, whatever its model.
    """
    tokens, seconds = at_size["tokens_saved_per_request"], at_size["ttft_saved_s"]
    common = {"blocks": at_size["blocks"], "tokens_saved_per_request": tokens}
    made = []
    if tokens is not None and prices is not None:
        priced = {(row["provider"], row["model"], row["currency"]): row for row in _in_force(prices, end)}
        for row in _models(requests):
            for (provider, model, currency), price in priced.items():
                if (provider, model) == (row["provider"], row["model"]):
                    per_million = price["input"] - price["cached_input"]
                    each = Decimal(repr(tokens)) * per_million / MILLION
                    named = {"basis": "price list", "currency": currency, "saved_per_million": per_million}
                    made.append(common | row | named | _money(each, row["requests"]))
    if seconds is not None and params.gpu_hour > 0:
        gpu_s = seconds * params.gpus
        each = Decimal(repr(gpu_s)) * Decimal(repr(params.gpu_hour)) / HOUR_S
        total = sum(row["requests"] for row in _models(requests))
        row = {"basis": "GPU time", "currency": params.currency, "gpu_s_saved_per_request": gpu_s, "requests": total}
        made.append(common | row | _money(each, total))
    return made


def _money(each: Decimal, requests: int) -> dict[str, Decimal]:
    places = Decimal("1e-12")
    return {"saved_per_1k_requests": (each * 1000).quantize(places), "saved": (each * requests).quantize(places)}


def _models(requests: pl.DataFrame) -> list[dict[str, Any]]:
    """Count requests by provider and model; of a share that was read, as many as all would be."""
    share = requests["share_read"].drop_nulls().min() if "share_read" in requests.columns else None
    scale = 1.0 if not isinstance(share, float) or share <= 0 else 1 / share
    counted = requests.group_by("provider", "model").agg(pl.len().alias("requests")).sort("provider", "model")
    return [row | {"requests": round(row["requests"] * scale)} for row in counted.to_dicts()]


def _in_force(prices: pl.DataFrame, end: datetime) -> list[dict[str, Any]]:
    """Prices of input and cached input at the end of the window, of plain requests (no batch, no long-prompt tier)."""
    now = prices.filter(
        pl.col("valid_from") < end,
        pl.col("valid_to").is_null() | (pl.col("valid_to") >= end),
        ~pl.col("batch"),
        pl.col("above_input_tokens") == 0,
        pl.col("tokens_kind").is_in(["input", "cached_input"]),
    )
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in now.sort("valid_from").iter_rows(named=True):
        key = (row["provider"], row["model"], row["currency"])
        found.setdefault(key, dict(zip(("provider", "model", "currency"), key, strict=True)))
        found[key][row["tokens_kind"]] = row["per_million"]
    return [row for row in found.values() if "input" in row and "cached_input" in row]
