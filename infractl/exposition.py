"""infractl's /metrics page: the signals of every analysis and its own counters, stored when they happen.

A scrape only writes text. It never runs an analysis, so that ten scrapers cost ten texts.
"""

import math
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.metrics_core import Metric

from analytics.analysis import Analysis
from analytics.result import Result, Severity, Signal
from infractl import __version__
from rules import own
from rules.naming import cut, label_names, metric_name
from rules.own import OwnMetric
from store.batch import Batch, Receipt
from store.writer import QUEUE_ROWS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CONTENT_TYPE", "LABEL_SETS", "Exposition"]

LABEL_SETS = 5_000
"""Label sets that one signal publishes; more would hurt the Prometheus that scrapes them. The rest is counted."""

Labels = tuple[str, ...]
Values = Mapping[Labels, float]


@dataclass(slots=True)
class _Published:
    """What the last run of one analysis left."""

    signals: dict[str, Values] = field(default_factory=dict)
    gauges: dict[OwnMetric, Values] = field(default_factory=dict)


class Exposition:
    """Holds the latest samples and counters; safe to use from several threads."""

    def __init__(self, analyses: Iterable[Analysis[Any]] = ()) -> None:
        """Declare the signals of `analyses`: a page without samples still says which metrics there are."""
        self._signals: dict[str, Signal] = {}
        self._published: dict[str, _Published] = {}
        self._counters: dict[OwnMetric, Counter[Labels]] = {m: Counter() for m in own.METRICS if m.kind == "counter"}
        self._queue: tuple[Callable[[], int], int] | None = None
        self._received: Callable[[], Mapping[tuple[str, str, str], int]] = dict
        self._store: Callable[[], Mapping[OwnMetric, Values]] = dict
        self._lock = Lock()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Collector(self))
        for analysis in analyses:
            self._declare(analysis)

    def publish(
        self, analysis: Analysis[Any], result: Result, finished_at: datetime, duration_s: float, input_rows: int
    ) -> None:
        """Replace all that `analysis` published before; label sets that are gone from the result are gone here.

        A result that is empty or refused counts as a success: the analysis ran and said so.
        """
        name = analysis.name
        refused: Counter[Labels] = Counter()
        declared = {signal.name: signal for signal in analysis.signals}
        samples = {s: _read(name, declared.get(s), frame, refused) for s, frame in result.samples.items()}
        gauges: dict[OwnMetric, Values] = {
            own.LAST_SUCCESS: {(name,): finished_at.timestamp()},
            own.DURATION: {(name,): duration_s},
            own.INPUT_ROWS: {(name,): float(input_rows)},
            own.FINDINGS: _open_findings(name, result),
        }
        with self._lock:
            self._declare(analysis)
            self._published[name] = _Published(samples, gauges)
            self._counters[own.REFUSED].update(refused)

    def failed(self, analysis: str) -> None:
        """Count a run that raised; what it published before stays, and its age tells."""
        with self._lock:
            self._counters[own.FAILURES][analysis,] += 1

    def stored(self, batch: Batch, receipt: Receipt) -> None:
        """Count the committed rows of a batch by table, and those its decoder refused by reason."""
        with self._lock:
            for table, rows in receipt.stored.items():
                self._counters[own.INGESTED][batch.source, table] += rows
        self.dropped(batch.source, batch.drops)

    def dropped(self, source: str, drops: Mapping[str, int]) -> None:
        """Count refused rows by reason."""
        with self._lock:
            for reason, rows in drops.items():
                self._counters[own.DROPPED][source, reason] += rows

    def watch_queue(self, rows: Callable[[], int], limit_rows: int = QUEUE_ROWS) -> None:
        """Ask `rows` at each scrape how many rows wait; told only at submit, the gauge would never fall again."""
        self._queue = (rows, limit_rows)

    def watch_receivers(self, requests: Callable[[], Mapping[tuple[str, str, str], int]]) -> None:
        """Ask `requests` at each scrape for the requests received so far, by (protocol, signal, outcome)."""
        self._received = requests

    def watch_store(self, gauges: Callable[[], Mapping[OwnMetric, Values]]) -> None:
        """Ask `gauges` at each scrape about the store: sizes, free space, its own work."""
        self._store = gauges

    def render(self) -> bytes:
        """Return the page in Prometheus' text format 0.0.4 (CONTENT_TYPE)."""
        return generate_latest(self._registry)

    def _declare(self, analysis: Analysis[Any]) -> None:
        for signal in analysis.signals:
            if self._signals.setdefault(signal.name, signal) != signal:
                raise ValueError(f"two analyses declare signal {signal.name!r} differently")
        self._counters[own.FAILURES][analysis.name,] += 0  # a counter born at 1 has no increase

    def families(self) -> Iterator[Metric]:
        """Metric families of everything published, as of now."""
        with self._lock:
            published = list(self._published.values())
            counters = {metric: dict(counts) for metric, counts in self._counters.items()}
            signals = list(self._signals.values())
        counters[own.RECEIVED] = {(*labels,): n for labels, n in self._received().items()}
        for signal in signals:
            yield _signal_family(signal, [p.signals.get(signal.name, {}) for p in published])
        queue = {**_queue_gauges(self._queue), **self._store()}
        for metric, counts in counters.items():
            yield _own_family(metric, [counts])
        for metric in own.METRICS:
            if metric.kind == "gauge" and metric is not own.BUILD:
                yield _own_family(metric, [queue.get(metric, {}), *(p.gauges.get(metric, {}) for p in published)])
        yield _own_family(own.BUILD, [{(__version__, platform.python_version()): 1.0}])


