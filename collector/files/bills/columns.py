"""`Columns`: the columns of a bill by plain names, read as text, numbers and instants."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from collector.files.options import ImportOptions
from collector.files.rows import Rows
from collector.files.times import Clock, read_times
from store.money import read_money

_AMERICAN = r"^\s*(\d{1,2})/(\d{1,2})/(\d{4})"  # Azure writes months first
_NULLS = ["", "null"]
_FIRST_YEAR = 1990  # a charge before it is a number read as a time: the day of a month, the hour of a day


def plain(name: str) -> str:
    """Write a column name so that spellings agree: 'lineItem/UsageType' and 'line_item_usage_type'."""
    return re.sub(r"[^a-z0-9]+", "", name.lower())


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts of money (Kind.MONEY), where a text is none, and where one lost digits beyond the 18th decimal."""

    value: pl.Series
    bad: pl.Series
    rounded: pl.Series


class Columns:
    """Columns of a table by plain name; of two that agree, the first."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._names: dict[str, str] = {}
        for name in rows.frame.columns:
            self._names.setdefault(plain(name), name)

    @property
    def names(self) -> frozenset[str]:
        """Plain names of all columns."""
        return frozenset(self._names)

    @property
    def height(self) -> int:
        """Number of rows."""
        return self.rows.frame.height

    def real(self, names: Sequence[str]) -> list[str]:
        """Return the names, as the file writes them, of those columns that exist."""
        return [self._names[name] for name in names if name in self._names]

    def text(self, names: Sequence[str]) -> pl.Series:
        """Return the first value of these columns as text; empty text and NULL are null."""
        found = [_text(self.rows.frame[name]) for name in self.real(names)]
        return _coalesce(found) if found else pl.Series("text", [None], pl.String).new_from_index(0, self.height)

    def number(self, names: Sequence[str]) -> tuple[pl.Series, pl.Series]:
        """Return the first value of these columns as a number, and where a text is none. NaN and infinity are null."""
        numbers, bad = [], pl.Series("bad", [False]).new_from_index(0, self.height)
        for name in self.real(names):
            column = _text(self.rows.frame[name]) if _is_text(self.rows.frame[name]) else self.rows.frame[name]
            cast = column.cast(pl.Float64, strict=False)
            bad |= column.is_not_null() & cast.is_null()
            numbers.append(cast.set(~cast.is_finite().fill_null(True), None))
        empty = pl.Series("number", [None], pl.Float64).new_from_index(0, self.height)
        return (_coalesce(numbers) if numbers else empty), bad

    def money(self, names: Sequence[str]) -> Amounts:
        """Return the first value of these columns as an exact amount, from the text that the file has."""
        never = pl.Series([False]).new_from_index(0, self.height)
        value = pl.Series("money", [None], pl.Decimal(38, 18)).new_from_index(0, self.height)
        bad = lost = never
        for name in self.real(names):
            texts = self.rows.written.get(name)
            amounts, no_amount, rounded = read_money(_text(self.rows.frame[name] if texts is None else texts))
            lost |= value.is_null() & rounded
            bad |= no_amount
            value = _coalesce([value, amounts])
        return Amounts(value, bad, lost)

    def instant(self, names: Sequence[str], options: ImportOptions, *, plus_days: int = 0) -> pl.Series:
        """Return the first of these columns as naive UTC; a time without a zone is of the one the options name.

        `plus_days` adds days of the calendar there, which have 23 or 25 hours when the clock changes.
        """
        found = [_instant(self.rows.frame[name], options, plus_days) for name in self.real(names)]
        empty = pl.Series("ts", [None], pl.Datetime("us")).new_from_index(0, self.height)
        return _coalesce(found) if found else empty


def _is_text(column: pl.Series) -> bool:
    return isinstance(column.dtype, pl.String)


def _text(column: pl.Series) -> pl.Series:
    if column.dtype.is_nested():
        return pl.Series(column.name, [None], pl.String).new_from_index(0, len(column))
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(_NULLS), None)


def _coalesce(columns: Sequence[pl.Series]) -> pl.Series:
    frame = pl.DataFrame([column.alias(str(number)) for number, column in enumerate(columns)])
    return frame.select(pl.coalesce(pl.all())).to_series()


def _instant(column: pl.Series, options: ImportOptions, plus_days: int) -> pl.Series:
    if _is_text(column):
        column = _text(column).str.replace(_AMERICAN, "${3}-${1}-${2}")
    clock = Clock(zone=options.time_zone)
    if plus_days:
        column = read_times(column, Clock()).ts + timedelta(days=plus_days)  # as the wall says
    ts = read_times(column, clock).ts
    return ts.set((ts.dt.year() < _FIRST_YEAR).fill_null(False), None)
