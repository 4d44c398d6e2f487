"""Attribute values of protobuf as plain Python values."""

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

_SCALARS = frozenset({"string_value", "int_value", "double_value", "bool_value"})


def attributes_as_python(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """Attributes as plain Python values."""
    return {pair.key: value_as_python(pair.value) for pair in pairs}


def value_as_python(value: AnyValue) -> Any:
    """One value as plain Python; bytes as base64 text, an empty value as None."""
    kind = value.WhichOneof("value")
    if kind in _SCALARS:
        return getattr(value, kind)
    if kind == "array_value":
        return [value_as_python(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return attributes_as_python(value.kvlist_value.values)
    return b64encode(value.bytes_value).decode() if kind == "bytes_value" else None
