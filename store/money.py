"""Money as exact decimals: read from text, rounded half to even at 18 places, written without losing a digit."""

from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

PLACES = 18
"""Decimal places of Kind.MONEY; 20 digits are left before the point."""
_UNIT = Decimal(1).scaleb(-PLACES)
_EXACT = Context(prec=38, rounding=ROUND_HALF_EVEN)
_WIDE = Context(prec=400)
_WHOLE = frozenset(
    {"BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF"}
)
"""Currencies without a minor unit (ISO 4217)."""
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
_FITS = r"^[-+]?\d{1,20}(\.\d{0,18})?$"


def rounded(amount: Decimal) -> Decimal | None:
    """Return the amount at 18 places, half to even; None where it has more than 20 digits before the point."""
    try:
        return amount.quantize(_UNIT, context=_EXACT)
    except InvalidOperation:
        return None


def shifted(amount: Decimal, places: int) -> Decimal:
    """Return the amount times ten to the power of `places`, exactly."""
    return amount.scaleb(places, context=_WIDE)


def money_text(amount: Decimal) -> str:
    """Write a decimal in full, without exponent: trailing zeros go, two places stay where the type has them."""
    text = f"{amount:f}"
    whole, point, fraction = text.partition(".")
    if not point:
        return text
    least = min(2, len(fraction))
    return f"{whole}.{fraction.rstrip('0').ljust(least, '0')}"


def amount_text(amount: Decimal, currency: str | None) -> str:
    """Write an amount with its currency; one without a minor unit (yen) has no decimals where there are none."""
    text = money_text(amount)
    text = text.removesuffix(".00") if currency in _WHOLE else text
    return f"{text} {currency or 'in no stated currency'}"


def minor_places(currency: str | None) -> int:
    """Return to how many places a bill in this currency is rounded at least: 2, or 0 without a minor unit."""
    return 0 if currency in _WHOLE else 2


def read_money(texts: "pl.Series") -> tuple["pl.Series", "pl.Series", "pl.Series"]:
    """Read a column of texts: the amounts, where a text is none, and where one lost digits.

    Null is what is missing, NaN or infinite. No amount is a text that is no number, and a number of more than 20 digits
    before the point.
    """
    import polars as pl

    numeric = texts.str.contains(_NUMBER)
    nothing = texts.str.to_lowercase().str.strip_chars("+-").is_in(["nan", "inf", "infinity"])
    plain = texts.str.contains(_FITS).fill_null(False)
    kind = pl.Decimal(38, PLACES)
    amounts = texts.set(~plain, None).cast(kind)
    odd = (numeric.fill_null(False) & ~plain).arg_true()
    lost = pl.Series("rounded", [False]).new_from_index(0, texts.len())
    if odd.len():
        read = [Decimal(text) for text in texts.gather(odd)]
        kept = [rounded(amount) for amount in read]
        amounts = amounts.scatter(odd, pl.Series(kept, dtype=kind))
        lost = lost.scatter(odd, [k is not None and k != r for k, r in zip(kept, read, strict=True)])
    bad = texts.is_not_null() & amounts.is_null() & ~nothing.fill_null(False)
    return amounts, bad, lost
