"""How far the clock of whoever answers is from ours, by the Date header of an answer (RFC 9110, 6.6.1)."""

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

_STEP_S = 1.0  # Date has whole seconds, the rest cut off


def clock_skew_s(headers: Mapping[str, str], asked_s: float, answered_s: float) -> float | None:
    """Return the seconds by which the other clock is ahead; None where the answer does not tell.

    `headers` by lower-case name; `asked_s` and `answered_s` (Unix seconds by our clock) are when the question left and
    when the headers were there. The clock was read somewhere between: exact to 0.5 s and half of that time. An answer
    with Age comes from a cache, and its Date from somewhere else.
    """
    if "age" in headers or "date" not in headers:
        return None
    try:
        stated = parsedate_to_datetime(headers["date"])
    except ValueError:
        return None
    stated = stated if stated.tzinfo else stated.replace(tzinfo=UTC)  # asctime's form, which is UTC too
    return stated.timestamp() + _STEP_S / 2 - (asked_s + answered_s) / 2
