"""Ids of imported requests: those of the log, else a hash of the row, so that a second import stores nothing twice."""

from hashlib import blake2b

import polars as pl

_DIGITS = {"trace_id": 32, "span_id": 16, "parent_span_id": 16}


def is_hex(ids: pl.Series, field: str) -> bool:
    """Tell whether every id is of the form that OpenTelemetry writes, but for case and dashes."""
    return bool(_compact(ids).str.contains(_form(field)).all())


def normal_ids(ids: pl.Series, field: str) -> pl.Series:
    """Return lower-case hex ids; an id of another form becomes its hash, equal for equal ids."""
    plain = _compact(ids)
    good = plain.str.contains(_form(field))
    size = _DIGITS[field] // 2
    table = {text: _digest(text, size) for text in ids.filter(~good.fill_null(True)).unique()}
    return pl.Series(
        ids.name, [p if ok else table.get(i) for p, i, ok in zip(plain, ids, good, strict=True)], pl.String
    )


def derived_ids(texts: pl.Series, salt: str) -> tuple[pl.Series, pl.Series]:
    """Return trace and span ids from each row's content and number: two equal rows of one file stay two requests."""
    digests = [_digest(f"{salt}\n{number}\n{text}", 24) for number, text in enumerate(texts)]
    both = pl.Series(digests, dtype=pl.String)
    return both.str.head(_DIGITS["trace_id"]), both.str.tail(_DIGITS["span_id"])


def _form(field: str) -> str:
    return rf"^[0-9a-f]{{{_DIGITS[field]}}}$"


def _compact(ids: pl.Series) -> pl.Series:
    return ids.str.strip_chars().str.to_lowercase().str.replace_all("-", "", literal=True)


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()
