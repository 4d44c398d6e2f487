"""Numbers, times and lengths of time as people read them: unit beside the number, no raw tails, times in a zone."""

from datetime import UTC, datetime, timedelta
from math import floor, log10
from zoneinfo import ZoneInfo

from store.zone import DEFAULT

MISSING = "–"
"""What stands where there is no value; never a zero."""

UNNAMED = "(none)"
"""What a service without a name is called."""

TINY = 1e-6
"""What is smaller is not spelt out: fifteen zeros say no more."""

_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_IEC = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def number(value: float | None, digits: int = 3) -> str:
    """Write a plain number with `digits` significant digits and an SI prefix from 10,000 on."""
    if value is None or value != value:
        return MISSING
    value = float(value)  # money is decimal
    for size, prefix in _SI:
        if abs(value) >= max(size, 10_000):
            return f"{_significant(value / size, digits)} {prefix}"
    if 0 < abs(value) < TINY:
        return f"< {TINY:.6f}" if value > 0 else f"> -{TINY:.6f}"
    return _significant(value, digits)


def count(value: float | None) -> str:
    """Write a whole number in full, thousands apart."""
    return MISSING if value is None or value != value else f"{round(value):,}"


def seconds(value: float | None) -> str:
    """Write seconds in the unit that fits: 412 ms, 1.23 s, 2 min 5 s."""
    if value is None or value != value:
        return MISSING
    size = abs(value)
    if size >= 120:
        return span(timedelta(seconds=value))
    if size >= 1 or size == 0:
        return f"{_significant(value)} s"
    return f"{_significant(value * 1e3)} ms" if size >= 1e-3 else f"{_significant(value * 1e6)} µs"


def ratio(value: float | None) -> str:
    """Write a share of one as a percentage."""
    return MISSING if value is None or value != value else f"{_significant(value * 100)} %"


def quantity(value: float | None, unit: str) -> str:
    """Write a value in the reader's form of its base unit (s, ratio, bytes, USD, any other)."""
    if value is None or value != value:
        return MISSING
    if unit == "s":
        return seconds(value)
    if unit == "ratio":
        return ratio(value)
    if unit == "bytes":
        fit = next(((size, name) for size, name in _IEC if abs(value) >= size), (1, "B"))
        return f"{_significant(value / fit[0])} {fit[1]}"
    return f"{value:,.2f} USD" if unit == "USD" else f"{number(value)} {unit}".rstrip()


def span(length: timedelta) -> str:
    """Write a length of time with its two largest units: 2 d 3 h, 2 h 10 min, 45 s."""
    left = round(abs(length.total_seconds()))
    parts: list[str] = []
    for name, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= size and len(parts) < 2:
            parts.append(f"{left // size} {name}")
            left %= size
        elif parts:
            break
    return " ".join(parts) or "0 s"


def moment(at: datetime | None, beside: datetime | None = None, zone: ZoneInfo = DEFAULT) -> str:
    """Write a time of day in a zone, with its date unless that is the date of `beside`; a naive time is UTC."""
    if at is None:
        return MISSING
    at = aware(at).astimezone(zone)
    same_day = beside is not None and aware(beside).astimezone(zone).date() == at.date()
    return f"{at:%H:%M}" if same_day else f"{at.day} {at:%b %H:%M}"


def instant(at: datetime | None, zone: ZoneInfo = DEFAULT) -> str:
    """Write a time exactly, to the millisecond, in a zone."""
    if at is None:
        return MISSING
    local = aware(at).astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03d}"


def aware(at: datetime) -> datetime:
    """Return the time with its zone: frames hold naive UTC."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def plural(amount: int, noun: str) -> str:
    """Write '1 request', '12,034 requests'."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def _significant(value: float, digits: int = 3) -> str:
    if value == 0:
        return "0"
    decimals = max(digits - 1 - floor(log10(abs(value))), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
