"""Calendar periods of a place: the month, quarter or year that an instant is in, as instants in UTC."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from store.window import Window
from store.zone import day_start

PERIODS = {"month": 1, "quarter": 3, "year": 12}
"""Months of a period."""


def period(kind: str, at: datetime, where: ZoneInfo) -> Window:
    """Return the period that `at` (aware) is in; its first instant belongs to it, its last to the next."""
    months = PERIODS[kind]
    day = at.astimezone(where).date()
    first = day.year * 12 + (day.month - 1) // months * months
    start, end = (day_start(_month(number), where) for number in (first, first + months))
    return Window(start.astimezone(UTC), end.astimezone(UTC))


def _month(number: int) -> date:
    return date(number // 12, number % 12 + 1, 1)


def days_from(at: datetime, end: datetime, where: ZoneInfo) -> list[date]:
    """Return the local dates from that of `at` to the last before `end`."""
    first, last = at.astimezone(where).date(), (end - timedelta(microseconds=1)).astimezone(where).date()
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]
