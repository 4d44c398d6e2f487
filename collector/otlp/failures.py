"""Errors by one name: HTTP_429, GRPC_UNAVAILABLE, TIMEOUT or a class name, whatever the dialect calls them."""

import re
from typing import Any

from collector.otlp.values import text, whole

GRPC_CODES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
"""Names of the gRPC status codes, by number."""

OTHER = "_OTHER"
"""What semantic conventions call an error without a name."""

_HTTP = re.compile(r"(?:http[ _]?)?([45]\d\d)(?:\b.*)?", re.IGNORECASE | re.DOTALL)
_TIMEOUT = re.compile(r"timeout(?:_?error)?|timed[ _]?out", re.IGNORECASE)
_CLASS = re.compile(r"[\w$]+(?:\.[\w$]+)+")
_MAX_CHARS = 128  # a code is a group-by key; a message that strayed into error.type must not be one


def http_error(value: Any) -> str | None:
    """`HTTP_<code>` for a status of 400 and more; None for one that is no error."""
    code = whole(value)
    return f"HTTP_{code}" if code is not None and 400 <= code <= 599 else None


def grpc_error(value: Any) -> str | None:
    """`GRPC_<NAME>` for a status number or name other than OK."""
    code = whole(value)
    name = GRPC_CODES[code] if code is not None and 0 <= code < len(GRPC_CODES) else (text(value) or "").upper()
    return f"GRPC_{name}" if name in GRPC_CODES[1:] else None


def error_type(value: Any) -> str | None:
    """Normalise `error.type` or `exception.type`; None where it says nothing (`_OTHER`, empty)."""
    name = (text(value) or "").strip()
    if not name or name == OTHER:
        return None
    if found := _HTTP.fullmatch(name):
        return f"HTTP_{found[1]}"
    if name in GRPC_CODES[1:]:
        return f"GRPC_{name}"
    if _CLASS.fullmatch(name):
        name = name.rpartition(".")[2]
    return "TIMEOUT" if _TIMEOUT.fullmatch(name) else name[:_MAX_CHARS]
