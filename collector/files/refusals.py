"""Rows an import refuses: counted by reason, with the place of the first one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from collector.files.rows import Rows


@dataclass(frozen=True, slots=True)
class Refusal:
    """How many rows were refused for one reason, and where the first of them stands."""

    count: int
    first: str


def split(rows: Rows, reasons: Sequence[tuple[str, pl.Series]]) -> tuple[pl.Series, dict[str, Refusal]]:
    """Return the mask of the rows to keep, and the others by reason; a row counts for the first reason that holds."""
    kept = pl.Series([True]).new_from_index(0, rows.frame.height)
    refused: dict[str, Refusal] = {}
    for reason, holds in reasons:
        hit = kept & holds.fill_null(False)
        if count := int(hit.sum()):
            index = hit.arg_max()
            assert index is not None
            refused[reason] = Refusal(count, rows.where(index))
            kept &= ~hit
    return kept, refused


def counts(refused: Mapping[str, Refusal]) -> dict[str, int]:
    """Rows refused, by reason."""
    return {reason: refusal.count for reason, refusal in refused.items()}
