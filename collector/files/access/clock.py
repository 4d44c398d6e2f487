"""Times of access logs → microseconds since 1970."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

_APACHE = re.compile(
    r"\[?(\d{1,2})/([A-Z][a-z]{2})/(\d{4}):(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?(?: ([-+])(\d{2}):?(\d{2}))?\]?"
)
_EPOCH = re.compile(r"\d{9,10}(?:\.\d{1,9})?")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(text: str, zone: tzinfo) -> int | None:
    """Return the time: '10/Oct/2000:13:55:36 -0700', RFC 3339 or seconds since 1970; None for anything else.

    A time that names no zone is one of `zone`.
    """
    try:
        if _EPOCH.fullmatch(text):
            return round(float(text) * 1e6)
        moment = _apache(text) or datetime.fromisoformat(text)
        return (moment.replace(tzinfo=moment.tzinfo or zone) - _ZERO) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def _apache(text: str) -> datetime | None:
    found = _APACHE.fullmatch(text)
    if found is None or found[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(found[group]) for group in (1, 3, 4, 5, 6))
    fraction = int((found[7] or "").ljust(6, "0"))
    moment = datetime(year, _MONTHS[found[2]], day, hour, minute, second, fraction)  # noqa: DTZ001
    if found[8] is None:
        return moment
    shift = timedelta(hours=int(found[9]), minutes=int(found[10]))
    return moment.replace(tzinfo=timezone(-shift if found[8] == "-" else shift))
