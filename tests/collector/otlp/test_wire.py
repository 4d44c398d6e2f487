"""The walk over bytes against protobuf's own classes: the same spans, whatever wire form they came in."""

from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.anyvalue import attributes_as_python
from collector.otlp.attribute import prepare_all
from collector.otlp.content import ContentOptions
from collector.otlp.decode import decode_protobuf
from collector.otlp.dialects import SPAN_INDEX
from collector.otlp.rows import SpanRows, WireSpan, origin_of
from store.batch import Batch
from store.errors import SourceError
from tests.collector.otlp.builders import make_request, make_span, pairs
from tests.collector.otlp.test_decode import ATTRIBUTES, spans

OPTIONS = ContentOptions(max_value_bytes=12)


def by_classes(body: bytes) -> Batch:
    """Decode by the official classes, attribute by attribute."""
    rows = SpanRows(OPTIONS)
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        for part in group.scope_spans:
            resource = attributes_as_python(group.resource.attributes)
            origin = origin_of(resource, part.scope.name, OPTIONS, repaired=False)
            for span in part.spans:
                rows.add(origin, wire_span(span))
    return rows.batch()


def wire_span(span: Span) -> WireSpan:
    return WireSpan(
        span.trace_id,
        span.span_id,
        span.parent_span_id,
        span.name,
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code,
        span.status.message,
        prepare_all(attributes_as_python(span.attributes), OPTIONS, SPAN_INDEX),
        [(event.name, event.time_unix_nano, attributes_as_python(event.attributes)) for event in span.events],
        [(link.trace_id, link.span_id, attributes_as_python(link.attributes)) for link in span.links],
        repaired=False,
    )


def same(one: Batch, two: Batch) -> bool:
    return (
        one.drops == two.drops
        and one.frames.keys() == two.frames.keys()
        and all(one.frames[name].equals(two.frames[name]) for name in one.frames)
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(spans(), max_size=4), ATTRIBUTES, st.text(max_size=5))
def test_any_request_gives_the_rows_of_the_official_classes(made: list[Span], resource: Any, scope: str) -> None:
    body = make_request(*made, resource=resource, scope=scope).SerializeToString()
    assert same(decode_protobuf(body, OPTIONS), by_classes(body))


@settings(max_examples=200, deadline=None)
@given(st.lists(spans(), min_size=1, max_size=2), st.data())
def test_a_damaged_request_is_refused_or_read_as_the_official_classes_read_it(
    made: list[Span], data: st.DataObject
) -> None:
    body = bytearray(make_request(*made).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    raw = bytes(body)
    try:
        right = by_classes(raw)
    except DecodeError:
        with suppress(SourceError):
            decode_protobuf(raw, OPTIONS)  # where only its text was damaged it is repaired
    else:
        assert same(decode_protobuf(raw, OPTIONS), right)


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


SPAN = make_span({"a": "x"}).SerializeToString()
STRANGE = {
    "a group that nobody knows": SPAN + b"\xf3\x01\x08\x01\xf4\x01",
    "an unknown field": SPAN + b"\xf8\x01\x05",
    "status in two halves": SPAN + field(15, b"\x12\x01m") + field(15, b"\x18\x02"),
    "a name twice": SPAN + field(5, b"later"),
    "an attribute twice": SPAN + field(9, KeyValue(key="a", value=pairs({"": 7})[0].value).SerializeToString()),
    "an attribute without a value": SPAN + field(9, field(1, b"k")),
    "an attribute without a name": SPAN + field(9, field(2, b"\x18\x07")),
    "an empty attribute": SPAN + field(9, b""),
    "a value before its name": SPAN + field(9, field(2, b"\x18\x07") + field(1, b"k")),
    "a value twice": SPAN + field(9, field(1, b"k") + field(2, b"\x18\x07") + field(2, b"\x0a\x01x")),
    "a number in more bytes than it needs": SPAN + field(9, field(1, b"k") + field(2, b"\x18\x87\x80\x00")),
    "a long name": SPAN + Span(attributes=pairs({"k" * 300: "v" * 300})).SerializeToString(),
    "flags and dropped counts": SPAN + b"\x50\x05\x60\x06\x70\x07\x85\x01\x01\x01\x00\x00",
    "a negative number": SPAN + Span(attributes=pairs({"n": -5, "b": False, "e": "", "z": 0.0})).SerializeToString(),
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
def test_strange_but_valid_wire_forms_are_read_as_the_official_classes_read_them(name: str) -> None:
    raw = STRANGE[name]
    scope_spans = b"\x12" + varint(len(raw)) + raw
    resource_spans = b"\x12" + varint(len(scope_spans)) + scope_spans
    body = b"\x0a" + varint(len(resource_spans)) + resource_spans
    batch = decode_protobuf(body, OPTIONS)
    assert batch.frames["spans"].height == 1
    assert same(batch, by_classes(body))


def varint(number: int) -> bytes:
    low = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([byte | 0x80 for byte in low[:-1]] + [low[-1]])
