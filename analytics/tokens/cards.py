"""Rate cards: the prices of one model, one period, one length of prompt; each request is charged by one of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import polars as pl

INPUT, CACHED, WRITTEN, OUTPUT, REASONING = KINDS = ("input", "cached_input", "cache_write", "output", "reasoning")
"""Kinds of tokens with a price of their own, in the order in which a missing price is named."""
_ALWAYS = datetime.min  # noqa: DTZ901 - frames hold naive UTC
Steps = Mapping[str, Sequence[tuple[int, Decimal]]]
"""Of each kind, (above so many prompt tokens, price of a million), the base first."""


@dataclass(frozen=True, slots=True)
class Card:
    """Prices of a million tokens by kind, in `currency`.

    Cached and written tokens that the list has no price for cost what the prompt does: `assumed` names those kinds.
    `dearest` is the highest price of any kind outside of batches.
    """

    rates: Mapping[str, Decimal]
    assumed: frozenset[str]
    dearest: Decimal
    currency: str
    by_rule: bool
    no_batch_price: bool


@dataclass(frozen=True, slots=True)
class Cards:
    """All cards, and which one is for which model, time, length of prompt and batch."""

    cards: tuple[Card, ...]
    periods: pl.DataFrame
    thresholds: tuple[str, ...]
    tiered: frozenset[str]

    def assign(self, rows: pl.DataFrame, model: str = "model") -> pl.DataFrame:
        """Add column card (null: no price) to rows with provider, `model`, ts, length and batch, ordered by ts.

        A tier holds for all tokens of a request whose prompt is longer than its bound.
        """
        if not self.cards:
            return rows.with_columns(pl.lit(None, pl.Int64).alias("card"))
        keys = pl.col("provider").fill_null("").alias("_provider"), pl.col(model).fill_null("").alias("_model")
        joined = rows.with_columns(*keys, pl.col("ts").cast(pl.Datetime("us"))).join_asof(
            self.periods, left_on="ts", right_on="_from", by=("_provider", "_model"), check_sortedness=False
        )
        holds = pl.col("_to").is_null() | (pl.col("ts") < pl.col("_to"))
        steps = [(pl.col("length") > pl.col(name)).fill_null(value=False).cast(pl.Int64) for name in self.thresholds]
        step = pl.sum_horizontal(steps) if steps else pl.lit(0)
        card = pl.when(holds).then(pl.col("_base") + 2 * step + pl.col("batch").cast(pl.Int64))
        return joined.with_columns(card.cast(pl.Int64).alias("card")).drop(
            "_provider", "_model", "_from", "_to", "_base", *self.thresholds, strict=False
        )

    def rates(self) -> pl.DataFrame:
        """Return the cards as a frame to join: prices as floats, what they assume, and whether reasoning is apart."""
        rows = [
            {
                "card": number, "currency": card.currency, "by_rule": card.by_rule, "dearest": float(card.dearest),
                "no_batch_price": card.no_batch_price, "apart": REASONING in card.rates,
                **{f"rate_{kind}": None if (rate := card.rates.get(kind)) is None else float(rate) for kind in KINDS},
                **{f"assumed_{kind}": kind in card.assumed for kind in (CACHED, WRITTEN)},
            }
            for number, card in enumerate(self.cards)
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=_RATES)


_RATES = {
    "card": pl.Int64, "currency": pl.String, "by_rule": pl.Boolean, "dearest": pl.Float64,
    "no_batch_price": pl.Boolean, "apart": pl.Boolean,
    **{f"rate_{kind}": pl.Float64 for kind in KINDS},
    **{f"assumed_{kind}": pl.Boolean for kind in (CACHED, WRITTEN)},
}  # fmt: skip


def cards_of(prices: pl.DataFrame) -> Cards:
    """Make cards of the rows of a PriceQuery."""
    known = prices.filter(pl.col("tokens_kind").is_in(KINDS), pl.col("per_million").is_not_null())
    grouped: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in known.iter_rows(named=True):
        grouped[row["provider"] or "", row["model"] or "", row["valid_from"] or _ALWAYS].append(row)
    cards: list[Card] = []
    periods, tiered = [], set()
    for (provider, model, start), rows in sorted(grouped.items()):
        bounds = sorted({row["above_input_tokens"] or 0 for row in rows} | {0})
        tiered |= {model} if len(bounds) > 1 else set()
        periods.append((provider, model, start, rows[0]["valid_to"], len(cards), *bounds[1:]))
        cards += [card for bound in bounds for card in _pair(rows, bound)]
    widest = max((len(period) for period in periods), default=5)
    thresholds = tuple(f"_above_{n}" for n in range(widest - 5))
    names = ("_provider", "_model", "_from", "_to", "_base", *thresholds)
    filled = [period + (None,) * (widest - len(period)) for period in periods]
    types: dict[str, Any] = dict.fromkeys(names, pl.Int64) | dict.fromkeys(names[:2], pl.String)
    types |= dict.fromkeys(names[2:4], pl.Datetime("us"))
    frame = pl.DataFrame(filled, schema=types, orient="row").sort("_from")
    return Cards(tuple(cards), frame, thresholds, frozenset(tiered))


def _pair(rows: Sequence[Mapping[str, Any]], bound: int) -> tuple[Card, Card]:
    """Cards of plain and of batch requests with a prompt above the bound; a batch without its price pays the plain."""
    plain = _rates(rows, bound, batch=False)
    batch = _rates(rows, bound, batch=True)
    dearest = max(plain.values(), default=Decimal(0))
    about = str(rows[0]["currency"] or ""), bool(rows[0]["by_rule"])
    return _card(plain, dearest, *about, no_batch_price=False), _card(
        batch or plain, dearest, *about, no_batch_price=not batch
    )


def _rates(rows: Sequence[Mapping[str, Any]], bound: int, *, batch: bool) -> dict[str, Decimal]:
    """Of each kind the price of its highest tier up to the bound."""
    found: dict[str, tuple[int, Decimal]] = {}
    for row in rows:
        above = row["above_input_tokens"] or 0
        kind = row["tokens_kind"]
        if bool(row["batch"]) is batch and above <= bound and (kind not in found or above >= found[kind][0]):
            found[kind] = (above, row["per_million"])
    return {kind: rate for kind, (_, rate) in found.items()}


def _card(rates: dict[str, Decimal], dearest: Decimal, currency: str, by_rule: bool, *, no_batch_price: bool) -> Card:
    assumed = frozenset(kind for kind in (CACHED, WRITTEN) if kind not in rates and INPUT in rates)
    whole = rates | (dict.fromkeys(assumed, rates[INPUT]) if assumed else {})
    return Card(whole, assumed, dearest, currency, by_rule, no_batch_price)
