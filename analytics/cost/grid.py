"""Charge lines as a grid: what each group of labels cost in every hour (or day), as one matrix.

Usage alone is judged: a credit is no saving, and a yearly fee no spike. Currencies are never added up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.cost.seasonal import Calendar, Flags
from analytics.stats.smoothed import Array
from store.window import Window
from store.zone import day_start
from store.zone import zone as named_zone

Grain = Literal["hour", "day"]
STEPS = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
GRAINS: dict[Grain, tuple[str, ...]] = {"hour": ("billed", "computed"), "day": ("billed daily",)}
"""Bases that are judged by the hour and by the day."""
MOST_CELLS = 20_000_000
"""Hours times series that are judged: about 2 GB; a year of 1,000 series is 9 million."""
COMPLETE = 0.8
"""Share of the usual number of lines below which the newest hours are taken to be still coming in."""
NEWEST = {"hour": 72, "day": 3}
"""How far back that is looked for: beyond, fewer lines are how it is."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Charge lines with their group (column group), a number per labels, currency and basis; `groups` says which."""

    frame: pl.DataFrame
    groups: pl.DataFrame

    def of(self, key: Mapping[str, Any], names: Sequence[str]) -> pl.DataFrame:
        """Return the lines of the groups that have these values under the names."""
        wanted = self.groups
        for name in names:
            wanted = wanted.filter(pl.col(name).eq_missing(pl.lit(key[name], pl.String)))
        return self.frame.filter(pl.col("group").is_in(wanted["group"].implode()))


@dataclass(frozen=True, slots=True)
class Grid:
    """Costs (hours or days, series). NaN where nothing is known.

    `starts` are the buckets (naive UTC; of days, local midnights). `until` is how many of them are
    complete and so judged. `lines` are the lines it is made of, with columns series and at (their bucket);
    `left_out` is how many groups would have been too many.
    """

    grain: Grain
    keys: tuple[dict[str, Any], ...]
    starts: tuple[datetime, ...]
    calendar: Calendar
    values: Array
    until: int
    lines: pl.DataFrame
    left_out: int = 0

    @property
    def step(self) -> timedelta:
        """Length of a bucket, but for days on which a clock changes."""
        return STEPS[self.grain]

    def end(self, row: int) -> datetime:
        """End of a bucket, naive UTC."""
        return self.starts[row + 1] if row + 1 < len(self.starts) else self.starts[row] + self.step


USAGE = (pl.col("category").is_null() | (pl.col("category") == "Usage")) & pl.col("cost").is_not_null()
"""Lines that are usage (a usage report states no category) and have a cost."""


def grouped(frame: pl.DataFrame, keys: Sequence[str]) -> Lines:
    """Give each group of lines a number: numbers are compared many times faster than texts."""
    number = np.zeros(frame.height, np.int64)
    for key in keys:
        code = frame[key].cast(pl.Categorical).to_physical().cast(pl.Int64).fill_null(-1).to_numpy() + 1
        number = number * (int(code.max(initial=0)) + 1) + code
        number = _dense(number)
    made = frame.with_columns(pl.Series("group", number, dtype=pl.UInt32))
    example = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    example[number] = np.arange(number.size)
    return Lines(made, made.select("group", *keys)[example])


