"""What no field takes: the other columns of a row as one JSON object, without a Python loop over rows."""

from collections.abc import Iterable, Mapping, Sequence

import orjson
import polars as pl

from collector.files.dialects import CONTENT_NAMES
from collector.files.rows import Rows
from collector.files.units import snake
from collector.otlp.content import ContentOptions

_UTF8_BYTES = 4  # at most, for one character


def other_columns(rows: Rows, used: frozenset[str], content: ContentOptions) -> tuple[list[str], list[str]]:
    """Columns that no field takes: those to keep, and those of conversation text, which stay in the file."""
    free = [name for name in rows.frame.columns if name not in used]
    if content.store_content:
        return free, []
    written = [n for n in free if snake(n).rpartition("_")[2] in CONTENT_NAMES or snake(n) in CONTENT_NAMES]
    text = [name for name in written if isinstance(rows.frame.schema[name], pl.String)]
    return [name for name in free if name not in text], text


def json_objects(
    rows: Rows, names: Sequence[str], constants: Mapping[str, str], content: ContentOptions
) -> tuple[pl.Series, pl.Series]:
    """Return a JSON object a row of the columns `names` and the constants, and where a long text was cut.

    Missing values are left out; a row without any has null.
    """
    frame, most = rows.frame, content.max_value_bytes // _UTF8_BYTES
    cut = pl.repeat(False, frame.height, eager=True)
    texts = [n for n in names if isinstance(frame.schema[n], pl.String) and n not in rows.json]
    for name in texts:
        long = (frame[name].str.len_chars() > most).fill_null(False)
        if long.any():
            frame = frame.with_columns(frame[name].str.head(most))
            cut |= long
    fixed = orjson.dumps(dict(constants)).decode()[1:-1]
    body = _members(frame, names, rows.json, [fixed] if fixed else [])
    objects = ("{" + body + "}").set(body == "", None)
    return objects, cut


def row_texts(rows: Rows) -> pl.Series:
    """Return each row as the JSON members of its columns, for a hash of its content."""
    return _members(rows.frame, rows.frame.columns, rows.json, [])


def _members(frame: pl.DataFrame, names: Iterable[str], json: frozenset[str], first: list[str]) -> pl.Series:
    members = [pl.repeat(text, frame.height, eager=True) for text in first]
    members += [_member(frame[name], name in json) for name in names]
    if not members:
        return pl.repeat("", frame.height, dtype=pl.String, eager=True)
    columns = {str(number): member for number, member in enumerate(members)}
    return pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator=",", ignore_nulls=True)).to_series()


def _member(column: pl.Series, is_json: bool) -> pl.Series:
    """`"name":value`, or null where the value is missing."""
    present = column.is_not_null()
    if is_json:
        text = orjson.dumps(column.name).decode() + ":" + column
    else:
        plain = column.cast(pl.String) if isinstance(column.dtype, pl.Binary | pl.Decimal) else column
        text = plain.to_frame().to_struct("row").struct.json_encode().str.slice(1)
        text = text.str.head(-1)
    return text.zip_with(present, pl.Series([None], dtype=pl.String).new_from_index(0, len(column)))
