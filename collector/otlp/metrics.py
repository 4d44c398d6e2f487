"""OTLP metric bodies to a `Batch` of samples, from protobuf and from JSON.

Names stay as on the wire; a histogram's parts get the suffixes _bucket, _sum and _count. Not kept: descriptions,
exemplars, minimum and maximum of histograms, schema URLs and scope versions.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from collector.otlp.anyvalue import attributes_as_python
from collector.otlp.metrics_json import from_json, malformed
from collector.otlp.metrics_labels import SCOPE, point_labels, target_of
from collector.otlp.metrics_messages import MetricsRequest
from collector.otlp.metrics_streams import CUMULATIVE, DELTA, NO_VALUE, Emitted, Part, RejectedError, Stream
from collector.otlp.repair import repair_protobuf
from collector.prometheus.exposition import Series
from collector.prometheus.identity import with_target
from collector.prometheus.series import EARLIEST, MOST_AHEAD
from collector.push.batch import Pushed, committed, push
from collector.push.columns import Points
from collector.push.series import PushedSeries
from collector.push.streams import Streams
from collector.push.units import unit_name

SOURCE = "otlp_metrics"
REASONS = {
    "no_name": "a metric has no name",
    "no_data": "a metric is of no type that is read",
    "no_value": "a point has no value",
    "no_temporality": "a sum or histogram is neither cumulative nor delta",
    "time_out_of_range": "a time is missing, before 2000 or more than an hour ahead",
    "too_many_series": "a million series are known already",
    "out_of_order": "a delta is older than one that is added already",
    "invalid_histogram": "bounds, counts or scale of a histogram do not fit",
}
"""Why points are refused."""
_NS = 10**9


@dataclass(slots=True, eq=False)
class _Metric:
    """A metric of one resource and scope."""

    name: str
    unit: str | None
    target: dict[str, str]
    kind: str
    streams: Streams[Stream] = field(default_factory=Streams)


@dataclass(slots=True)
class _Found:
    """Samples and refusals of one body."""

    at: datetime
    slots: list[int] = field(default_factory=list)
    times_us: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    starts_us: list[int] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)

    def points(self) -> Points:
        """Return the samples as columns."""
        slots, times_us, starts_us = (np.array(c, np.int64) for c in (self.slots, self.times_us, self.starts_us))
        return Points(slots, times_us, np.array(self.values, np.float64), starts_us)


class MetricsDecoder:
    """Decodes the metrics of all senders, over HTTP and gRPC alike, and remembers their series and sums."""

    def __init__(self) -> None:
        """Know no series yet."""
        self._series = PushedSeries()
        self._metrics: Streams[_Metric] = Streams()

    def decode_protobuf(self, body: bytes, at: datetime) -> Pushed:
        """Decode an ExportMetricsServiceRequest received at `at` (aware); invalid UTF-8 is replaced.

        Points refused are in the batch's drops, by reason. Raises SourceError for a body that is no such message.
        """
        request = _parse(body)
        found = _Found(at)
        with self._series.lock:
            try:
                for group in request.resource_metrics:
                    self._add_group(group, found)
            except DecodeError as error:
                raise malformed("protobuf", error) from None
            return push(self._series, SOURCE, found.points(), at, found.drops)

    def decode_json(self, body: bytes, at: datetime) -> Pushed:
        """Decode an OTLP/JSON body, as `decode_protobuf` does."""
        return self.decode_protobuf(from_json(body), at)

    def committed(self, pushed: Pushed) -> None:
        """Take note that a batch is stored."""
        committed(self._series, pushed)

    def _add_group(self, group: Any, found: _Found) -> None:
        target = target_of(attributes_as_python(group.resource.attributes))
        for part in group.scope_metrics:
            labels = target | ({SCOPE: part.scope.name} if part.scope.name else {})
            origin = tuple(sorted(labels.items()))
            for metric in part.metrics:
                self._add(metric, origin, found)

    def _add(self, metric: Any, origin: tuple[tuple[str, str], ...], found: _Found) -> None:
        form = metric.WhichOneof("data")
        held = getattr(metric, form) if form else None
        points = held.data_points if held is not None else ()
        try:
            kind, delta, read = _reader(metric.name, form, held)
        except RejectedError as error:
            found.drops[str(error)] += len(points) or 1
            return
        now_us = int(found.at.timestamp() * 1e6)
        key = (metric.name, metric.unit, kind, delta, origin)
        known = self._metrics.get(key, now_us, lambda: _Metric(metric.name, unit_name(metric.unit), dict(origin), kind))
        for point in points:
            try:
                stream = known.streams.get(tuple(point.attributes), now_us, lambda: self._stream(delta))
                self._emit(known, stream, point, read, found)
            except RejectedError as error:
                found.drops[str(error)] += 1

    def _stream(self, delta: bool) -> Stream:
        if self._series.full:
            raise RejectedError("too_many_series")
        return Stream(delta)

    def _emit(self, metric: _Metric, stream: Stream, point: Any, read: "_Read", found: _Found) -> None:
        if not EARLIEST.timestamp() <= point.time_unix_nano / _NS <= (found.at + MOST_AHEAD).timestamp():
            raise RejectedError("time_out_of_range")
        if point.flags & NO_VALUE:
            emitted = list(stream.ends(point))
        else:
            emitted = list(read(stream, point))
            stream.moved(point, [part for part, *_ in emitted])
        for part, at_us, value, start_us in emitted:
            found.slots.append(self._slot(metric, stream, point, part))
            found.times_us.append(at_us)
            found.values.append(value)
            found.starts_us.append(start_us)

    def _slot(self, metric: _Metric, stream: Stream, point: Any, part: Part) -> int:
        slot = self._series.known.get((stream, part))
        if slot is None:
            suffix, label, value = part
            labels = point_labels(point.attributes) | ({label: value} if label else {})
            series = Series(metric.name + suffix, with_target(labels, metric.target, honor=False), metric.kind)
            unit = None if suffix in ("_bucket", "_count") else metric.unit
            slot = self._series.learn((stream, part), series, unit)
        return slot


_Read = Callable[[Stream, Any], Iterator[Emitted]]


def _reader(name: str, form: str | None, held: Any) -> tuple[str, bool, _Read]:
    """Return the type of a metric's series, whether its points are deltas, and what reads a point.

    Raises RejectedError.
    """
    if not name:
        raise RejectedError("no_name")
    if form == "gauge":
        return "gauge", False, lambda stream, point: stream.number(point, counts=False)
    if form == "summary":
        return "summary", False, Stream.summary
    if form not in ("sum", "histogram", "exponential_histogram"):
        raise RejectedError("no_data")
    if held.aggregation_temporality not in (DELTA, CUMULATIVE):
        raise RejectedError("no_temporality")
    delta = held.aggregation_temporality == DELTA
    if form == "sum":
        rises = held.is_monotonic
        return "counter" if rises else "gauge", delta, lambda stream, point: stream.number(point, counts=rises)
    return form, delta, Stream.histogram if form == "histogram" else Stream.exponential


def _parse(body: bytes) -> Any:
    try:
        return MetricsRequest.FromString(body)
    except DecodeError:
        pass
    try:
        return MetricsRequest.FromString(repair_protobuf(body, MetricsRequest.DESCRIPTOR))
    except DecodeError as error:
        raise malformed("protobuf", error) from None
