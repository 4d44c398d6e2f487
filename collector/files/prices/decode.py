"""`INTAKE`: lists of what tokens cost, told by the names of their fields."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC
from decimal import Decimal
from typing import Any

import polars as pl

from collector.files.content import Content, Format
from collector.files.intake import Decoded, Intake
from collector.files.options import FileKind, ImportOptions
from collector.files.prices.genai import is_genai, read_genai
from collector.files.prices.litellm import is_litellm, read_litellm
from collector.files.prices.llm_prices import is_llm_prices, read_llm_prices
from collector.files.prices.reading import PriceFile
from collector.files.refusals import counts
from collector.prices.listed import FIGURES, OWN, Listed, rows_of
from collector.prices.override import parse_prices
from store.batch import Batch
from store.errors import ConfigError, SourceError, UsageError
from store.tables import PRICES

_FORMS: Mapping[str, tuple[Callable[[str], bool], Callable[[Any, PriceFile], None]]] = {
    "LiteLLM": (is_litellm, read_litellm),
    "llm-prices": (is_llm_prices, read_llm_prices),
    "genai-prices": (is_genai, read_genai),
}
_OWN = re.compile(
    r'(^|[\s{,"])(input|cached_input|cache_write|output|reasoning)_per_(1m|million|1k|token)"?\s*:', re.MULTILINE
)
_ENTRY = re.compile(r'(^|[\s{,"])model"?\s*:', re.MULTILINE)


def decode_prices(content: Content, kind: FileKind, options: ImportOptions, source: str) -> Decoded:
    """Return the prices of a file as rows of `prices`; `valid_from` is null where neither list nor --time says it.

    Raises SourceError, naming the line, for a broken file or one of no known form, UsageError for a label.
    """
    del kind
    if options.labels:
        raise UsageError("--label does not apply to lists of prices", "state provider and currency in the list")
    file = PriceFile(str(content.path))
    form = next((name for name, (is_form, _) in _FORMS.items() if is_form(content.head)), None)
    if form is not None:
        _FORMS[form][1](_document(content), file)
    else:
        _read_own(content, file)
    rows = rows_of(file.listed, content.path.name)
    if options.at is not None:
        at = options.at.astimezone(UTC).replace(tzinfo=None)
        rows = rows.with_columns(rows["valid_from"].fill_null(at))
    kept = rows.unique(list(PRICES.key), keep="first", maintain_order=True)
    notes = [f"form: {form or 'own prices'}", *file.notes]
    notes += _twice(rows, kept)
    return Batch(source, {PRICES.name: kept}, counts(file.refused)), file.refused, tuple(notes)


def _twice(rows: pl.DataFrame, kept: pl.DataFrame) -> list[str]:
    """Remark on names that one list has twice, and how many of them at another price."""
    again = rows.height - kept.height
    other = rows.unique([*PRICES.key, *FIGURES]).height - kept.height
    return [f"{again} names came twice, {other} of them at another price: the first counts"] if again else []


def _document(content: Content) -> Any:
    try:
        return json.loads(content.text(), parse_float=Decimal)
    except (json.JSONDecodeError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise SourceError(f"{content.path}:{line}: broken JSON", "fetch the file again; nothing was imported") from None


def _read_own(content: Content, file: PriceFile) -> None:
    """Read a person's own file; every name of an entry is a row."""
    try:
        entries = parse_prices(content.text(), str(content.path))
    except ConfigError as error:
        raise SourceError(str(error), error.hint) from error
    for entry in entries:
        for name in entry.names:
            file.listed.append(Listed(OWN, entry.provider, name, entry.price.model, entry.price, entry.valid_from))


def _told(content: Content) -> FileKind | None:
    if content.format not in (Format.JSON, Format.CSV):  # YAML is read as neither
        return None
    head = content.head
    if content.format is Format.JSON and any(is_form(head) for is_form, _ in _FORMS.values()):
        return FileKind.PRICES
    return FileKind.PRICES if _OWN.search(head) and _ENTRY.search(head) else None


INTAKE = Intake(frozenset({FileKind.PRICES}), _told, decode_prices)
