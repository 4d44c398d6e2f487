"""Usage objects in a request log (columns `usage.…`) → tokens as all providers count them."""

from collections.abc import Container
from typing import Any

import polars as pl

from collector.prices import read_usage

_PREFIX = "usage."
_FIELDS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")


def usage_tokens(
    frame: pl.DataFrame, provider: pl.Series | None, given: Container[str]
) -> tuple[dict[str, pl.Series], pl.Series]:
    """Return the token fields of the usage objects of a log, and the doubts of each row; none where it has no object.

    Anthropic counts cached tokens beside the prompt and some count reasoning beside the output: which one a row does
    is in its provider, else in the names it uses, so the whole object is read and no column by itself. Fields that are
    `given` are left to whoever gave them.
    """
    names = [name for name, kind in frame.schema.items() if name.startswith(_PREFIX) and kind.is_numeric()]
    wanted = [field for field in _FIELDS if field not in given]
    nothing = pl.repeat(None, frame.height, dtype=pl.String, eager=True)
    if not names or not wanted:
        return {}, nothing
    who = provider.to_list() if provider is not None else [None] * frame.height
    read = [
        read_usage({name.removeprefix(_PREFIX): value for name, value in row.items() if value is not None}, one)
        for row, one in zip(frame.select(names).iter_rows(named=True), who, strict=True)
    ]
    fields: dict[str, Any] = {field: [getattr(usage, field) for usage in read] for field in wanted}
    doubts = pl.Series([",".join(usage.quality) or None for usage in read], dtype=pl.String)
    return {field: pl.Series(values, dtype=pl.Int64) for field, values in fields.items()}, doubts
