"""Ticks of a time axis on the clock of a zone: plotly itself knows UTC only."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from store.window import Window
from store.zone import days

MOST = 9
"""Ticks at most: more would touch on a small screen."""
_DAY = timedelta(days=1)
_STEPS = tuple(
    timedelta(seconds=size)
    for size in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
)


def ticks(window: Window, zone: ZoneInfo) -> tuple[list[float], list[str]]:
    """Return where an axis over a window has ticks (milliseconds since 1970) and their texts, the date under the first.

    Steps count in real time from each local midnight, so that an hour that the clock shows twice stands there twice.
    """
    step = next((size for size in _STEPS if window.span / size < MOST), _DAY)
    bounds = days(window, zone)
    if step == _DAY:
        every = -(-len(bounds) // MOST)
        found = bounds[::every]
    else:
        found = [at for start, end in pairwise(bounds) for at in _stepped(start, end, step)]
    kept = [at for at in found if window.start <= at <= window.end]
    return [at.timestamp() * 1000 for at in kept], list(_texts(kept, step, zone))


def _stepped(start: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    at = start
    while at < end:
        yield at
        at += step


def _texts(times: list[datetime], step: timedelta, zone: ZoneInfo) -> Iterator[str]:
    before = None
    for at in times:
        local = at.astimezone(zone)
        day = f"{local.day} {local:%b}"
        clock = "" if step == _DAY else f"{local:%H:%M:%S}" if step < timedelta(minutes=1) else f"{local:%H:%M}"
        yield "<br>".join(part for part in (clock, "" if day == before else day) if part)
        before = day


def moments(x_ms: list[float], zone: ZoneInfo) -> list[str]:
    """Return the times of points as a hover shows them, with the offset from UTC; empty for a gap."""
    return [f"{datetime.fromtimestamp(x / 1000, UTC).astimezone(zone):%H:%M:%S %z}" if x == x else "" for x in x_ms]
