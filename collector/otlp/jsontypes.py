"""OTLP/JSON as typed structs (msgspec): unknown fields are ignored, as the protocol asks.

protobuf's own JSON reader is not used: it takes hex ids for base64 and stores 24-byte trace ids without an error,
and it is slower.
"""

from binascii import unhexlify
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

_INT64 = 2**63
_MAX_DEPTH = 48  # lists and maps within each other; protobuf's limit of 100 messages allows two messages per level


class AnyValue(msgspec.Struct, rename="camel", gc=False):
    """One attribute value; int64 comes as text or as a number."""

    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None
    bool_value: bool | None = None
    array_value: "ArrayValue | None" = None
    kvlist_value: "KeyValueList | None" = None
    bytes_value: str | None = None


class ArrayValue(msgspec.Struct, gc=False):
    """List of values."""

    values: list[AnyValue] | None = None


class KeyValue(msgspec.Struct, gc=False):
    """One attribute."""

    key: str = ""
    value: AnyValue | None = None


class KeyValueList(msgspec.Struct, gc=False):
    """Map of values."""

    values: list[KeyValue] | None = None


class Event(msgspec.Struct, rename="camel", gc=False):
    """Span event."""

    time_unix_nano: int | str = 0
    name: str = ""
    attributes: list[KeyValue] | None = None


class Link(msgspec.Struct, rename="camel", gc=False):
    """Span link."""

    trace_id: str = ""
    span_id: str = ""
    attributes: list[KeyValue] | None = None


class Status(msgspec.Struct, gc=False):
    """Span status."""

    code: int | str = 0
    message: str | None = None


class Span(msgspec.Struct, rename="camel", gc=False):
    """Span; ids are hex, times text or numbers, enums numbers or names."""

    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str | None = None
    name: str = ""
    kind: int | str = 0
    start_time_unix_nano: int | str = 0
    end_time_unix_nano: int | str | None = None
    attributes: list[KeyValue] | None = None
    events: list[Event] | None = None
    links: list[Link] | None = None
    status: Status | None = None


class Scope(msgspec.Struct, gc=False):
    """Instrumentation scope."""

    name: str | None = None


class ScopeSpans(msgspec.Struct, gc=False):
    """Spans of one scope."""

    scope: Scope | None = None
    spans: list[Span] | None = None


class Resource(msgspec.Struct, gc=False):
    """What sent the spans."""

    attributes: list[KeyValue] | None = None


class ResourceSpans(msgspec.Struct, gc=False):
    """Spans of one resource. `misspelt` finds bodies that would otherwise pass as holding no span."""

    resource: Resource | None = None
    scope_spans: list[ScopeSpans] | None = msgspec.field(name="scopeSpans", default=None)
    misspelt: Any = msgspec.field(name="scope_spans", default=None)


class Request(msgspec.Struct, gc=False):
    """Body of POST /v1/traces."""

    resource_spans: list[ResourceSpans] | None = msgspec.field(name="resourceSpans", default=None)


def attributes_of(pairs: list[KeyValue] | None, depth: int = 0) -> dict[str, Any]:
    """Attributes as plain Python values. Raises RecursionError where they nest deeper than protobuf would take."""
    return {pair.key: value_of(pair.value, depth) for pair in pairs} if pairs else {}


def value_of(value: AnyValue | None, depth: int = 0) -> Any:
    """One value as plain Python; bytes as base64 text, an empty value as None.

    A number that is none, or does not fit 64 bits, stays text.
    """
    if value is None:
        return None
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        number = _number(value.int_value, int)
        return number if isinstance(number, str) or -_INT64 <= number < _INT64 else str(number)
    if value.double_value is not None:
        return _number(value.double_value, float)
    if value.bool_value is not None:
        return value.bool_value
    return _nested(value, depth + 1)


def _nested(value: AnyValue, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise RecursionError
    if value.array_value is not None:
        return [value_of(item, depth) for item in value.array_value.values or ()]
    if value.kvlist_value is not None:
        return attributes_of(value.kvlist_value.values, depth)
    return value.bytes_value


def _number(value: float | str, read: Callable[[float | str], Any]) -> Any:
    try:
        return read(value)
    except ValueError:
        return value


def id_of(text: str | None) -> bytes:
    """Bytes of a hex id, upper or lower case; one byte (an invalid id) for any other text, base64 among it."""
    try:
        return unhexlify(text or "")
    except ValueError:
        return b"?"


def int_of(value: int | str | None, names: Mapping[str, int] = MappingProxyType({})) -> int:
    """Whole number from text, number or enum name; 0 where not set, -1 where unreadable."""
    try:
        return names[value] if isinstance(value, str) and value in names else int(value or 0)
    except ValueError:
        return -1
