"""Spend computed from requests: rollups x prices as lines of the shape that a CostQuery has, by kind of token.

So what no bill says yet (or by no label that the bill has) is explained, forecast and budgeted like a bill.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from analytics.tokens.cards import KINDS, Cards, cards_of
from analytics.tokens.charged import TOKENS, charged
from store.columns import Kind

_MONEY = Kind.MONEY.polars()
_MILLIONTH = Decimal("0.000001")
_TEXT = pl.String()
SCHEMA: dict[str, Any] = {
    "bucket": pl.Datetime("us"), "sku": _TEXT, "model": _TEXT, "tokens_kind": _TEXT, "unit": _TEXT,
    "currency": _TEXT, "category": _TEXT, "cost": _MONEY, "effective": _MONEY, "quantity": pl.Float64(),
    "requests": pl.Int64(), "lines": pl.Int64(), "span_s": pl.Float64(),
}  # fmt: skip


def lines(requests: pl.DataFrame, prices: pl.DataFrame, labels: Sequence[str], step_s: int = 3600) -> pl.DataFrame:
    """Return a line per bucket, labels, model and kind of token of requests that have a price.

    `requests` are of a RollupQuery("requests") by labels, provider and model, in steps of `step_s`. Rollups cannot tell
    batches or long prompts, so all is charged at the base price. The requests stand on one line of each model.
    """
    cards = cards_of(prices)
    rows = requests.with_columns(
        *((pl.col(n) if n in requests.columns else pl.lit(None)).cast(pl.Int64).alias(n) for n in TOKENS),
        pl.col("bucket").alias("ts"), pl.lit(value=False).alias("batch"), pl.lit(0, pl.Int64).alias("length"),
        pl.lit(None, pl.Float64).alias("cost_usd"),
    ).sort("ts")  # fmt: skip
    found = charged(rows, cards).filter(pl.col("lacks").is_null())
    keys = list(dict.fromkeys(("bucket", *labels, "model", "card")))
    sums = found.group_by(keys, maintain_order=True).agg(pl.col(*KINDS, "requests").sum())
    kinds = sums.unpivot(KINDS, index=[*keys, "requests"], variable_name="tokens_kind", value_name="tokens")
    priced = kinds.filter(pl.col("tokens") > 0).join(_rates(cards), on=["card", "tokens_kind"], how="inner")
    cost = (pl.col("tokens").cast(pl.Decimal(38, 0)) * pl.col("per_token")).cast(_MONEY)
    first = pl.int_range(pl.len()).over(keys) == 0
    made = priced.sort(*keys, "tokens_kind").with_columns(
        pl.lit(None, pl.String).alias("sku"), pl.lit("tokens").alias("unit"), pl.lit("Usage").alias("category"),
        cost.alias("cost"), cost.alias("effective"), pl.col("tokens").cast(pl.Float64).alias("quantity"),
        pl.when(first).then(pl.col("requests")).alias("requests"), pl.lit(1, pl.Int64).alias("lines"),
        pl.lit(float(step_s)).alias("span_s"),
    )  # fmt: skip
    own = [name for name in labels if name not in SCHEMA]
    return made.select(*(pl.col(n).cast(pl.String) for n in own), *(pl.col(n).cast(t) for n, t in SCHEMA.items()))


def _rates(cards: Cards) -> pl.DataFrame:
    """Return the price of one token per card and kind."""
    made = [
        {"card": number, "tokens_kind": kind, "per_token": rate * _MILLIONTH, "currency": card.currency}
        for number, card in enumerate(cards.cards)
        for kind, rate in card.rates.items()
    ]
    types: dict[str, Any] = {"card": pl.Int64(), "tokens_kind": _TEXT, "per_token": _MONEY, "currency": _TEXT}
    return pl.DataFrame(made, schema=types)
