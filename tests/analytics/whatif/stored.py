"""Hours of requests, prices and costs as the store would hand them over, with known truth."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from analytics.result import Result
from analytics.whatif import ANALYSIS
from infractl.priced import SCHEMA as PRICES
from store.database import Database
from store.query import PriceQuery
from store.window import Window

END = datetime(2026, 11, 30)


def window_of(days: float) -> Window:
    """Window of so many days up to END."""
    return Window(END.replace(tzinfo=UTC) - timedelta(days=days), END.replace(tzinfo=UTC))


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    """Columns of every input: a store without rows knows them."""
    queries: Any = ANALYSIS.inputs(ANALYSIS.make_params({}))
    with TemporaryDirectory() as directory, Database(Path(directory)) as database:
        return {
            name: {column: kind.polars() for column, kind in PRICES.items()}
            if isinstance(query, PriceQuery)
            else dict(database.read(query, window_of(1)).schema)
            for name, query in queries.items()
        }


def run(window: Window, frames: dict[str, pl.DataFrame] | None = None, **params: Any) -> Result:
    """Answer; inputs that are not given have no rows."""
    inputs = {name: pl.DataFrame(schema=schema) for name, schema in _schemas().items()}
    inputs |= frames or {}
    return ANALYSIS.run(inputs, ANALYSIS.make_params(params), window)


def framed(name: str, rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows of an input."""
    schema = _schemas()[name]
    return pl.DataFrame({c: pl.Series(c, [r.get(c) for r in rows], t, strict=False) for c, t in schema.items()})


def hours(
    days: int, per_hour: Any, models: Sequence[dict[str, Any]], seed: int = 1, noise: float = 0.0
) -> pl.DataFrame:
    """Hourly rows up to END: requests per hour (a number, or a function of the hour), shared out over models.

    A model has `model`, `share`, tokens of a request (input, cached, output) and `e2e_s`.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for back in range(days * 24, 0, -1):
        at = END - timedelta(hours=back)
        base = per_hour(at) if callable(per_hour) else per_hour
        base *= float(np.exp(rng.normal(0, noise))) if noise else 1.0
        for one in models:
            n = round(base * one.get("share", 1.0))
            rows.append(
                {"bucket": at, "provider": "p", "model": one["model"], "service": one.get("service", "chat")}
                | {
                    "requests": n,
                    "input_tokens": n * one.get("input", 1000),
                    "output_tokens": n * one.get("output", 100),
                }
                | {"cached_input_tokens": n * one["cached"] if "cached" in one else None}
                | {"e2e_n": n, "e2e_sum_s": n * one.get("e2e_s", 2.0)}
            )
    return framed("hours", rows)


def prices(**models: tuple[float, ...]) -> pl.DataFrame:
    """Prices of models (input, output, cached of a million tokens); `__` in a name stands for a dash."""
    kinds = ("input", "output", "cached_input")
    return framed(
        "prices",
        [
            {"provider": "p", "model": name.replace("__", "-"), "valid_from": datetime(1970, 1, 1), "tokens_kind": kind}
            | {"batch": False, "above_input_tokens": 0, "per_million": Decimal(str(amount)), "currency": "USD"}
            for name, amounts in models.items()
            for kind, amount in zip(kinds, amounts, strict=False)
        ],
    )


def total(result: Result) -> dict[str, Any]:
    """Row of the total, money as floats."""
    row = result.frames["yearly"].filter(pl.col("part") == "total").row(0, named=True)
    return {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()}


def of_input(result: Result, name: str) -> dict[str, Any]:
    """Row of an input."""
    return result.frames["inputs"].filter(pl.col("input") == name).row(0, named=True)
