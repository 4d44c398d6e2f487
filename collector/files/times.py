"""Times in files → naive UTC microseconds: RFC 3339 and its relatives, epochs in any unit, clocks from zero."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from collector.files.units import PER_SECOND
from store.errors import UsageError

_TEXT = (
    r"^(?P<date>\d{4}[-/]\d{1,2}[-/]\d{1,2})"
    r"(?:[T ](?P<clock>\d{1,2}:\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?)?"
    r"\s*(?P<zone>[Zz]|UTC|[-+]\d{2}:?\d{2})?$"
)
_RELATIVE_BELOW_S = 1e8  # an epoch this small would lie before March 1973
_YEAR_1_US = -62_135_596_800_000_000
_YEAR_10000_US = 253_402_300_800_000_000
_EPOCH_BELOW = {"s": 1e11, "ms": 1e14, "us": 1e17}
"""Seconds since 1970 reach 1e11 in the year 5138; milliseconds passed it in March 1973, and so on."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How to read times: unit of numeric ones (None: guess), zone of those that name none, wall time of zero."""

    unit: str | None = None
    zone: str = "UTC"
    start: datetime | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Times as naive UTC microseconds, null where the value is missing or unreadable; and how they were read."""

    ts: pl.Series
    reading: str


def read_times(values: pl.Series, clock: Clock) -> Times:
    """Read a column of times.

    A guessed unit comes from the magnitude: seconds below 1e11, milliseconds below 1e14, microseconds below 1e17, else
    nanoseconds; below 1e8 seconds the clock counts from an unknown zero and `clock.start` (else 1970) is that zero.
    Raises UsageError for a type that holds no times.
    """
    kind = values.dtype
    if isinstance(kind, pl.Datetime):
        return Times(_temporal(values, clock), "times")
    if kind == pl.Date():
        return Times(_utc(values.cast(pl.Datetime("us")), clock.zone), "dates")
    if kind.is_numeric():
        return _numeric(values, clock)
    if isinstance(kind, pl.String):
        return _text(values, clock)
    if values.null_count() == values.len():
        return Times(pl.Series(values.name, [None] * values.len(), pl.Datetime("us")), "no time at all")
    raise UsageError(f"column {values.name!r} holds {kind}, not times", "name the time column with --map ts=COLUMN")


def constant_times(at: datetime, rows: int) -> Times:
    """Return times for rows that have none: `at`, each row a microsecond after the one before, to keep their order."""
    first_us = round(at.astimezone(UTC).timestamp() * 1_000_000)
    ts = (pl.int_range(rows, eager=True) + first_us).cast(pl.Datetime("us"))
    return Times(ts, "no column; the stated time, one microsecond a row")


def _temporal(values: pl.Series, clock: Clock) -> pl.Series:
    zone = getattr(values.dtype, "time_zone", None)
    stamps = values.dt.cast_time_unit("us")
    return _utc(stamps, clock.zone) if zone is None else stamps.dt.convert_time_zone("UTC").dt.replace_time_zone(None)


def _utc(naive: pl.Series, zone: str) -> pl.Series:
    """Local to UTC. An hour that the clock repeats is taken the first time; one it leaps over is no time (null)."""
    if zone == "UTC":
        return naive
    local = naive.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return local.dt.convert_time_zone("UTC").dt.replace_time_zone(None)


def _numeric(values: pl.Series, clock: Clock) -> Times:
    if values.dtype.is_integer():
        values = values.cast(pl.Int64, strict=False)
    unit = clock.unit or _guess(values)
    if unit not in PER_SECOND:
        raise UsageError(f"a time is not measured in {unit}", f"units of ts: {', '.join(PER_SECOND)}")
    micros = _micros(values, PER_SECOND[unit])
    reading, zero_us = f"numbers in {unit}", 0
    if _relative(micros):
        reading += " from zero"
        if clock.start is None:
            reading += " (kept as since 1970; --start TIME says when zero was)"
        else:
            zero_us = round(clock.start.astimezone(UTC).timestamp() * 1_000_000)
    return Times(_stamps(micros + zero_us), reading)


def _stamps(micros: pl.Series) -> pl.Series:
    """Microseconds since 1970 as times; null outside the years 1 to 9999, which no calendar here can write."""
    return micros.set((micros < _YEAR_1_US) | (micros >= _YEAR_10000_US), None).cast(pl.Datetime("us"))


def _guess(values: pl.Series) -> str:
    middle = values.cast(pl.Float64).abs().median()  # the largest may be the one value that is broken
    size = middle if isinstance(middle, float) else 0.0
    return next((unit for unit, bound in _EPOCH_BELOW.items() if size < bound), "ns")


def _micros(values: pl.Series, per_second: int) -> pl.Series:
    """Numbers to whole microseconds; integers stay integers, a float of nanoseconds since 1970 would lose 256 ns."""
    if values.dtype.is_integer():
        if per_second >= 1_000_000:
            return values // (per_second // 1_000_000)
        limit = 2**63 // (1_000_000 // per_second)
        return values.set(values.abs() >= limit, None) * (1_000_000 // per_second)
    micros = (values.cast(pl.Float64) * (1_000_000 / per_second)).round()
    return micros.cast(pl.Int64, strict=False)


def _relative(micros: pl.Series) -> bool:
    middle = micros.abs().median()
    return isinstance(middle, float) and middle < _RELATIVE_BELOW_S * 1_000_000


def _text(values: pl.Series, clock: Clock) -> Times:
    numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
    if numbers.null_count() < values.len() and numbers.null_count() <= values.len() // 2:
        whole = values.str.strip_chars().cast(pl.Int64, strict=False)
        return _numeric(whole if whole.null_count() == numbers.null_count() else numbers, clock)
    parts = values.str.strip_chars().str.extract_groups(_TEXT).struct.unnest()
    part: Callable[[str, str], pl.Series] = lambda name, default: parts[name].fill_null(default)  # noqa: E731
    text = parts["date"].str.replace_all("/", "-") + "T" + part("clock", "00:00") + ":" + part("second", "00")
    local = text.str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
    fraction = part("fraction", "0").str.pad_end(9, "0").str.head(6).cast(pl.Int64)
    zone = parts["zone"]
    shift = _offset_s(zone) * 1_000_000
    stated = (local.cast(pl.Int64) - shift).cast(pl.Datetime("us"))
    whole_second = stated.zip_with(zone.is_not_null(), _utc(local, clock.zone))
    reading = "text" if zone.null_count() == 0 else f"text in {clock.zone}"
    return Times((whole_second.cast(pl.Int64) + fraction).cast(pl.Datetime("us")).alias(values.name), reading)


def _offset_s(zone: pl.Series) -> pl.Series:
    """Seconds east of UTC; 0 for Z, UTC and none."""
    groups = zone.str.extract_groups(r"^(?P<sign>[-+])(?P<hours>\d{2}):?(?P<minutes>\d{2})$").struct.unnest()
    size = groups["hours"].cast(pl.Int64) * 3600 + groups["minutes"].cast(pl.Int64) * 60
    return (-size).zip_with(groups["sign"] == "-", size).fill_null(0)
