"""`periods`: the stretches of time in which one price of a model holds, found exactly."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from collector.prices.listed import ALWAYS
from collector.prices.price import Price
from collector.prices.pricing import PriceSource, Pricing


@dataclass(frozen=True, slots=True)
class Period:
    """A price and when it holds: from `start` up to, not including, `end` (aware UTC; None: open)."""

    start: datetime | None
    end: datetime | None
    source: PriceSource
    price: Price


def periods(pricing: Pricing, provider: str | None, model: str, start: datetime, end: datetime) -> tuple[Period, ...]:
    """Return the periods of a model's price that touch the time from `start` to `end` (aware), in order.

    A price can change only at the moments that `Pricing.moments` names, so it is looked up once between each two. Of a
    price by time of day every stretch of a day is a period of its own.
    """
    found: list[Period] = []
    for begins, ends in _pieces(pricing, provider, model, start, end):
        known = pricing.found(provider, model, begins)
        last = found[-1] if found else None
        if known is None:
            continue
        if last is not None and last.end == begins and (last.source, last.price) == known:
            found[-1] = replace(last, end=ends)
        else:
            found.append(Period(None if begins <= ALWAYS else begins, ends, *known))
    return tuple(
        period
        for period in found
        if (period.start is None or period.start < end) and (period.end is None or period.end > start)
    )


def _pieces(
    pricing: Pricing, provider: str | None, model: str, start: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime | None]]:
    moments = sorted({ALWAYS, *(at for at in pricing.moments(provider, model, start, end) if at > ALWAYS)})
    yield from zip(moments, [*moments[1:], None], strict=True)