class _Collector:
    """What the registry asks at a scrape."""

    def __init__(self, exposition: Exposition) -> None:
        self._exposition = exposition

    def collect(self) -> Iterator[Metric]:
        return self._exposition.families()


def _signal_family(signal: Signal, parts: Sequence[Values]) -> Metric:
    names = label_names(signal.labels)
    family = GaugeMetricFamily(metric_name(signal.metric), signal.doc, labels=[names[n] for n in signal.labels])
    return _fill(family, parts)


def _own_family(metric: OwnMetric, parts: Sequence[Values]) -> Metric:
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return _fill(kind(metric.name, metric.doc, labels=list(metric.labels)), parts)


def _fill(family: CounterMetricFamily | GaugeMetricFamily, parts: Sequence[Values]) -> Metric:
    merged = {labels: value for values in parts for labels, value in values.items()}
    for labels, value in merged.items():  # one label set twice would make Prometheus refuse the page
        family.add_metric(labels, value)
    return family


def _read(analysis: str, signal: Signal | None, frame: "pl.DataFrame", refused: Counter[Labels]) -> Values:
    """Values by label set; a value that is null or not finite is absent, what else is left out is counted."""
    values: dict[Labels, float] = {}
    if signal is None:
        refused[analysis, "undeclared signal"] += frame.height
        return values
    for row in frame.iter_rows(named=True):
        value = row["value"]
        if value is None or not math.isfinite(value):
            continue
        labels = tuple("" if row.get(n) is None else cut(str(row[n])) for n in signal.labels)
        if labels in values:
            refused[analysis, "duplicate label set"] += 1
        elif len(values) >= LABEL_SETS:
            refused[analysis, "too many label sets"] += 1
        else:
            values[labels] = float(value)
    return values


def _queue_gauges(queue: tuple[Callable[[], int], int] | None) -> Mapping[OwnMetric, Values]:
    if queue is None:
        return {}
    rows, limit_rows = queue
    return {own.QUEUE: {(): float(rows())}, own.QUEUE_LIMIT: {(): float(limit_rows)}}


def _open_findings(analysis: str, result: Result) -> Values:
    """Open findings by severity; none is a number too: 0."""
    counts = Counter(str(f.severity) for f in result.findings if f.until is None)
    return {(analysis, str(s)): float(counts[str(s)]) for s in Severity}
