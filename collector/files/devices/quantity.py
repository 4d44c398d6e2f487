"""Values as nvidia-smi prints them ('250.00 W', '16384 MiB', '0x44', '[N/A]') → numbers in base units."""

import math
import re

_NUMBER = re.compile(r"^([-+]?\d[\d.,]*)\s*([^\d\s].*)?$")
_HEX = re.compile(r"^0x[0-9a-f]{1,16}$", re.IGNORECASE)
_MISSING = frozenset(
    {"", "-", "n/a", "na", "nan", "not supported", "not available", "unknown error", "err!", "unknown"}
)
_DEPRECATED = "requested functionality has been deprecated"
_UNITS: dict[str, tuple[str, float]] = {
    "": ("", 1.0), "x": ("", 1.0), "bank(s)": ("", 1.0),
    "%": ("ratio", 0.01),
    "mW": ("W", 1e-3), "W": ("W", 1.0), "kW": ("W", 1e3),
    "B": ("bytes", 1.0), "KiB": ("bytes", 2.0**10), "MiB": ("bytes", 2.0**20), "GiB": ("bytes", 2.0**30),
    "Hz": ("Hz", 1.0), "MHz": ("Hz", 1e6), "Mhz": ("Hz", 1e6), "GHz": ("Hz", 1e9),
    "C": ("C", 1.0),
    "B/s": ("bytes/s", 1.0), "KB/s": ("bytes/s", 1e3), "MB/s": ("bytes/s", 1e6), "GB/s": ("bytes/s", 1e9),
    "ns": ("s", 1e-9), "us": ("s", 1e-6), "ms": ("s", 1e-3), "s": ("s", 1.0),
}  # fmt: skip
"""What each printed unit measures, and its factor to the base unit."""


def is_missing(text: str) -> bool:
    """Tell whether a field says that there is no value: 'N/A', '[Not Supported]', anything else in brackets."""
    plain = text.strip().lower()
    return plain in _MISSING or plain.startswith(("[", _DEPRECATED)) or is_lost(plain)


def is_lost(text: str) -> bool:
    """Tell whether a field says that its GPU no longer answers."""
    return "gpu is lost" in text.lower()


def quantity(text: str, unit: str = "") -> float:
    """Return a value in the base unit of what `unit` measures; NaN where the text says there is none.

    `unit` is the one of a bare number (--format=nounits). A comma is taken as the decimal point, as some locales print
    it. Raises ValueError for a text that is no number, or one in a unit that measures something else.
    """
    text = text.strip()
    if is_missing(text):
        return math.nan
    if _HEX.match(text):
        return float(int(text, 16))
    found = _NUMBER.match(text)
    if found is None:
        raise ValueError("no number")
    measured, factor = _factor((found[2] or "").strip(), unit)
    if measured != _UNITS[unit][0]:
        raise ValueError("another unit")
    value = _number(found[1]) * factor
    if not math.isfinite(value):
        raise ValueError("no number of this world")
    return value


def _factor(printed: str, unit: str) -> tuple[str, float]:
    if printed and printed not in _UNITS:
        raise ValueError("unknown unit")
    return _UNITS[printed or unit]


def _number(digits: str) -> float:
    """Read a decimal number with point or comma; where it has both, the last one is the decimal sign."""
    if "," in digits and "." in digits:
        thousands = "," if digits.rindex(".") > digits.rindex(",") else "."
        digits = digits.replace(thousands, "")
    return float(digits.replace(",", "."))
