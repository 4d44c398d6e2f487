"""Bodies with text that is no Unicode: what is wrong becomes U+FFFD, everything else is copied.

A parser refuses a whole request for one bad byte in one attribute, and the sender would never get the other
spans through. These walks run only after such a refusal.
"""

import re

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

REPLACEMENT = "\ufffd"
_MAX_DEPTH = 100  # protobuf's own limit
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""A JSON escape; group 1 is half a surrogate pair: what JavaScript writes for text cut inside an emoji."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def repair_protobuf(body: bytes, message: Descriptor, depth: int = 0) -> bytes:
    """Return `body`, a message of type `message`, with valid UTF-8 in every text field.

    Raises DecodeError where the wire format itself is broken.
    """
    if depth > _MAX_DEPTH:
        raise DecodeError("messages nested too deeply")
    out = bytearray()
    at, size = 0, len(body)
    while at < size:
        start = at
        tag, at = _varint(body, at)
        if tag & 7 != _LENGTH:
            at = _skip(body, at, tag & 7)
            out += body[start:at]
            continue
        length, begin = _varint(body, at)
        at = begin + length
        if at > size:
            raise DecodeError("truncated message")
        fixed = _repair_field(body[begin:at], message.fields_by_number.get(tag >> 3), depth)
        out += _encode_varint(tag) + _encode_varint(len(fixed)) + fixed
    return bytes(out)


def repair_json(body: bytes) -> bytes:
    """Return a JSON body in valid UTF-8 and without lone surrogate escapes."""
    body = body.decode(errors="replace").encode()
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], body)


def _repair_field(raw: bytes, field: FieldDescriptor | None, depth: int) -> bytes:
    if field is None:
        return raw
    if field.message_type is not None:
        return repair_protobuf(raw, field.message_type, depth + 1)
    if field.type == FieldDescriptor.TYPE_STRING:
        return raw.decode(errors="replace").encode()
    return raw


def _skip(body: bytes, at: int, wire_type: int) -> int:
    if wire_type == _VARINT:
        return _varint(body, at)[1]
    width = {_FIXED64: 8, _FIXED32: 4}.get(wire_type)
    if width is None or at + width > len(body):
        raise DecodeError("truncated message or unknown wire type")
    return at + width


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Value and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(body):
            break
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise DecodeError("truncated or oversized varint")


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
