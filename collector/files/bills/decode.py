"""`INTAKE`: bills, usage reports of LLM providers, and recorded calls of their APIs."""

import io
import re
from collections.abc import Mapping

import polars as pl

from collector.files.bills.calls import decode_calls, is_calls
from collector.files.bills.columns import Columns, plain
from collector.files.bills.forms import FORMS, TABLE, form_of
from collector.files.bills.lines import decode_lines
from collector.files.bills.litellm import LITELLM, decode_litellm
from collector.files.bills.stream import decode_stream, is_stream
from collector.files.bills.usage_pages import decode_usage_pages, is_usage_pages
from collector.files.content import Content, Format
from collector.files.intake import Decoded, Intake
from collector.files.options import FileKind, ImportOptions
from collector.files.rows import read_rows

_KEY = re.compile(r'"(\w+)"\s*:')
_TOLD: Mapping[frozenset[str], FileKind] = {
    **{form.needs: FileKind.BILL for form in FORMS},
    LITELLM.needs: FileKind.LLM_USAGE,
}


def _told(content: Content) -> FileKind | None:
    if is_calls(content.head) or is_stream(content.head):
        return FileKind.LLM_CALLS
    if content.format is Format.JSON and is_usage_pages(content.head):
        return FileKind.LLM_USAGE
    names = _names(content)
    return next((kind for needs, kind in _TOLD.items() if needs <= names), None)


def _names(content: Content) -> frozenset[str]:
    """Plain names of the columns of a table; of JSON the keys at its beginning."""
    if content.format is Format.PARQUET:
        try:
            return frozenset(plain(name) for name in pl.read_parquet_schema(io.BytesIO(content.body)))
        except (pl.exceptions.PolarsError, OSError):
            return frozenset()  # whoever reads it says why
    if content.format is Format.JSON:
        return frozenset(plain(name) for name in _KEY.findall(content.head))
    line = content.head.lstrip().partition("\n")[0]
    delimiter = max(",;\t|", key=line.count)
    return frozenset(plain(name) for name in line.split(delimiter))


def _decode(content: Content, kind: FileKind, options: ImportOptions, source: str) -> Decoded:
    if kind is FileKind.LLM_CALLS:
        decode = decode_stream if is_stream(content.head) else decode_calls
        return decode(content, options, source)
    if kind is FileKind.LLM_USAGE and is_usage_pages(content.head):
        return decode_usage_pages(content, options, source)
    rows = read_rows(content, exact=True)
    columns = Columns(rows)
    if LITELLM.needs <= columns.names:
        return decode_litellm(rows, options, source, content.stem)
    return decode_lines(rows, form_of(columns) or TABLE, options, source)


INTAKE = Intake(frozenset({FileKind.BILL, FileKind.LLM_USAGE, FileKind.LLM_CALLS}), _told, _decode)
