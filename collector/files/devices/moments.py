"""Times as tools print them → microseconds since 1970 (UTC)."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2}):(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?"
_WORDS = re.compile(  # Tue Jul 14 09:00:27 2026 · Feb 25 2025 13:59:45 · Feb 23 16:24:18
    rf"^(?:[A-Za-z]{{3}},? +)?(?P<word>[A-Za-z]{{3}}) +(?P<day>\d{{1,2}})(?: +(?P<early>\d{{4}}))? +{_CLOCK}"
    r"(?: +(?P<late>\d{4}))?$"
)
_DIGITS = re.compile(  # 2026/07/14 09:00:27.792 · 2025-02-23T16:24:18,123456+00:00 · 20260714 09:00:27
    rf"^(?P<year>\d{{4}})[-/]?(?P<month>\d{{2}})[-/]?(?P<day>\d{{2}})[T ]+{_CLOCK}\s*(?P<zone>Z|[-+]\d{{2}}:?\d{{2}})?$"
)
_YEARS = range(1970, 2970)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_moment(text: str, zone: ZoneInfo, before: datetime | None = None) -> int | None:
    """Return the time a text states, or None where it states none.

    A time without a year takes the latest year that does not lie after `before`; without `before` it is None. An hour
    that the clock of `zone` repeats is taken the first time.
    """
    text = text.strip()
    found = _DIGITS.match(text) or _WORDS.match(text)
    if found is None:
        return None
    part = found.groupdict()
    month = int(part["month"]) if "month" in part else _month(part["word"])
    stated = part.get("year") or part.get("early") or part.get("late")
    if month is None or (stated is None and before is None):
        return None
    year = int(stated) if stated else before.astimezone(zone).year if before else 0
    try:
        at = _aware(part, year, month, zone)
        if stated is None and before is not None and at > before + timedelta(days=1):
            at = _aware(part, year - 1, month, zone)
        return (at - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def _month(word: str) -> int | None:
    return _MONTHS.index(word.lower()) + 1 if word.lower() in _MONTHS else None


def _aware(part: dict[str, str | None], year: int, month: int, zone: ZoneInfo) -> datetime:
    """Return the parts as a time. Raises ValueError for one of no calendar, or a year that no measurement has."""
    if year not in _YEARS:
        raise ValueError("a year of no measurement")
    day, hour, minute, second = (int(part[name] or 0) for name in ("day", "hour", "minute", "second"))
    micros = int((part["fraction"] or "0").ljust(6, "0")[:6])
    offset = part.get("zone")
    at = datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC if offset else zone)
    return at if offset in (None, "Z") else at - _offset(offset)


def _offset(text: str) -> timedelta:
    digits = text[1:].replace(":", "")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if text[0] == "-" else size


def milliseconds(micros: int | None) -> int | None:
    """Whole milliseconds of a time in microseconds."""
    return None if micros is None else micros // 1000
