"""Prometheus text and OpenMetrics in files → series and samples."""

from datetime import UTC, datetime

from collector.files.content import Content
from collector.files.options import ImportOptions
from collector.prometheus.exposition import Exposition
from collector.prometheus.series import to_batch
from collector.prometheus.text import TEXT, parse
from store.batch import Batch
from store.errors import SourceError, UsageError

_OPENMETRICS = "application/openmetrics-text"
_SHOWN = 80  # characters of a broken line


def decode_prometheus(content: Content, options: ImportOptions, source: str) -> Batch:
    """Return the samples of a file; the labels of `options` are added to every series.

    A line without a time stamp takes `options.at`; UsageError where that is not stated. A file that ends with `# EOF`
    is OpenMetrics: its times are seconds. Raises SourceError, naming the line, for one that is no metric.
    """
    openmetrics = content.body.rstrip().endswith(b"# EOF")
    try:
        page = parse(content.body, _OPENMETRICS if openmetrics else TEXT)
    except SourceError as error:
        raise SourceError(f"{content.path}: {error}", error.hint) from error
    if page.rejected:
        line, text = page.rejected[0]
        raise SourceError(
            f"{content.path}:{line}: no metric: {text[:_SHOWN]}", "repair or remove that line; nothing was imported"
        )
    return to_batch(source, page, options.at or _last_stated(content, page), options.labels)


def _last_stated(content: Content, page: Exposition) -> datetime:
    """Time of the newest sample. Raises UsageError where a sample states none."""
    times = page.times_ms or [None]
    stated = [time for time in times if time is not None]
    if len(stated) < len(times):
        missing = len(page.values) - len(stated)
        raise UsageError(
            f"{content.path}: {missing} of {len(page.values)} samples state no time",
            "say when the page was taken: --time 2026-11-30T12:00:00Z",
        )
    return datetime.fromtimestamp(max(stated) / 1000, UTC)
