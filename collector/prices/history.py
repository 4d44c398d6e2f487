"""When a price of an imported list starts, where the list does not say: history stays, a list seen again adds nothing.

The first import of a model holds from the beginning, so that requests stored before it are priced too. A later import
of the same list starts at its own time where a figure differs from the newest one stored, and is that row otherwise.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from collector.prices.listed import ALWAYS, FIGURES

if TYPE_CHECKING:
    import polars as pl


def dated(incoming: "pl.DataFrame", stored: "pl.DataFrame", now: datetime) -> "pl.DataFrame":
    """Return rows of `prices` with every `valid_from` filled; `now` is aware. Stated times stay as they are."""
    import polars as pl

    newest: dict[str, dict[str, Any]] = {}
    for row in stored.sort("valid_from").iter_rows(named=True):
        newest[row["price_id"]] = row
    moment, always = (time.astimezone(UTC).replace(tzinfo=None) for time in (now, ALWAYS))
    starts = []
    for row in incoming.iter_rows(named=True):
        known = newest.get(row["price_id"])
        if row["valid_from"] is not None:
            starts.append(row["valid_from"])
        elif known is None:
            starts.append(always)
        else:
            same = all(row[name] == known[name] for name in FIGURES)
            starts.append(known["valid_from"] if same else moment)
    return incoming.with_columns(pl.Series("valid_from", starts, pl.Datetime("us")))
