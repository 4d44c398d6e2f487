"""Small OTLP requests for tests, and their rows."""

from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.content import DEFAULT_CONTENT, ContentOptions
from collector.otlp.decode import decode_protobuf

START_NS = 1_796_000_000_000_000_000
TRACE_ID, SPAN_ID = bytes(15) + b"\x01", bytes(7) + b"\x02"


def any_value(value: Any) -> AnyValue:
    """Wrap a Python value."""
    out = AnyValue()
    match value:
        case None:
            pass
        case bool():
            out.bool_value = value
        case int():
            out.int_value = value
        case float():
            out.double_value = value
        case str():
            out.string_value = value
        case bytes():
            out.bytes_value = value
        case list():
            out.array_value.SetInParent()
            out.array_value.values.extend(any_value(item) for item in value)
        case dict():
            out.kvlist_value.SetInParent()
            out.kvlist_value.values.extend(pairs(value))
    return out


def pairs(attributes: dict[str, Any]) -> list[KeyValue]:
    """Attributes as KeyValue messages."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def make_span(attributes: dict[str, Any] | None = None, **fields: Any) -> Span:
    """Build a valid one-second span; `fields` override."""
    given = {
        "trace_id": TRACE_ID,
        "span_id": SPAN_ID,
        "name": "s",
        "start_time_unix_nano": START_NS,
        "end_time_unix_nano": START_NS + 10**9,
    } | fields
    return Span(attributes=pairs(attributes or {}), **given)


def make_event(name: str, after_ns: int = 0, **attributes: Any) -> Span.Event:
    """Build an event `after_ns` after the start of the span; `__` in a name stands for a dot."""
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return Span.Event(name=name, time_unix_nano=START_NS + after_ns, attributes=pairs(named))


def make_request(
    *spans: Span, resource: dict[str, Any] | None = None, scope: str = "test"
) -> ExportTraceServiceRequest:
    """Put spans under one resource and scope."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.extend(pairs(resource or {}))
    part = group.scope_spans.add()
    part.scope.name = scope
    part.spans.extend(spans)
    return request


def row_of(
    attributes: dict[str, Any] | None = None,
    *,
    options: ContentOptions = DEFAULT_CONTENT,
    resource: dict[str, Any] | None = None,
    scope: str = "test",
    **fields: Any,
) -> dict[str, Any]:
    """Decode one span and return its row."""
    request = make_request(make_span(attributes, **fields), resource=resource, scope=scope)
    return decode_protobuf(request.SerializeToString(), options).frames["spans"].row(0, named=True)
