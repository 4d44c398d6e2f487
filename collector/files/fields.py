"""Values of a column as a field of `spans`: numbers in base units, counts, flags, text, and errors by one name."""

from collections.abc import Callable, Hashable
from typing import Any

import polars as pl

from collector.files.expression import number
from collector.files.plan import Source
from collector.files.units import factor_to
from collector.otlp.failures import error_type, http_error
from store.columns import Column, Kind
from store.errors import UsageError

_FINE = frozenset(
    {
        "",
        "ok",
        "success",
        "succeed",
        "succeeded",
        "successful",
        "completed",
        "finished",
        "done",
        "none",
        "null",
        "unset",
    }
)
_FAILED = frozenset({"error", "failed", "failure", "fail", "false"})
UNFINISHED = frozenset({"pending", "queued", "running", "in_progress", "in progress"})
"""Words (in lower case) for a request that has neither succeeded nor failed yet."""
_NAME = r"^[A-Za-z_][\w.]{0,63}$"


def read_number(frame: pl.DataFrame, source: Source, column: Column) -> tuple[pl.Series, pl.Series]:
    """Return a numeric field in its base unit (null: missing or not finite), and where a text is no number."""
    expression = source.expression
    value, bad = (
        number(expression.columns[0], frame.schema) if expression.plain else (expression.value, expression.unparsed)
    )
    factor = factor_to(column.unit, source.unit, column.name) if source.unit else 1.0
    numbers, unparsed = frame.select(value.cast(pl.Float64).alias("value"), bad.alias("bad")).get_columns()
    scaled = _scale(_full(numbers, frame.height), factor)
    finite = scaled.set(~scaled.is_finite().fill_null(True), None)
    if column.kind is Kind.INT:
        finite = finite.round().cast(pl.Int64, strict=False)
    return finite, _full(unparsed, frame.height)


def _scale(values: pl.Series, factor: float) -> pl.Series:
    """Multiply, or divide where that is exact: 100403 us are 0.100403 s, but 100403 x 1e-6 is 0.10040299999999999.

    By a column, since polars multiplies by the reciprocal of a single divisor.
    """
    if factor >= 1:
        return values * factor
    return values / pl.repeat(round(1 / factor), values.len(), dtype=pl.Float64, eager=True)


def _full(values: pl.Series, height: int) -> pl.Series:
    """Stretch the one value that a constant selects to the height of the frame."""
    return values.new_from_index(0, height) if values.len() != height else values


def read_text(frame: pl.DataFrame, source: Source) -> pl.Series:
    """Return a field of text; empty text is missing."""
    column = frame.select(source.expression.value).to_series()
    if column.dtype.is_nested() or isinstance(column.dtype, pl.Binary):
        raise UsageError(f"column {column.name!r} holds {column.dtype}, not text", "map another column")
    text = column.cast(pl.String)
    return text.set(text.str.strip_chars() == "", None)


def read_flag(frame: pl.DataFrame, source: Source) -> pl.Series:
    """Return a field of true or false; other values are missing."""
    return _each(frame.select(source.expression.value).to_series(), _flag, pl.Boolean())


def read_error(frame: pl.DataFrame, source: Source) -> pl.Series:
    """Return what went wrong by its normal name ('HTTP_429', 'TIMEOUT', a class, a number); null where it went well.

    Takes HTTP status codes, error codes, words and flags, where true means an error.
    """
    return _each(frame.select(source.expression.value).to_series(), _error, pl.String())


def read_status(frame: pl.DataFrame, source: Source) -> pl.Series:
    """Return as `read_error` does from a column of outcomes, where true means success and unknown words are errors."""
    return _each(frame.select(source.expression.value).to_series(), _failure, pl.String())


def error_of_message(messages: pl.Series) -> pl.Series:
    """Return a name for errors that left only a message: the message where it is a name itself, else 'error'."""
    named = messages.set(~messages.str.contains(_NAME), "error")
    return _each(named, _error, pl.String())


def _each(values: pl.Series, convert: Callable[[Any], Any], kind: pl.DataType) -> pl.Series:
    """Convert every different value once: columns of outcomes hold few."""
    if values.dtype.is_nested():
        raise UsageError(f"column {values.name!r} holds {values.dtype}, not text", "map another column")
    table: dict[Hashable, Any] = {value: convert(value) for value in values.unique() if value is not None}
    converted = [None if value is None else table[value] for value in values]
    return pl.Series(values.name, converted, kind)


def _flag(value: Any) -> bool | None:
    word = str(value).strip().lower()
    return True if word in {"true", "1", "yes"} else False if word in {"false", "0", "no"} else None


def _error(value: Any) -> str | None:
    if isinstance(value, bool):
        return "error" if value else None
    word = str(value).strip()
    code = _whole(word)
    if code is not None:
        return None if code == 0 or 100 <= code < 400 else http_error(code) or str(code)
    if word.lower() in _FINE or word.lower() in UNFINISHED:
        return None
    return "error" if word.lower() in _FAILED else error_type(word)


def _failure(value: Any) -> str | None:
    return _error(not value) if isinstance(value, bool) else None if str(value).lower() == "true" else _error(value)


def _whole(word: str) -> int | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
