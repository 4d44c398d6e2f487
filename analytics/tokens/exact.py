"""Exact money: whole tokens times decimal prices, added up without a binary fraction in between."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import polars as pl

from analytics.tokens.cards import KINDS, Card, Cards

WIDE = Context(prec=120, rounding=ROUND_HALF_EVEN)
"""More digits than any sum of tokens times any price has."""
_PLACES = Decimal("1e-9")
"""Of means: a token at a thousandth of a dollar a million."""
Key = tuple[Any, ...]


@dataclass(slots=True)
class Sum:
    """Tokens and money of one group by kind, in one currency."""

    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    money: dict[str, Decimal] = field(default_factory=lambda: dict.fromkeys(KINDS, Decimal(0)))

    @property
    def total(self) -> Decimal:
        """Cost of all kinds."""
        whole = Decimal(0)
        for amount in self.money.values():
            whole = WIDE.add(whole, amount)
        return whole

    def add(self, card: Card, tokens: Mapping[str, int]) -> None:
        """Charge tokens by kind."""
        for kind in KINDS:
            if tokens[kind]:
                price = WIDE.scaleb(WIDE.multiply(Decimal(tokens[kind]), card.rates[kind]), Decimal(-6))
                self.tokens[kind] += tokens[kind]
                self.money[kind] = WIDE.add(self.money[kind], price)


def sums(rows: pl.DataFrame, keys: Sequence[str], cards: Cards) -> dict[Key, Sum]:
    """Add up charged rows by keys; of those that lack a price nothing. The currency is the last part of each key."""
    priced = rows.lazy().filter(pl.col("lacks").is_null())  # lazy: only the columns asked for are copied
    grouped = priced.group_by([*keys, "card"]).agg(pl.col(kind).sum() for kind in KINDS).collect()
    found: dict[Key, Sum] = {}
    for row in grouped.iter_rows(named=True):
        card = cards.cards[row["card"]]
        found.setdefault((*(row[key] for key in keys), card.currency), Sum()).add(card, row)
    return found


def over(amount: Decimal, count: int) -> Decimal | None:
    """Return the amount for each of so many, to nine places; null for none."""
    return WIDE.divide(amount, Decimal(count)).quantize(_PLACES, context=WIDE).normalize(WIDE) if count else None


def ratio(part: Decimal, whole: Decimal) -> float | None:
    """Return a share as a float; null where the whole is not above zero."""
    return float(WIDE.divide(part, whole)) if whole > 0 else None
