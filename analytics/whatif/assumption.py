"""An assumption as text: `0.9`, `0.85..0.90`, `+10%`, `-10%`, `x2`, `+5pp`."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from store.errors import UsageError

RATIOS = ("hit_ratio", "prefix_hit_ratio", "cold_start_share")
GRAMMAR = "NEW, OLD..NEW, +10%, -10%, x2; of a share also +5pp"
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_FORM = re.compile(
    rf"(?:(?P<old>{_NUMBER}%?)\.\.(?P<to>{_NUMBER}%?)|(?P<new>{_NUMBER}%?)|x(?P<times>{_NUMBER})"
    rf"|(?P<change>[+-]{_NUMBER})%|(?P<points>[+-]{_NUMBER})pp)"
)


@dataclass(frozen=True, slots=True)
class Assumption:
    """What the scenario takes: `of` makes its value from the baseline's, which is `old` where that is given."""

    text: str
    old: float | None
    of: Callable[[Any], Any]
    absolute: bool


def read(name: str, text: str) -> Assumption:
    """Read one. Raises UsageError for what is none, or a share outside 0 to 1."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{name} cannot be {text!r}", GRAMMAR)
    ratio = name in RATIOS
    if found["points"] is not None and not ratio:
        raise UsageError(f"{name} cannot be {text!r}", "percentage points are of shares; write +10% or x1.1")
    new = found["new"] if found["new"] is not None else found["to"]
    if new is not None:
        value, old = _number(name, new, ratio), _number(name, found["old"], ratio) if found["old"] else None
        return Assumption(text, old, lambda _: value, absolute=True)
    if found["points"] is not None:
        points = float(found["points"]) / 100
        return Assumption(text, None, lambda x: _within(x + points), absolute=False)
    factor = float(found["times"]) if found["times"] is not None else 1 + float(found["change"]) / 100
    if factor < 0:
        raise UsageError(f"{name} cannot be {text!r}", "that would be less than nothing")
    return Assumption(text, None, lambda x: _within(x * factor) if ratio else x * factor, absolute=False)


def _within(x: Any) -> Any:
    import numpy as np

    return np.clip(x, 0.0, 1.0) if isinstance(x, np.ndarray) else min(max(x, 0.0), 1.0)


def _number(name: str, text: str, ratio: bool) -> float:
    value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if (text.endswith("%") and not ratio) or not math.isfinite(value) or (ratio and value > 1):
        raise UsageError(f"{name} cannot be {text!r}", "a share from 0 to 1 or a percentage" if ratio else GRAMMAR)
    return value


def change(text: str) -> float:
    """Read a change of price such as -0.1 or -10% as a factor; 1 where none is given."""
    if not text:
        return 1.0
    try:
        value = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= -1):
        raise UsageError(f"price_change cannot be {text!r}", "such as -0.1 or -10%: a tenth less")
    return 1 + value


def amount(name: str, text: str) -> float | None:
    """Read a plain number above zero; None where it is not given."""
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name} cannot be {text!r}", "a number above 0")
    return value
