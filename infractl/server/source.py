"""What the dashboard reads, from the store of this process."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Tracer

from analytics.result import Result, Status
from infractl.runner import Reader, run_named
from store.database import Database
from store.tables import SPANS

if TYPE_CHECKING:
    import polars as pl


class StoreSource:
    """Answers the dashboard's questions; each is one span of our own traces."""

    def __init__(
        self,
        database: Database,
        reader: Reader,
        tracer: Tracer,
        status: Callable[[], Mapping[str, Any]],
        latest: Callable[[], Mapping[str, Result]],
        configured: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Read traces from `database`, the rest through `reader`.

        `latest` are the results of the schedule, which serve again where they fit; `configured` its parameters by
        analysis, which hold for a page's own question too.
        """
        self._database, self._reader, self._tracer = database, reader, tracer
        self._configured = configured
        self._status, self._latest = status, latest

    def result(self, analysis: str, params: Mapping[str, Any], window: str | None) -> Result:
        """Run an analysis. Without filters and window the schedule's latest answer serves, if it has one.

        Where the schedule found nothing (all rows are older), the window ends at the newest row instead.
        """
        scheduled = self._latest().get(analysis)
        if not params and window is None and scheduled is not None and scheduled.status is not Status.EMPTY:
            return scheduled
        with self._tracer.start_as_current_span(f"page {analysis}"):
            return run_named(self._reader, analysis, {**self._configured.get(analysis, {}), **params}, window)

    def status(self) -> Mapping[str, Any]:
        """Facts about the store and the sources."""
        return self._status()

    def trace(self, trace_id: str) -> "pl.DataFrame":
        """Spans of one trace."""
        return self._database.equal(SPANS, "trace_id", trace_id)
