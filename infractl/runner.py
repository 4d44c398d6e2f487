"""Run one analysis over a store: read its inputs, call it, hand back the Result."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from analytics.analysis import Analysis, Params
from analytics.catalog import load
from analytics.drivers import STALE_AFTER
from analytics.result import Result
from store.query import Choice, Query
from store.window import Window, format_duration, format_time

if TYPE_CHECKING:
    import polars as pl


RAW_SPAN, RAW_ROWS = timedelta(hours=24), 500_000
"""A window that is no longer and holds no more rows is read from raw rows: exact, and as fast (measured to 900,000)."""
ROLLED_SPAN = timedelta(hours=1)
"""A window that is shorter has too few buckets of five minutes."""


class Reader(Protocol):
    """What a run needs of the store."""

    def read(self, query: Query, window: Window) -> "pl.DataFrame":
        """Rows of a query within a window."""
        ...

    def rows_estimate(self, name: str, window: Window) -> int:
        """About how many rows a table has within a window."""
        ...

    def newest(self) -> datetime | None:
        """Time of the newest request or sample."""
        ...


def run(reader: Reader, analysis: Analysis[Any], params: Params, window: Window) -> tuple[Result, int]:
    """Return the Result and the number of rows it rests on."""
    asked = [_chosen(reader, name, query, window) for name, query in analysis.inputs(params).items()]
    inputs = {name: reader.read(query, window) for queries in asked for name, query in queries.items()}
    return analysis.run(inputs, params, window), sum(frame.height for frame in inputs.values())


def _chosen(reader: Reader, name: str, query: Query | Choice, window: Window) -> Mapping[str, Query]:
    """Return what to read of an input: of a choice the raw rows, unless the window is long or holds very many."""
    if not isinstance(query, Choice):
        return {name: query}
    if query.shorter_than is not None:
        return {name: query.raw} if window.span < query.shorter_than else query.rolled(window)
    if window.span < ROLLED_SPAN:
        return {name: query.raw}
    most = max(query.raw_up_to, RAW_ROWS if window.span <= RAW_SPAN else 0)
    raw = most > 0 and reader.rows_estimate("spans", window) <= most
    return {name: query.raw} if raw else query.rolled(window)


def run_named(reader: Reader, name: str, params: Mapping[str, Any], window: str | None) -> Result:
    """Run an analysis by name with texts as parameters.

    Without a window it ends at the newest row and is as long as the analysis looks back; a note says so when that is
    not the present.
    """
    analysis = load(name)
    made = analysis.make_params(params)
    now = datetime.now(UTC).replace(microsecond=0)  # so that the times of buckets read well
    if window is not None:
        return run(reader, analysis, made, Window.parse(window, now))[0]
    chosen = newest_window(reader, analysis, now)
    result = run(reader, analysis, made, chosen)[0]
    if now - chosen.end <= STALE_AFTER:
        return result
    span = format_duration(chosen.span)
    note = f"No window was named: this is the {span} up to the newest row, {format_time(chosen.end)}."
    return replace(result, notes=(*result.notes, note))


def newest_window(reader: Reader, analysis: Analysis[Any], now: datetime) -> Window:
    """Return the look-back window of an analysis up to the newest request or sample, or up to now without one.

    The end is the next full minute, so that the times of buckets read well; never the future.
    """
    newest = reader.newest()
    if newest is None:
        return Window.last(analysis.lookback, now)
    minute = newest.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return Window.last(analysis.lookback, min(minute, now))
