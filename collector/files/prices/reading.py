"""What the readers of price lists share: exact numbers, and models counted that have no price to store."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from collector.files.refusals import Refusal
from collector.prices.listed import Listed
from collector.prices.price import Rate, Tier, TokenKind

NO_TOKEN_PRICE = "priced by image, second, page or call, or not at all: no price of a token"  # noqa: S105 - no password
ALL_ZERO = "every price is 0, which is free or unknown: a model that is free belongs in your own prices"
NO_NUMBER = "a price that is no number, or below zero"
NO_ENTRY = "no entry of a model"
Steps = Mapping[TokenKind, Iterable[tuple[int, Any]]]


class NoPriceError(ValueError):
    """A model without a price to store; the message is the reason it is counted for."""


@dataclass(slots=True)
class PriceFile:
    """Collects the prices of one file; `path` names places."""

    path: str
    listed: list[Listed] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def refuse(self, reason: str, name: str) -> None:
        """Count a model that is not stored."""
        known = self.refused.get(reason)
        self.refused[reason] = Refusal(known.count + 1, known.first) if known else Refusal(1, f"{self.path} {name}")

    def add(self, name: str, made: Iterator[Listed]) -> None:
        """Take the prices of a model, all or none, or count why not."""
        try:
            self.listed += list(made)
        except NoPriceError as reason:
            self.refuse(str(reason), name)


def rates_of(base: Mapping[TokenKind, Any], steps: Steps, factor: Decimal = Decimal(1)) -> dict[TokenKind, Rate]:
    """Return rates per million from figures that are worth `factor` of one; null figures are left out.

    Raises NoPriceError where a figure is no price, and where there is none or nothing but zeros.
    """
    rates = {}
    for kind, value in base.items():
        if value is not None:
            tiers = [Tier(above, _price(price) * factor) for above, price in steps.get(kind, ()) if price is not None]
            rates[kind] = Rate(_price(value) * factor, tuple(sorted(tiers, key=lambda tier: tier.above_input_tokens)))
    if not rates:
        raise NoPriceError(NO_TOKEN_PRICE)
    if not any(rate.per_million or any(tier.per_million for tier in rate.tiers) for rate in rates.values()):
        raise NoPriceError(ALL_ZERO)
    return rates


def day(text: Any) -> datetime | None:
    """Return 00:00 UTC of a date; None for none. Raises NoPriceError for text that is no date."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        raise NoPriceError("a date that cannot be read") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _price(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value < 1e12:
        raise NoPriceError(NO_NUMBER)
    return Decimal(str(value))
