"""Exposition text to series and values; `PageMemo` makes the next page of the same target cheap.

In the steady state (about 40 times as fast as prometheus_client, see benchmarks/exposition_parser.md) a page is a list
of heads, all that stands before the value, and of values. Where the heads and all other lines are those of the page
before, only what follows the heads is read: values, times, exemplars (skipped). Otherwise each line looks its head up,
and only an unknown one is parsed. Every way gives exactly what a full parse gives.

Policy for lines that cannot be read: in Prometheus text they are rejected one by one, counted and named, and the others
are kept; in OpenMetrics, whose readers must not take half a page, the first one fails the page. A page that can be read
and breaks a rule of OpenMetrics on its families is kept, with a warning that names the line.

Policy for pages that are no metrics: what starts with `<` is refused as HTML whatever its content type. Samples are
taken from any other content type, with a warning. A page without a sample is refused unless its content type is one of
metrics and it is empty or holds comments only, which gives a warning.
"""

from collections.abc import Sequence
from dataclasses import replace

from collector.prometheus.exposition import Exposition, Series
from collector.prometheus.families import first_fault
from collector.prometheus.layout import Layout, layout
from collector.prometheus.reader import Reader
from store.errors import SourceError

TEXT = "text/plain; version=0.0.4"
OPENMETRICS = "application/openmetrics-text"
_METRICS = (OPENMETRICS, "text/plain")
_SHOWN = 120  # characters of a line shown in an error


def parse(body: bytes, content_type: str = TEXT) -> Exposition:
    """Read a page of metrics.

    Lines of Prometheus text that cannot be read are reported in `rejected`; the others are kept. Raises SourceError for
    a page that holds no metrics (a login page, JSON, an error text), and for an OpenMetrics page with a line that
    cannot be read or without its `# EOF`: it is cut short.
    """
    return PageMemo().parse(body, content_type)


def media_type(content_type: str) -> str:
    """Return a content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


class PageMemo:
    """Parser of one target's pages. Remembers the series of the last page only, so churn does not grow it."""

    def __init__(self) -> None:
        self._series: dict[bytes, Series] = {}
        self._layout: Layout | None = None
        self._content_type = ""

    def parse(self, body: bytes, content_type: str = TEXT) -> Exposition:
        """Read a page as `parse` does. On an unchanged page `series` is the very sequence of the page before."""
        lines = body.split(b"\n")
        page = self._layout.read(body, lines) if self._layout and content_type == self._content_type else None
        return page or self._full(lines, content_type)

    def _full(self, lines: list[bytes], content_type: str) -> Exposition:
        form = media_type(content_type)
        reader = Reader(self._series, form == OPENMETRICS)
        reader.read(lines)
        page, found = reader.page()
        warnings = _warnings(page, lines, form)
        if form == OPENMETRICS:
            warnings += _openmetrics(reader, lines)
        page = replace(page, warnings=warnings)
        self._series = reader.known
        self._layout, self._content_type = layout(lines, found, page, reader.openmetrics), content_type
        return page


def _openmetrics(reader: Reader, lines: Sequence[bytes]) -> tuple[str, ...]:
    """Return a warning for the first rule broken. Raises SourceError for a page that OpenMetrics does not let pass."""
    if reader.ended is None:
        raise SourceError("the OpenMetrics page ends without # EOF: it is cut short", "see the target's own log")
    for number, text in reader.rejected:
        what = "cannot be read" if number <= reader.ended else "stands after # EOF"
        raise SourceError(
            f"line {number} of the OpenMetrics page {what}: {text[:_SHOWN]}",
            "repair it at its source; in a page of Prometheus text only that line would be lost",
        )
    fault = first_fault(lines, reader.found)
    return (f"not OpenMetrics, line {fault.line}: {fault.reason}",) if fault else ()


def _warnings(page: Exposition, lines: Sequence[bytes], form: str) -> tuple[str, ...]:
    """Apply the policy for pages that are no metrics. Raises SourceError."""
    shown = form or "no content type"
    first = next((line.strip() for line in lines if line.strip()), b"")
    start = first[:_SHOWN].decode("utf-8", "replace")
    if first.startswith(b"<"):
        raise SourceError(f"the answer is HTML ({shown}), not metrics: {start}", "a login page or a wrong path?")
    if page.values:
        return () if form in _METRICS else (f"content type is {shown}; read as Prometheus text",)
    if page.rejected:
        raise SourceError(f"no line of the answer ({shown}) is a metric: {start}", _hint(first))
    if form not in _METRICS:
        raise SourceError(f"the answer holds no samples and its content type is {shown}", "a wrong path?")
    return ("0 samples",)


def _hint(first: bytes) -> str:
    if first[:1] in (b"{", b"["):
        return "this is JSON; TensorRT-LLM serves metrics on /prometheus/metrics"
    return "check the target's path"
