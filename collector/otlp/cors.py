"""CORS on the OTLP/HTTP port: pages of listed origins may send, no other page may, and nobody unless one is listed.

What keeps other pages out is that OTLP's content types make a browser ask first; an answer without CORS headers is
its no. Credentials are never allowed: the receiver knows none, and a proxy that does must not lend them to a page.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from collector.otlp.receiver import TRACES, ReceiverCounts
from store.errors import UsageError

_DEFAULT_PORTS = {"http": 80, "https": 443}


def checked_origins(origins: Sequence[str]) -> tuple[str, ...]:
    """Return origins as browsers write them. Raises UsageError for a wildcard, a path, or what is no origin."""
    return tuple(_checked(origin) for origin in origins)


def cors(origins: Sequence[str], counts: ReceiverCounts) -> list[Middleware]:
    """Return what `Starlette(middleware=…)` takes; nothing at all where no origin is listed."""
    return [Middleware(_Cors, origins=checked_origins(origins), counts=counts)] if origins else []


class _Cors(CORSMiddleware):
    """Starlette's, which also counts what it refuses: a page that is not listed sees only its own console."""

    def __init__(self, app: ASGIApp, origins: Sequence[str], counts: ReceiverCounts) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=("POST",),
            allow_headers=("content-type",),
            allow_private_network=True,
            expose_headers=("Retry-After",),
        )
        self._counts = counts

    def preflight_response(self, request_headers: Headers) -> Response:
        answer = super().preflight_response(request_headers)
        if answer.status_code >= 400:
            self._counts.refused("http", "origin", TRACES)
        return answer


def _checked(origin: str) -> str:
    hint = "write it as the browser does, scheme://host or scheme://host:port, e.g. https://chat.example.com"
    if origin in ("*", "null"):
        raise UsageError(f"origin {origin!r} would let every page send", hint)
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{origin!r} is no origin: {error}", hint) from None
    if not (parts.scheme and parts.hostname) or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UsageError(f"{origin!r} is no origin", hint)
    if "*" in parts.netloc or "@" in parts.netloc:
        raise UsageError(f"{origin!r} is no origin: it has {'a wildcard' if '*' in parts.netloc else 'a user'}", hint)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}")
