"""Zones: the calendar days and hours of a place as instants in UTC, and times read and written there.

Days come from Python's zone data alone: truncating in a zone merges the hour that a clock shows twice (DuckDB), or
fails on a midnight that a clock leaps over (polars).
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from store.errors import UsageError
from store.nearest import nearest
from store.window import Window, format_time, parse_time

if TYPE_CHECKING:
    import polars as pl

DEFAULT = ZoneInfo("UTC")
_HOUR = timedelta(hours=1)
_WRITTEN = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z(?!\w)")


def zone(name: str) -> ZoneInfo:
    """Return the zone of an IANA name. Raises UsageError, with the nearest one, for an unknown name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        example = "write it like UTC, Europe/Berlin or America/New_York"
        hint = nearest(name, sorted(available_timezones()), example)
        raise UsageError(f"no time zone is called {name!r}", hint) from None


def day_start(day: date, where: ZoneInfo) -> datetime:
    """Return the first instant of a local calendar day, in UTC."""
    return datetime.combine(day, time(), where).astimezone(UTC)


def days(window: Window, where: ZoneInfo) -> list[datetime]:
    """Return the bounds of the local calendar days that a window touches, in UTC.

    The first is not after the window's start and the last not before its end; days have 23, 24 or 25 hours.
    """
    day = window.start.astimezone(where).date()
    bounds = [day_start(day, where)]
    while bounds[-1] < window.end:
        day += timedelta(days=1)
        bounds.append(day_start(day, where))
    return sorted(set(bounds))  # a day that a place skipped (Samoa, 2011-12-30) has no instant


def hours(window: Window, where: ZoneInfo) -> list[datetime]:
    """Return the bounds of the hours of those days, in UTC: an hour shown twice is two, one leapt over is none."""
    bounds = days(window, where)
    found = [start + number * _HOUR for start, end in pairwise(bounds) for number in range(-(-(end - start) // _HOUR))]
    found.append(bounds[-1])
    first = max(i for i, at in enumerate(found) if at <= window.start)
    last = min(i for i, at in enumerate(found) if at >= window.end)
    return found[first : last + 1]


def bucket_of(column: str, bounds: Sequence[datetime]) -> "pl.Expr":
    """Return the bound at or before each time of a naive-UTC column, as naive UTC; null outside the bounds."""
    import polars as pl

    edges = pl.lit(pl.Series([at.replace(tzinfo=None) for at in bounds], dtype=pl.Datetime("us")))
    at = edges.search_sorted(pl.col(column), side="right").cast(pl.Int64) - 1
    return edges.gather(pl.when((at >= 0) & (pl.col(column) < edges.last())).then(at))


def local_time(at: datetime, where: ZoneInfo) -> str:
    """Write an instant as RFC 3339 on the clock of a zone (UTC with Z); a naive time is taken as UTC."""
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return format_time(at) if where.key == DEFAULT.key else at.astimezone(where).isoformat()


def local_text(text: str, where: ZoneInfo) -> str:
    """Rewrite the UTC times within a text on the clock of a zone."""
    if where.key == DEFAULT.key:
        return text
    return _WRITTEN.sub(lambda found: local_time(parse_time(found[0]), where), text)


def utc_window(text: str, where: ZoneInfo) -> str:
    """Rewrite 'A..B', whose times without an offset and dates are of a zone, in UTC; a duration stays as it is.

    A time that the clock shows twice is taken the first time. Raises UsageError for what is no time.
    """
    start, dots, end = text.partition("..")
    return f"{format_time(_at(start, where))}..{format_time(_at(end, where))}" if dots else text


def _at(text: str, where: ZoneInfo) -> datetime:
    parse_time(text)
    at = datetime.fromisoformat(text)
    return (at.replace(tzinfo=where) if at.tzinfo is None else at).astimezone(UTC)
