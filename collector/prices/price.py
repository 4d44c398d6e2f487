"""`Price`: what the tokens of one model cost at one time, exact."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class TokenKind(StrEnum):
    """Kinds of tokens that have a price of their own."""

    INPUT = "input"
    CACHED_INPUT = "cached_input"
    CACHE_WRITE = "cache_write"
    OUTPUT = "output"
    REASONING = "reasoning"


@dataclass(frozen=True, slots=True)
class Tier:
    """Price per million tokens of a request whose prompt is longer than `above_input_tokens`."""

    above_input_tokens: int
    per_million: Decimal


@dataclass(frozen=True, slots=True)
class Rate:
    """Price per million tokens; the highest tier that a request reaches holds for all its tokens."""

    per_million: Decimal
    tiers: tuple[Tier, ...] = ()

    def at(self, input_tokens: int) -> Decimal:
        """Return the price per million tokens of a request with a prompt that long."""
        reached = [tier for tier in self.tiers if input_tokens > tier.above_input_tokens]
        return max(reached, key=lambda tier: tier.above_input_tokens).per_million if reached else self.per_million

    def times(self, factor: Decimal) -> "Rate":
        """Return the rate with every price multiplied."""
        tiers = tuple(Tier(t.above_input_tokens, t.per_million * factor) for t in self.tiers)
        return Rate(self.per_million * factor, tiers)


@dataclass(frozen=True, slots=True)
class Price:
    """Rates by kind of token, in `currency`.

    `batch` holds the rates of batch requests, None where no price list states them. `by_rule` tells that the list knows
    the model by a pattern ('starts with …'), not by its very name. `origin` names the list.
    """

    model: str
    rates: Mapping[TokenKind, Rate]
    batch: Mapping[TokenKind, Rate] | None = None
    currency: str = "USD"
    by_rule: bool = False
    origin: str = ""
