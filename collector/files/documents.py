"""JSON and JSONL → frame: a list of objects, objects by id, an object around one list, or an object a line."""

import json
import math
from collections.abc import Callable
from typing import Any, Self

import orjson
import polars as pl

from collector.files.content import Content
from collector.files.dialects import MEASURED, recognise, time_column
from store.errors import SourceError

Row = dict[str, Any]


class Written(float):
    """A fraction that knows how the file writes it: a double has 17 digits, an amount of money may have more."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Read a number."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text


def read_documents(
    content: Content, written: dict[str, pl.Series] | None = None
) -> tuple[pl.DataFrame, frozenset[str], list[int]]:
    """Read the objects of a JSON or JSONL file: the frame, its columns of JSON text, and the line of each row (JSONL).

    Objects inside objects become columns with dotted names ('usage.prompt_tokens'). `written`, where given, receives
    the columns of fractions as text. Raises SourceError, naming the line, for text that is no JSON, and for a document
    that holds no list of objects.
    """
    text = content.text()
    parse = _parse if written is None else _parse_written
    single = _single(text, parse)
    if single is None:
        lines, rows = _read_lines(content, text, parse)
    else:
        lines, rows = [], _objects(content, single)
    names = dict.fromkeys(name for row in rows for name in row)
    columns, nested = [], set()
    for name in names:
        values = [row.get(name) for row in rows]
        column, is_json = _column(name, values)
        columns.append(column)
        if written is not None and column.dtype.is_float():
            written[name] = pl.Series(name, [None if value is None else str(value) for value in values], pl.String)
        if is_json:
            nested.add(name)
    return pl.DataFrame(columns), frozenset(nested), lines


def line_of_break(text: str) -> int | None:
    """Return the line at which a text stops being JSON, or None where it is JSON."""
    try:
        _parse(text)
    except json.JSONDecodeError as error:
        return error.lineno
    return None


def _lines(text: str) -> list[str]:
    return text.split("\n")  # not splitlines: it also cuts at U+2028, which JSON texts may hold


def _single(text: str, parse: Callable[[str], Any]) -> Any | None:
    """Return the document where the whole text is one, else None."""
    try:
        return parse(text)
    except json.JSONDecodeError:
        return None


def _parse(text: str) -> Any:
    """Parse JSON, also with the NaN and Infinity that Python's own writer leaves. Raises json.JSONDecodeError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _parse_standard(text, float)


def _parse_written(text: str) -> Any:
    """Parse JSON so that its fractions know how they are written. Raises json.JSONDecodeError."""
    return _parse_standard(text, Written)


def _parse_standard(text: str, fraction: Callable[[str], float]) -> Any:
    try:
        document = json.loads(text, parse_float=fraction)
        json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise json.JSONDecodeError("nested too deep", text, 0) from None
    except UnicodeEncodeError:
        raise json.JSONDecodeError("half a surrogate pair", text, 0) from None
    return document


def _broken(content: Content, error: json.JSONDecodeError, line: int, remedy: str) -> SourceError:
    return SourceError(
        f"{content.path}:{line}: broken JSON at column {error.colno} ({error.msg})", f"{remedy}; nothing was imported"
    )


def _loads(content: Content, part: str, line: int, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(part)
    except json.JSONDecodeError as error:
        raise _broken(content, error, line, "repair or remove that line") from error


def _read_lines(content: Content, text: str, parse: Callable[[str], Any]) -> tuple[list[int], list[Row]]:
    """Read an object a line; where the first line is none, the text is one broken document: name where it breaks."""
    parts = [(line, part) for line, part in enumerate(_lines(text), 1) if part.strip()]
    if _single(parts[0][1], parse) is None:
        try:
            _parse(text)
        except json.JSONDecodeError as error:
            raise _broken(content, error, error.lineno, "repair or fetch the file again") from error
    lines: list[int] = []
    rows: list[Row] = []
    for line, part in parts:
        row = _loads(content, part, line, parse)
        if not isinstance(row, dict):
            raise SourceError(
                f"{content.path}:{line}: no JSON object", "each line must be one object; nothing was imported"
            )
        lines.append(line)
        rows.append(_flat(row))
    return lines, rows


def _objects(content: Content, document: Any) -> list[Row]:
    """Return the rows of one document, in any of its shapes."""
    if isinstance(document, list):
        return [_flat(_object(content, row, number)) for number, row in enumerate(document, 1)]
    if isinstance(document, dict):
        if document and all(isinstance(value, dict) for value in document.values()):
            return _by_id(document)
        lists = [value for value in document.values() if isinstance(value, list)]
        if len(lists) == 1 and lists[0] and isinstance(lists[0][0], dict) and not _is_row(document):
            return _objects(content, lists[0])
        return [_flat(document)]
    raise SourceError(f"{content.path}: no JSON object or list of objects", "nothing was imported")


def _is_row(document: Row) -> bool:
    """Tell a request with a list inside ('messages') from a wrapper around a table."""
    plain = [name for name, value in document.items() if not isinstance(value, list)]
    return not MEASURED.isdisjoint(recognise(plain)) or time_column(plain) is not None


def _object(content: Content, row: Any, number: int) -> Row:
    if not isinstance(row, dict):
        raise SourceError(f"{content.path} row {number}: no JSON object", "nothing was imported")
    return row


def _by_id(document: dict[str, Row]) -> list[Row]:
    """Objects by id. The id becomes the column `key`, unless it only counts or a column of the objects repeats it."""
    rows = [_flat(row) for row in document.values()]
    keys = list(document)
    repeated = any(all(str(row.get(name)) == key for row, key in zip(rows, keys, strict=True)) for name in rows[0])
    counted = keys == [str(number) for number in range(len(keys))]
    return rows if repeated or counted else [{"key": key, **row} for key, row in zip(keys, rows, strict=True)]


def _flat(row: Row, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _column(name: str, values: list[Any]) -> tuple[pl.Series, bool]:
    """Make a column of numbers, text or lists of numbers; anything nested stays JSON text (second answer: true)."""
    kinds = {float if isinstance(value, Written) else type(value) for value in values if value is not None}
    if not kinds or kinds == {bool}:
        return pl.Series(name, values, pl.Boolean if kinds else pl.String), False
    if kinds <= {int, float, bool}:
        return _numbers(name, values, pl.Float64 if float in kinds or not _fit(values) else pl.Int64), False
    if kinds <= {int, float, bool, str}:
        return pl.Series(name, [None if v is None else str(v) for v in values], pl.String), False
    items = [item for value in values if isinstance(value, list) for item in value]
    if kinds == {list} and all(type(item) in (int, float, Written) for item in items) and _fit(items):
        inner = pl.Float64 if any(isinstance(item, float) for item in items) else pl.Int64
        return pl.Series(name, values, pl.List(inner), strict=False), False
    return pl.Series(name, [None if v is None else _dump(v) for v in values], pl.String), True


def _dump(value: Any) -> str:
    """JSON text; NaN and infinities become null. Whole numbers beyond 64 bits are the standard library's part."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False)


def _numbers(name: str, values: list[Any], kind: type[pl.Int64 | pl.Float64]) -> pl.Series:
    if kind is pl.Int64:
        return pl.Series(name, values, kind, strict=False)
    return pl.Series(name, [None if v is None else _float(v) for v in values], kind).fill_nan(None)


def _fit(values: list[Any]) -> bool:
    return all(v is None or -(2**63) <= v < 2**63 for v in values)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
