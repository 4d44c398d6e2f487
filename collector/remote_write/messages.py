"""The messages of remote write, declared as far as they are read.

What is looked up whole stays bytes: a series' labels cost one look-up instead of a walk, and text that is no UTF-8
fails its own series, not the request.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_REPEATED = "*"
_TYPES = {
    "bytes": _Field.TYPE_BYTES,
    "double": _Field.TYPE_DOUBLE,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "sint32": _Field.TYPE_SINT32,
    "sint64": _Field.TYPE_SINT64,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}
_HISTOGRAM = """
    count_int uint64 1, count_float double 2, sum double 3, schema sint32 4, zero_threshold double 5,
    zero_count_int uint64 6, zero_count_float double 7, negative_spans *BucketSpan 8, negative_deltas *sint64 9,
    negative_counts *double 10, positive_spans *BucketSpan 11, positive_deltas *sint64 12, positive_counts *double 13,
    timestamp int64 15, custom_values *double 16, start_timestamp int64 17
"""
_V1 = {
    "WriteRequest": "timeseries *bytes 1, metadata *MetricMetadata 3",
    "MetricMetadata": "type int32 1, metric_family_name bytes 2, unit bytes 5",
    "TimeSeries": "labels *bytes 1, samples *bytes 2, histograms *Histogram 4",
    "Label": "name bytes 1, value bytes 2",
    "Sample": "value double 1, timestamp int64 2, start_timestamp int64 3",
    "BucketSpan": "offset sint32 1, length uint32 2",
    "Histogram": _HISTOGRAM,
}
_V2 = {
    "Request": "symbols *bytes 4, timeseries *bytes 5",
    "TimeSeries": "labels_refs *uint32 1, samples *bytes 2, histograms *Histogram 3, metadata Metadata 5, "
    "created_timestamp int64 6",
    "Metadata": "type int32 1, unit_ref uint32 4",
    "BucketSpan": "offset sint32 1, length uint32 2",
    "Histogram": _HISTOGRAM,
}


def _classes(package: str, messages: dict[str, str]) -> dict[str, Any]:
    """Return message classes of declarations `name type number`, where *type is repeated."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for message, fields in messages.items():
        declared = file.message_type.add(name=message)
        for name, kind, number in (field.split() for field in fields.split(",")):
            label = _Field.LABEL_REPEATED if kind.startswith(_REPEATED) else _Field.LABEL_OPTIONAL
            plain = kind.removeprefix(_REPEATED)
            made = declared.field.add(name=name, number=int(number), label=label)
            if plain in _TYPES:
                made.type = _TYPES[plain]
            else:
                made.type, made.type_name = _Field.TYPE_MESSAGE, f".{package}.{plain}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}


_v1, _v2 = _classes("infractl.remote_write_1", _V1), _classes("infractl.remote_write_2", _V2)
WriteRequest, TimeSeries, Label, Sample = (_v1[name] for name in ("WriteRequest", "TimeSeries", "Label", "Sample"))
Request, SymbolSeries = _v2["Request"], _v2["TimeSeries"]
