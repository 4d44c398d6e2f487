"""`Measure`: the values of one series name, a row each."""

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Measure:
    """Values by row; the canonical name they are mapped to and how they convert to it, where they are."""

    name: str
    values: pl.Series
    canonical: str | None = None
    unit: str | None = None
    scale: float | None = None
