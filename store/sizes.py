"""Sizes as people write them: '4GiB', '500MB', plain bytes."""

import re
from fractions import Fraction

from store.errors import UsageError

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]*)")
_UNITS = {"": 1, "b": 1} | {
    letter + suffix: base**power
    for power, letter in enumerate("kmgt", 1)
    for suffix, base in (("b", 1000), ("ib", 1024), ("", 1024))
}


def parse_size(text: str | int) -> int:
    """Read '2GiB', '500MB', '1.5 GiB', '512M' (as 512MiB, like Docker and systemd) or a number of bytes.

    Raises UsageError for anything else, a fraction of a byte and zero.
    """
    found = _SIZE.fullmatch(str(text).strip().lower())
    factor = _UNITS.get(found[2]) if found else None
    size = Fraction(found[1]) * factor if found and factor else Fraction(0)
    if size < 1 or size.denominator != 1:
        raise UsageError(f"{str(text)!r} is not a size", "write it like 4GiB, 500MB or 1073741824 (bytes)")
    return int(size)


def format_size(size: int) -> str:
    """Write a size in the largest binary unit that it fills: '2.0 GiB'."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return f"{size} bytes"
