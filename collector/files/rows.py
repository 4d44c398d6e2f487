"""Tables in files: CSV, JSON, JSONL and Parquet become one frame that knows the line of each row."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from collector.files.content import Content, Format
from collector.files.delimited import read_delimited
from collector.files.documents import read_documents
from store.errors import SourceError


@dataclass(frozen=True, slots=True)
class Rows:
    """A table as it stands in a file.

    Columns in `json` hold JSON text of values that are no plain number or text. `lines` is the line each row starts at;
    without it rows are counted from 1. `written` holds columns of fractions as the file writes them, where asked for.
    """

    path: Path
    frame: pl.DataFrame
    json: frozenset[str] = frozenset()
    lines: Sequence[int] = field(default=(), repr=False)
    written: Mapping[str, pl.Series] = field(default_factory=dict, repr=False)

    def where(self, index: int) -> str:
        """File and line (or row) of a row."""
        return f"{self.path}:{self.lines[index]}" if self.lines else f"{self.path} row {index + 1}"


def read_rows(content: Content, *, exact: bool = False) -> Rows:
    """Read the table a file holds; `exact` keeps fractions as they are written, too.

    Raises SourceError, naming file and line, where it is broken.
    """
    written: dict[str, pl.Series] | None = {} if exact else None
    if content.format is Format.PARQUET:
        frame, json, lines = _read_parquet(content, written), frozenset[str](), list[int]()
    elif content.format is Format.CSV:
        frame, lines = read_delimited(content, written)
        json = frozenset()
    else:
        frame, json, lines = read_documents(content, written)
    rows = Rows(content.path, frame, json, lines, written or {})
    if not rows.frame.height:
        raise SourceError(f"{content.path} holds no rows", "nothing was imported")
    return rows


def _read_parquet(content: Content, written: dict[str, pl.Series] | None) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(io.BytesIO(content.body))
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SourceError(
            f"{content.path}: broken Parquet file ({reason})", "write or fetch the file again; nothing was imported"
        ) from error
    floats = [name for name, kind in frame.schema.items() if kind.is_float() or kind.is_decimal()]
    if written is not None:
        written |= {name: frame[name].cast(pl.String) for name in floats}
    return frame.with_columns(pl.col(name).cast(pl.Float64).fill_nan(None) for name in floats)
