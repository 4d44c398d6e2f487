"""An analysis that asks the store for nothing, since all it needs was typed: it needs no store."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from analytics.catalog import load
from infractl.runner import run_named

if TYPE_CHECKING:
    import polars as pl

    from analytics.result import Result
    from store.query import Query
    from store.window import Window


class NoStore:
    """Access and reader of nothing."""

    def analyze(self, name: str, params: Mapping[str, Any], window: str | None) -> "Result":
        """Run one analysis that reads nothing."""
        return run_named(self, name, params, window)

    def read(self, query: "Query", window: "Window") -> "pl.DataFrame":
        """Refuse: nothing may be asked."""
        raise LookupError(f"{query} within {window}: there is no store")

    def rows_estimate(self, name: str, window: "Window") -> int:
        """About how many rows a table has within a window: none."""
        del name, window
        return 0

    def newest(self) -> datetime | None:
        """Time of the newest row: there is none."""
        return None

    def close(self) -> None:
        """Release nothing."""


def asks_nothing(name: str, params: Mapping[str, Any]) -> bool:
    """Say whether an analysis with these parameters reads nothing."""
    analysis = load(name)
    return not analysis.inputs(analysis.make_params(params))
