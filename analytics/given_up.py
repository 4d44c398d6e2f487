"""Requests that their client gave up: how a span says so, in this one place."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

ABORTED = "aborted"
"""Attribute by which clients say that they gave up a request themselves."""
STOPPED = ("abort", "aborted", "cancelled", "canceled")
"""Finish reasons that say so."""


def given_up() -> "pl.Expr":
    """Whether a request was given up, from its finish reason or the attribute; never null."""
    import polars as pl

    return (pl.col("finish_reason").is_in(STOPPED) | (pl.col(ABORTED) == "true")).fill_null(value=False)
