"""Units a person may give with --unit, and how each converts to the base unit that is stored."""

import re
from dataclasses import dataclass

from store.errors import UsageError
from store.nearest import nearest


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: the base unit it measures, and how many of that one of it is."""

    base: str
    factor: float


UNITS: dict[str, Unit] = {
    "s": Unit("s", 1.0),
    "ms": Unit("s", 1e-3),
    "us": Unit("s", 1e-6),
    "ns": Unit("s", 1e-9),
    "m": Unit("s", 60.0),
    "h": Unit("s", 3600.0),
    "ratio": Unit("ratio", 1.0),
    "percent": Unit("ratio", 0.01),
    "bytes": Unit("bytes", 1.0),
    "KB": Unit("bytes", 1e3),
    "MB": Unit("bytes", 1e6),
    "GB": Unit("bytes", 1e9),
    "KiB": Unit("bytes", 2.0**10),
    "MiB": Unit("bytes", 2.0**20),
    "GiB": Unit("bytes", 2.0**30),
    "Hz": Unit("hz", 1.0),
    "MHz": Unit("hz", 1e6),
    "GHz": Unit("hz", 1e9),
    "W": Unit("watts", 1.0),
    "mW": Unit("watts", 1e-3),
    "kW": Unit("watts", 1e3),
    "J": Unit("joules", 1.0),
    "mJ": Unit("joules", 1e-3),
    "celsius": Unit("celsius", 1.0),
    "tokens": Unit("tokens", 1.0),
    "USD": Unit("USD", 1.0),
}

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Units a numeric time may have: how many make a second. Whole numbers, so that nanoseconds since 1970 stay exact."""

_SUFFIXES = {
    "s": "s", "sec": "s", "secs": "s", "seconds": "s",
    "ms": "ms", "millis": "ms", "milliseconds": "ms",
    "us": "us", "micros": "us", "microseconds": "us",
    "ns": "ns", "nano": "ns", "nanos": "ns", "nanoseconds": "ns",
    "percent": "percent", "pct": "percent", "ratio": "ratio",
    "bytes": "bytes", "kib": "KiB", "mib": "MiB", "gib": "GiB",
    "hz": "Hz", "mhz": "MHz", "watts": "W", "joules": "J", "celsius": "celsius", "usd": "USD",
}  # fmt: skip
"""Endings of column names that state a unit. 'perc' is none: vLLM's kv_cache_usage_perc is a ratio."""


def snake(name: str) -> str:
    """Write a column name in lower case with underscores: 'ContextTokens' and 'context tokens' agree."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")


def unit_of_name(name: str) -> str | None:
    """Return the unit that the ending of a column name states ('first_token_ms' → 'ms'), or None."""
    _, underscore, ending = snake(name).rpartition("_")
    return _SUFFIXES.get(ending) if underscore else None


def unit(text: str) -> Unit:
    """Return the unit of that name. Raises UsageError, with the nearest one, for an unknown one."""
    found = UNITS.get(text)
    if found is None:
        raise UsageError(f"unknown unit {text!r}", nearest(text, UNITS) or f"units: {', '.join(UNITS)}")
    return found


def factor_to(base: str, text: str, field: str) -> float:
    """Return what to multiply a value in unit `text` by to have it in `base`.

    Raises UsageError where `text` measures something else (--unit ttft_s=MiB).
    """
    given = unit(text)
    if base and given.base != base:
        fitting = ", ".join(name for name, known in UNITS.items() if known.base == base)
        raise UsageError(f"{field} is measured in {base}: {text} does not convert to it", f"units that do: {fitting}")
    return given.factor