def _dense(number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Renumber without gaps, in order."""
    high = int(number.max(initial=0)) + 1
    if high > 50_000_000:
        return np.asarray(np.unique(number, return_inverse=True)[1], np.int64)
    there = np.zeros(high, bool)
    there[number] = True
    return np.asarray((np.cumsum(there) - 1)[number], np.int64)


def grid(
    lines: Lines, taken: pl.Expr, series: pl.DataFrame, grain: Grain, zone: str, window: Window, empty: str
) -> Grid:
    """Lay out the lines that are `taken`; `series` (group, and the labels, currency and basis) are those of this grid.

    `empty` skip: buckets without a line of the series are missing; zero: they cost 0. auto: 0 where another series of
    that currency and basis has a line, else missing.
    """
    part = lines.frame.filter(taken & pl.col("group").is_in(series["group"].implode()) & pl.col("bucket").is_not_null())
    part, left = _bounded(part, grain)
    part, named = _numbered(part, series)
    part = part.with_columns(_start(grain, zone).alias("at"))
    starts = _starts(part, grain)
    cell = _rows(part["at"], starts) * named.height + part["series"].to_numpy().astype(np.int64)
    shape = (len(starts), named.height)
    size = shape[0] * shape[1]
    values, count = (
        np.bincount(cell, part[name].cast(pl.Float64).fill_null(1).to_numpy(), size).astype(np.float64).reshape(shape)
        for name in ("cost", "lines")
    )
    table = tuple(named.drop("series").iter_rows(named=True))
    values = _filled(np.where(count > 0, values, np.nan), count > 0, table, empty)
    until = _complete(count, table, starts, grain, window)
    calendar = _calendar(starts, grain, zone)
    if grain == "day":
        instants = [day_start(at.date(), named_zone(zone)).replace(tzinfo=None) for at in starts]
        part = part.with_columns(pl.col("at").replace_strict(starts, instants, return_dtype=pl.Datetime("us")))
        starts = instants
    return Grid(grain, table, tuple(starts), calendar, values, until, part, left)


def _bounded(part: pl.DataFrame, grain: Grain) -> tuple[pl.DataFrame, int]:
    """Leave out the groups of the least cost where a grid of all would take more memory than a server has to spare."""
    sums = part.group_by("group").agg(pl.col("cost").sum()).sort("cost", "group", descending=[True, False])
    length = len(_starts(part.rename({"bucket": "at"}).select("at"), grain))
    if length * sums.height <= MOST_CELLS:
        return part, 0
    kept = sums.head(max(1, MOST_CELLS // length))
    return part.filter(pl.col("group").is_in(kept["group"].implode())), sums.height - kept.height


def _numbered(part: pl.DataFrame, groups: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give each series that has lines a number: groups of the same labels, currency and basis are one."""
    keys = [name for name in groups.columns if name != "group"]
    groups = groups.filter(pl.col("group").is_in(part["group"].unique().implode()))
    named = groups.select(keys).unique().sort(keys).with_row_index("series")
    of = groups.join(named, on=keys, nulls_equal=True).select("group", "series").sort("group")
    place = np.zeros(int(of["group"][-1]) + 1 if of.height else 1, np.uint32)
    place[of["group"].to_numpy()] = of["series"].to_numpy()
    return part.with_columns(pl.Series("series", place[part["group"].to_numpy()])), named


def _start(grain: Grain, zone: str) -> pl.Expr:
    """Bucket of a line; of days the local date of the middle, since a bill's own midnight may be of another zone."""
    if grain == "hour":
        return pl.col("bucket")
    middle = (pl.col("bucket") + timedelta(hours=12)).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return middle.dt.date().cast(pl.Datetime("us"))


def _starts(summed: pl.DataFrame, grain: Grain) -> list[datetime]:
    if not summed.height:
        return []
    low, high = summed["at"].min(), summed["at"].max()
    assert isinstance(low, datetime)
    assert isinstance(high, datetime)
    return pl.datetime_range(low, high, STEPS[grain], eager=True, time_unit="us").to_list()


def _rows(at: pl.Series, starts: Sequence[datetime]) -> Any:
    if not starts:
        return np.zeros(0, np.int64)
    step = (starts[1] - starts[0]) if len(starts) > 1 else timedelta(hours=1)
    return ((at - starts[0]).dt.total_seconds() // int(step.total_seconds())).to_numpy()


def _filled(values: Array, seen: Flags, keys: Sequence[dict[str, Any]], empty: str) -> Array:
    """Put zeros where a series has no line, as `empty` says; never before the first line of all series."""
    if empty == "skip" or not values.size:
        return values
    made = values.copy()
    for kind in dict.fromkeys((key["currency"], key["basis"]) for key in keys):
        columns = [i for i, key in enumerate(keys) if (key["currency"], key["basis"]) == kind]
        known: Flags = np.asarray(seen[:, columns].any(axis=1))
        if empty == "zero":
            known[np.argmax(known) :] = True
        part = made[:, columns]
        part[known[:, None] & np.isnan(part)] = 0.0
        made[:, columns] = part
    return made


def _complete(
    count: Array, keys: Sequence[dict[str, Any]], starts: Sequence[datetime], grain: Grain, window: Window
) -> int:
    """Count the buckets that are over and whose bill has come in, by the number of its lines."""
    end = window.end.replace(tzinfo=None)
    until = sum(start + STEPS[grain] <= end for start in starts)
    billed = [i for i, key in enumerate(keys) if key["basis"] != "computed"]
    total = count[:until, billed].sum(axis=1)
    period = 24 if grain == "hour" else 1
    while until > max(len(starts) - NEWEST[grain], 0):
        same = total[until - 1 - period :: -period][:7] if until > period else total[:0]
        if len(same) < 3 or total[until - 1] >= COMPLETE * np.median(same):
            break
        until -= 1
    return until


def _calendar(starts: Sequence[datetime], grain: Grain, zone: str) -> Calendar:
    """Local days and hours; a day that a zone skipped is one without hours."""
    if not starts:
        return Calendar(np.zeros(0, np.int64), np.zeros(0, np.int64), 24 if grain == "hour" else 1)
    times = pl.Series(starts, dtype=pl.Datetime("us"))
    local = times if grain == "day" else times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    day = local.dt.date().to_physical().to_numpy().astype(np.int64)
    slot = local.dt.hour().to_numpy().astype(np.int64) if grain == "hour" else np.zeros(len(starts), np.int64)
    return Calendar(day - day[0], slot, 24 if grain == "hour" else 1)
