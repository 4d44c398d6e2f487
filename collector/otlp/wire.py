"""Spans straight from the bytes of a request that protobuf has checked and written anew.

Walking protobuf's objects costs more than all that is done with the values: here a span is read field by field, and an
attribute whose bytes were seen before in the same body is not read again. What protobuf wrote itself has valid text,
no unknown field, no group, and no field twice that is not repeated; so none of that is checked here.
"""

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector.otlp.anyvalue import attributes_as_python, value_as_python
from collector.otlp.arrivals import Event
from collector.otlp.attribute import Attribute, prepare
from collector.otlp.content import ContentOptions
from collector.otlp.dialects import SPAN_INDEX
from collector.otlp.rows import Link, WireSpan

_LENGTH, _FIXED64, _FIXED32 = 2, 1, 5  # wire types
_KEY, _VALUE = 0x0A, 0x12  # of KeyValue
_STRING, _BOOL, _INT, _DOUBLE = 0x0A, 0x10, 0x18, 0x21  # of AnyValue
_ATTRIBUTE, _TRACE_ID, _SPAN_ID, _PARENT, _NAME, _KIND = 0x4A, 0x0A, 0x12, 0x22, 0x2A, 0x30  # of Span
_START, _END, _EVENT, _LINK, _STATUS = 0x39, 0x41, 0x5A, 0x6A, 0x7A
_double = struct.Struct("<d").unpack_from
_fixed64 = struct.Struct("<Q").unpack_from


class Group(NamedTuple):
    """Spans of one resource and scope, as bytes."""

    resource: bytes
    scope: bytes
    spans: list[bytes]


def groups(body: bytes) -> Iterator[Group]:
    """Cut a request into its spans."""
    for _, resource_spans in _messages(body):
        parts = _messages(resource_spans)
        resource = next((raw for number, raw in parts if number == 1), b"")
        for raw in (raw for number, raw in parts if number == 2):
            fields = _messages(raw)
            scope = next((raw for number, raw in fields if number == 1), b"")
            yield Group(resource, scope, [raw for number, raw in fields if number == 2])


def resource_of(raw: bytes) -> dict[str, Any]:
    """Attributes of a resource."""
    return attributes_as_python(Resource.FromString(raw).attributes)


def scope_of(raw: bytes) -> str:
    """Name of an instrumentation scope."""
    return InstrumentationScope.FromString(raw).name


class SpanReader:
    """Reads the spans of one body; what it remembers is as large as the body."""

    def __init__(self, options: ContentOptions) -> None:
        """Remember nothing yet."""
        self._options = options
        self._seen: dict[bytes, Attribute] = {}

    def read(self, raw: bytes, *, repaired: bool) -> WireSpan:
        """Read one span."""
        texts: dict[int, bytes] = {}
        numbers: dict[int, int] = {}
        attributes: dict[str, Attribute] = {}
        events: list[Event] = []
        links: list[Link] = []
        seen = self._seen
        at, size = 0, len(raw)
        while at < size:
            tag = raw[at]
            at += 1
            if tag & 7 == _LENGTH:
                stop = raw[at]
                at += 1
                if stop >= 0x80:
                    stop, at = _varint(raw, at - 1)
                stop += at
                part = raw[at:stop]
                at = stop
                if tag == _ATTRIBUTE:
                    attribute = seen.get(part)
                    if attribute is None:
                        seen[part] = attribute = self._attribute(part)
                    attributes[attribute.key] = attribute
                elif tag == _EVENT:
                    events.append(_event(part))
                elif tag == _LINK:
                    links.append(_link(part))
                else:
                    texts[tag] = part
            elif tag & 7 == _FIXED64:
                (numbers[tag],) = _fixed64(raw, at)
                at += 8
            elif tag & 7 == _FIXED32:  # only the flags, whose tag has two bytes
                at += 5
            else:
                numbers[tag], at = _varint(raw, at)
        status = Status.FromString(texts.get(_STATUS, b""))
        return WireSpan(
            trace_id=texts.get(_TRACE_ID, b""),
            span_id=texts.get(_SPAN_ID, b""),
            parent_span_id=texts.get(_PARENT, b""),
            name=texts.get(_NAME, b"").decode(),
            kind=numbers.get(_KIND, 0),
            start_ns=numbers.get(_START, 0),
            end_ns=numbers.get(_END, 0),
            status=status.code,
            status_message=status.message,
            attributes=attributes.values(),
            events=events,
            links=links,
            repaired=repaired,
        )

    def _attribute(self, raw: bytes) -> Attribute:
        return prepare(*_key_value(raw), self._options, SPAN_INDEX)


def _key_value(raw: bytes) -> tuple[str, Any]:
    """Name and value; what is no short name with a single number or text is left to protobuf."""
    size = len(raw)
    end = raw[1] + 2 if size > 1 else size
    if end + 3 > size or raw[0] != _KEY or raw[1] >= 0x80 or raw[end] != _VALUE:
        pair = KeyValue.FromString(raw)
        return pair.key, value_as_python(pair.value)
    key = _text(raw[2:end])
    at = end + 2
    if raw[end + 1] >= 0x80:
        _, at = _varint(raw, end + 1)
    tag = raw[at]
    if tag == _DOUBLE:
        return key, _double(raw, at + 1)[0]
    if tag == _STRING:
        length, at = _varint(raw, at + 1)
        return key, raw[at : at + length].decode()
    if tag == _INT:
        number, _ = _varint(raw, at + 1)
        return key, number if number < 1 << 63 else number - (1 << 64)
    if tag == _BOOL:
        return key, raw[at + 1] != 0
    return key, value_as_python(AnyValue.FromString(raw[at:]))


@lru_cache(maxsize=4096)
def _text(raw: bytes) -> str:
    return raw.decode()


def _event(raw: bytes) -> Event:
    event = Span.Event.FromString(raw)
    return event.name, event.time_unix_nano, attributes_as_python(event.attributes)


def _link(raw: bytes) -> Link:
    link = Span.Link.FromString(raw)
    return link.trace_id, link.span_id, attributes_as_python(link.attributes)


def _messages(raw: bytes) -> list[tuple[int, bytes]]:
    """Fields of a message whose fields are messages and text, by number."""
    out = []
    at, size = 0, len(raw)
    while at < size:
        tag, at = _varint(raw, at)
        length, at = _varint(raw, at)
        out.append((tag >> 3, raw[at : at + length]))
        at += length
    return out


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """Value and the position after it."""
    byte = raw[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
