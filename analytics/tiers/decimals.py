"""The plainest decimal within an interval: prices and limits of price lists are short numbers."""

from decimal import ROUND_CEILING, Decimal
from math import isfinite


def plainest(low: float, high: float) -> Decimal | None:
    """Return the number of fewest decimals in [low, high]: of several, zero, else that nearest the middle."""
    if not (isfinite(low) and isfinite(high)) or low > high:
        return None
    if low <= 0 <= high:
        return Decimal(0)
    least, most = Decimal(low), Decimal(high)
    for places in range(-15, 19):
        unit = Decimal(1).scaleb(-places)
        first = (least / unit).to_integral_value(ROUND_CEILING) * unit
        if first <= most:
            middle = ((least + most) / 2 / unit).to_integral_value() * unit
            return Decimal(f"{middle if least <= middle <= most else first:f}")
    return None
