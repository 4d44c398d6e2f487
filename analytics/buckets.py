"""Buckets of time: equal stretches counted back from the end of the window, so the latest one is always whole.

Days and hours of the calendar are those of a zone, which are not equal: see `calendar`.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from store.errors import UsageError
from store.window import Window, parse_duration
from store.zone import bucket_of, days, hours

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    import polars as pl

SIZES = tuple(parse_duration(text) for text in ("10s", "30s", "1m", "5m", "15m", "1h"))
MOST_NAMED = 20_000
FEWEST, MOST = 6, 1500
"""Buckets that the data must span for a baseline, and that a chart can show."""


def end_of(window: Window) -> datetime:
    """End of the window as the naive UTC time that frames hold."""
    return window.end.replace(tzinfo=None)


def bucket_index(window: Window, size: timedelta) -> "pl.Expr":
    """Bucket of column ts: 0 is the latest, counting back."""
    import polars as pl

    before = pl.lit(end_of(window)).cast(pl.Datetime("us")) - pl.col("ts")
    return ((before.dt.total_microseconds() - 1) // (size // timedelta(microseconds=1))).alias("bucket")


def bucket_start(window: Window, size: timedelta) -> "pl.Expr":
    """Start of the bucket in column bucket."""
    import polars as pl

    back = pl.duration(microseconds=(pl.col("bucket") + 1) * (size // timedelta(microseconds=1)))
    return (pl.lit(end_of(window)).cast(pl.Datetime("us")) - back).alias("ts")


def calendar(window: Window, size: Literal["day", "hour"], zone: "ZoneInfo") -> "pl.Expr":
    """Start (naive UTC) of the local day or hour that column ts lies in, for rows within the window.

    A day has the 23, 24 or 25 hours of its place; an hour that the clock shows twice is two buckets.
    """
    bounds = days(window, zone) if size == "day" else hours(window, zone)
    return bucket_of("ts", bounds).alias("bucket")


def named(text: str, window: Window) -> timedelta:
    """Read a bucket size such as '1m'. Raises UsageError where the window would hold none, or too many to compute."""
    size = parse_duration(text)
    if not size or not 1 <= window.span / size <= MOST_NAMED:
        raise UsageError(f"bucket cannot be {text!r}", f"{window} must hold 1 to {MOST_NAMED} of them")
    return size


def choose(frame: "pl.DataFrame", window: Window, at_least: int) -> timedelta:
    """Pick the smallest of SIZES whose buckets hold a median of `at_least` rows.

    The data must span at least FEWEST buckets and at most MOST. Where no size has enough rows, the largest that still
    gives FEWEST buckets is picked.
    """
    import polars as pl

    if not frame.height:
        return SIZES[2]
    low, high = frame["ts"].min(), frame["ts"].max()
    assert isinstance(low, datetime)
    assert isinstance(high, datetime)
    fitting = [size for size in SIZES if FEWEST <= (high - low) / size + 1 <= MOST] or [SIZES[0]]
    for size in fitting:
        counts = frame.select(bucket_index(window, size)).group_by("bucket").len()
        middle = counts.select(pl.col("len").median()).item()
        if counts.height >= FEWEST and middle >= at_least:
            return size
    return fitting[-1]
