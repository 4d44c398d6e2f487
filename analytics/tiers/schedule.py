"""`Schedule`: unit prices by quantity within a billing month, and what a quantity costs by them, exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import pairwise
from typing import Literal

from store.errors import UsageError

Model = Literal["graduated", "volume"]
_EXACT = Context(prec=100)
ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Tier:
    """From this quantity on, each unit costs this much."""

    from_q: Decimal
    unit_price: Decimal


@dataclass(frozen=True, slots=True)
class Schedule:
    """Prices of one item within one billing month; quantities begin at nothing on its first day.

    Graduated: each unit costs the price of the tier it falls in, so the cost is continuous. Volume: all units cost the
    price of the tier that the total lies in, a quantity equal to `from_q` still that below. A `fee` is added to either;
    no month costs less than `minimum`. `known_to` is the largest quantity that any bill showed: beyond it the last
    price is carried on, which nothing supports.
    """

    model: Model
    tiers: tuple[Tier, ...]
    fee: Decimal = ZERO
    minimum: Decimal = ZERO
    known_to: Decimal | None = None

    def __post_init__(self) -> None:
        starts = [tier.from_q for tier in self.tiers]
        if not starts or starts[0] != 0 or any(b <= a for a, b in pairwise(starts)):
            raise ValueError("tiers begin at 0 and rise")

    def cost(self, quantity: Decimal) -> Decimal:
        """Return what a month with this quantity costs in total, not rounded; a quantity below 0 counts as 0."""
        q = max(quantity, ZERO)
        charged = self._graduated(q) if self.model == "graduated" else self._volume(q)
        return max(_EXACT.add(self.fee, charged), self.minimum)

    def added(self, before: Decimal, after: Decimal) -> Decimal:
        """Return what going from one quantity of the month to a later one adds to its cost."""
        return _EXACT.subtract(self.cost(after), self.cost(before))

    def knows(self, quantity: Decimal) -> bool:
        """Say whether a bill supports the price at this quantity."""
        return self.known_to is None or quantity <= self.known_to

    def tier_of(self, quantity: Decimal) -> Tier:
        """Return the tier that the unit which completes this quantity falls in."""
        return next((tier for tier in reversed(self.tiers) if tier.from_q < quantity), self.tiers[0])

    def _volume(self, q: Decimal) -> Decimal:
        return _EXACT.multiply(q, self.tier_of(q).unit_price)

    def _graduated(self, q: Decimal) -> Decimal:
        total = ZERO
        ends = [tier.from_q for tier in self.tiers[1:]] + [q]
        for tier, end in zip(self.tiers, ends, strict=True):
            units = max(min(q, end) - tier.from_q, ZERO)
            total = _EXACT.add(total, _EXACT.multiply(units, tier.unit_price))
        return total


def parse_schedule(texts: Sequence[str], model: Model = "graduated") -> Schedule:
    """Read tiers like '0:1.20', '50:0.95'. Raises UsageError for what is none."""
    try:
        pairs = sorted(_pair(text) for text in texts)
        return Schedule(model, tuple(Tier(start, price) for start, price in pairs))
    except (ValueError, ArithmeticError) as error:
        raise UsageError(
            f"{','.join(texts)!r} is no price schedule", "write it like 0:1.20,50:0.95,200:0.78"
        ) from error


def _pair(text: str) -> tuple[Decimal, Decimal]:
    first, colon, second = text.partition(":")
    pair = Decimal(first.strip()), Decimal(second.strip())
    if not colon or not all(number.is_finite() for number in pair):
        raise ValueError(text)
    return pair
