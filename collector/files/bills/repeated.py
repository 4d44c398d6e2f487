"""The hour that a local clock shows twice in autumn: the lines of its second time move to where they belong."""

import re
from datetime import timedelta

import polars as pl

from collector.files.bills.columns import Columns
from collector.files.bills.form import Form

_ZONED = r"(?i)(Z|UTC|[-+]\d{2}:?\d{2})$"
_HOUR = timedelta(hours=1)


def place_repeated_hours(columns: Columns, form: Form, frame: pl.DataFrame, zone: str) -> pl.DataFrame:
    """Return the lines with the second half of those of a repeated hour an hour later, in the order of the file.

    A local time without an offset does not tell which of both hours it is of; it is read as the first. Where a line
    comes twice at such a time, the later one is of the second hour, or the day would have 24 hours and one double.
    """
    zoned = columns.text(form.fields["ts"]).str.contains(_ZONED).fill_null(False)
    if re.fullmatch(r"UTC|Etc/UTC", zone) or zoned.all():
        return frame
    twice = _shown_twice(frame["ts"], zone) & ~zoned
    known = [columns.text([name]).fill_null("").alias(name) for name in form.identity if name in columns.names]
    same = pl.DataFrame([frame["ts"].alias("at"), *known])
    group = pl.struct(same.columns)
    place = same.select(number=pl.int_range(pl.len()).over(group), count=pl.len().over(group))
    second = twice & (place["number"] * 2 >= place["count"]) & (place["count"] > 1)
    moved = frame.with_columns(ts=pl.when(second).then(pl.col("ts") + _HOUR).otherwise("ts"))
    if "end_ts" not in moved.columns:
        return moved
    short = twice & (moved["end_ts"] <= moved["ts"]).fill_null(False)
    return moved.with_columns(end_ts=pl.when(short).then(pl.col("end_ts") + _HOUR).otherwise("end_ts"))


def _shown_twice(ts: pl.Series, zone: str) -> pl.Series:
    """Tell which instants are of an hour that the clock shows again an hour later."""
    return (_local(ts, zone) == _local(ts + _HOUR, zone)).fill_null(False)


def _local(ts: pl.Series, zone: str) -> pl.Series:
    return ts.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.replace_time_zone(None)
