"""Requests of remote write 1.0 and 2.0, from message classes declared as the specifications write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_HISTOGRAM = {
    "BucketSpan": "offset sint32 1, length uint32 2",
    "Histogram": "count_int uint64 1, count_float double 2, sum double 3, schema sint32 4, zero_threshold double 5,"
    "zero_count_int uint64 6, zero_count_float double 7, negative_spans *BucketSpan 8, negative_deltas *sint64 9,"
    "negative_counts *double 10, positive_spans *BucketSpan 11, positive_deltas *sint64 12, positive_counts *double 13,"
    "reset_hint int32 14, timestamp int64 15, custom_values *double 16",
}
_V1 = _HISTOGRAM | {
    "WriteRequest": "timeseries *TimeSeries 1, metadata *MetricMetadata 3",
    "TimeSeries": "labels *Label 1, samples *Sample 2, exemplars *Exemplar 3, histograms *Histogram 4",
    "Label": "name string 1, value string 2",
    "Sample": "value double 1, timestamp int64 2",
    "Exemplar": "labels *Label 1, value double 2, timestamp int64 3",
    "MetricMetadata": "type int32 1, metric_family_name string 2, help string 4, unit string 5",
}
_V2 = _HISTOGRAM | {
    "Request": "symbols *string 4, timeseries *TimeSeries 5",
    "TimeSeries": "labels_refs *uint32 1, samples *Sample 2, histograms *Histogram 3, exemplars *Exemplar 4,"
    "metadata Metadata 5, created_timestamp int64 6",
    "Sample": "value double 1, timestamp int64 2, start_timestamp int64 3",
    "Exemplar": "labels_refs *uint32 1, value double 2, timestamp int64 3",
    "Metadata": "type int32 1, help_ref uint32 3, unit_ref uint32 4",
}
START_MS = 1_796_000_000_000
COUNTER, GAUGE, HISTOGRAM = 1, 2, 3


def _classes(package: str, messages: Mapping[str, str]) -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for message, fields in messages.items():
        declared = file.message_type.add(name=message)
        for name, kind, number in (field.split() for field in fields.split(",")):
            many, plain = kind.startswith("*"), kind.removeprefix("*")
            made = declared.field.add(name=name, number=int(number), label=3 if many else 1)
            if plain in messages:
                made.type, made.type_name = _Field.TYPE_MESSAGE, f".{package}.{plain}"
            else:
                made.type = _Field.Type.Value(f"TYPE_{plain.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}


V1, V2 = _classes("test.v1", _V1), _classes("test.v2", _V2)

Point = tuple[Mapping[str, str], Sequence[tuple[float, int]]]
"""Labels (name among them) and samples (value, time in ms)."""


def write_request(*series: Point, types: Mapping[str, int] | None = None) -> Any:
    """Build a request of protocol 1.0, labels in order."""
    request = V1["WriteRequest"]()
    for labels, samples in series:
        made = request.timeseries.add()
        for name, value in sorted(labels.items()):
            made.labels.add(name=name, value=value)
        for value, at in samples:
            made.samples.add(value=value, timestamp=at)
    for family, kind in (types or {}).items():
        request.metadata.add(type=kind, metric_family_name=family, help="Help.", unit="")
    return request


class Symbols:
    """The table of symbols of a request of protocol 2.0; the first is empty."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._at = {"": 0}
        request.symbols.append("")

    def ref(self, text: str) -> int:
        if text not in self._at:
            self._at[text] = len(self._at)
            self._request.symbols.append(text)
        return self._at[text]

    def refs(self, labels: Mapping[str, str]) -> list[int]:
        return [self.ref(text) for pair in sorted(labels.items()) for text in pair]


def request_2(*series: Point, kind: int = 0, unit: str = "", created_ms: int = 0) -> Any:
    """Build a request of protocol 2.0."""
    request = V2["Request"]()
    symbols = Symbols(request)
    for labels, samples in series:
        made = request.timeseries.add(labels_refs=symbols.refs(labels), created_timestamp=created_ms)
        made.metadata.type, made.metadata.help_ref = kind, symbols.ref("Help.")
        made.metadata.unit_ref = symbols.ref(unit)
        for value, at in samples:
            made.samples.add(value=value, timestamp=at)
    return request


def packed(request: Any) -> bytes:
    """Return the body of a request: a snappy block."""
    return bytes(cramjam.snappy.compress_raw(request.SerializeToString()))
