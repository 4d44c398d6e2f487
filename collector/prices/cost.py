"""`cost_of`: the exact cost of a request's tokens, or none where no price is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from collector.prices.price import Price, Rate, TokenKind
from collector.prices.usage import CACHED_ABOVE_PROMPT, REASONING_ABOVE_OUTPUT, Usage

_MILLION = Decimal(1_000_000)
_FAR = 100  # times the dearest list price: no discount or fee explains it, a unit does


@dataclass(frozen=True, slots=True)
class CostResult:
    """Cost in `currency`, None where unpriced; `quality` says why, and what was put right or assumed."""

    amount: Decimal | None
    currency: str | None
    quality: tuple[str, ...] = ()


def cost_of(usage: Usage, price: Price | None) -> CostResult:
    """Return what a request costs.

    Every token is charged once: uncached prompt, cached prompt, cache writes, output, and reasoning where it has a
    price of its own. Cached and written tokens without one cost what the prompt does, and the result says so. Unpriced
    ('unpriced', amount None) is a request without a price, without counts ('no_tokens'), or with a kind of token that
    has none.
    """
    if price is None:
        return CostResult(None, None, (*usage.quality, "unpriced"))
    if usage.input_tokens is None and usage.output_tokens is None:
        return CostResult(None, None, (*usage.quality, "unpriced", "no_tokens"))
    rates, doubts = _rates(usage, price)
    counts, clamped = _counts(usage, rates)
    quality = [*usage.quality, *(["model_by_rule"] if price.by_rule else []), *doubts, *clamped]
    amount = Decimal(0)
    for kind, tokens in counts.items():
        rate = rates.get(kind)
        if rate is None and kind in (TokenKind.CACHED_INPUT, TokenKind.CACHE_WRITE) and tokens:
            rate = rates.get(TokenKind.INPUT)
            quality.append(f"{kind}_at_input_price")
        if rate is not None:
            amount += rate.at(usage.input_tokens or 0) * tokens
        elif tokens:
            return CostResult(None, None, (*dict.fromkeys(quality), "unpriced", f"no_{kind}_price"))
    return CostResult(amount / _MILLION, price.currency, tuple(dict.fromkeys(quality)))


def is_far_above(cost: Decimal, usage: Usage, price: Price) -> bool:
    """Tell whether a stated cost is over 100 times what its tokens cost at most: its unit must be another one."""
    dearest = max((rate.at(usage.input_tokens or 0) for rate in price.rates.values()), default=Decimal(0))
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return cost > dearest * tokens * _FAR / _MILLION


def _rates(usage: Usage, price: Price) -> tuple[Mapping[TokenKind, Rate], tuple[str, ...]]:
    if not usage.batch:
        return price.rates, ()
    return (price.rates, ("no_batch_price",)) if price.batch is None else (price.batch, ())


def _counts(usage: Usage, rates: Mapping[TokenKind, Rate]) -> tuple[dict[TokenKind, int], tuple[str, ...]]:
    """Tokens to charge by kind; no token twice, none negative."""
    prompt, output = max(usage.input_tokens or 0, 0), max(usage.output_tokens or 0, 0)
    cached = min(max(usage.cached_input_tokens or 0, 0), prompt)
    written = min(max(usage.cache_write_tokens or 0, 0), prompt - cached)
    reasoning = min(max(usage.reasoning_tokens or 0, 0), output) if TokenKind.REASONING in rates else 0
    doubts = []
    if (usage.cached_input_tokens or 0) + (usage.cache_write_tokens or 0) > prompt:
        doubts.append(CACHED_ABOVE_PROMPT)
    if (usage.reasoning_tokens or 0) > output:
        doubts.append(REASONING_ABOVE_OUTPUT)
    counts = {
        TokenKind.INPUT: prompt - cached - written,
        TokenKind.CACHED_INPUT: cached,
        TokenKind.CACHE_WRITE: written,
        TokenKind.OUTPUT: output - reasoning,
        TokenKind.REASONING: reasoning,
    }
    return counts, tuple(doubts)
