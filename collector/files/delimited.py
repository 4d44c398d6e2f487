"""CSV → frame. Not by polars' own reader: it pads short rows without a word and knows no line numbers."""

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from collector.files.content import Content
from store.errors import SourceError

if TYPE_CHECKING:
    from _csv import Reader

_DELIMITERS = ",;\t|"
MISSING = frozenset({"", "nan", "na", "n/a", "[n/a]", "null", "none", "-", "[not supported]", "not available"})
"""Cells (in lower case) that say a value is missing."""


def read_delimited(content: Content, written: dict[str, pl.Series] | None = None) -> tuple[pl.DataFrame, list[int]]:
    """Read a CSV file with a header line, and the line each row starts at.

    The delimiter is the one of , ; tab | that the header holds most. Columns whose every cell is a number become
    numbers; cells that say a value is missing become null. `written`, where given, receives the cells of columns of
    fractions. Raises SourceError for a row with more or fewer cells than
    the header, a broken quote or a missing header.
    """
    text = content.text()
    header_line = text.lstrip().partition("\n")[0]
    delimiter = max(_DELIMITERS, key=header_line.count)
    cells, lines = _quoted(content, text, delimiter) if '"' in text else _plain(text, delimiter)
    names = _names(content, cells[0].to_list())
    short = (cells.list.len() != len(names)).arg_true()
    if short.len():
        raise SourceError(
            f"{content.path}:{lines[short[0]]}: {len(cells[short[0]])} cells where the header has {len(names)}",
            "repair or remove that line; nothing was imported",
        )
    body = cells.slice(1)
    columns = []
    for at, name in enumerate(names):
        cells = _present(body.list.get(at).alias(name))
        columns.append(_typed(cells))
        if written is not None and columns[-1].dtype.is_float():
            written[name] = cells
    return pl.DataFrame(columns), lines[1:]


def _plain(text: str, delimiter: str) -> tuple[pl.Series, list[int]]:
    """Cells of each line that is not blank, and its number; without quotes a delimiter always delimits."""
    rows = pl.Series(text.split("\n"), dtype=pl.String).str.strip_chars_end("\r")
    present = (rows != "").arg_true()
    return rows.gather(present).str.split(delimiter), (present + 1).to_list()


def _quoted(content: Content, text: str, delimiter: str) -> tuple[pl.Series, list[int]]:
    """Read cells with the csv module, three times slower, for text with quotes."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines, cells = zip(*_rows(content, reader), strict=True)
    return pl.Series(cells, dtype=pl.List(pl.String)), list(lines)


def _rows(content: Content, reader: "Reader") -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with the line each starts at."""
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise SourceError(
                f"{content.path}:{line}: {error}", "repair the quotes of that line; nothing was imported"
            ) from error
        if row is None:
            return
        if row:
            yield line, row


def _names(content: Content, header: list[str]) -> list[str]:
    names = [name.strip() for name in header]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"{content.path}:1: two columns are called {twice!r}", "rename one of them")
    if all(_is_number(name) for name in names):
        raise SourceError(f"{content.path}:1: numbers where column names should be", "add a header line")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _present(column: pl.Series) -> pl.Series:
    """Missing cells become null."""
    cells = column.str.strip_chars()
    return cells.set(cells.str.to_lowercase().is_in(list(MISSING)), None)


def _typed(cells: pl.Series) -> pl.Series:
    """Make a column of numbers of one whose every cell is one. Leading zeros mark an id ('007'), not a number."""
    if cells.null_count() == cells.len() or cells.str.contains(r"^[-+]?0\d").any():
        return cells
    for kind in (pl.Int64(), pl.Float64()):
        numbers = cells.cast(kind, strict=False)
        if numbers.null_count() == cells.null_count():
            return numbers.fill_nan(None) if kind == pl.Float64() else numbers
    return cells
