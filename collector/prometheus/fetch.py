"""One HTTP GET of a metrics page: authentication, TLS, time and size limits, errors in the reader's terms."""

import asyncio
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import SplitResult, urljoin, urlsplit

from collector.prometheus.config import HttpClient, TlsConfig
from collector.prometheus.connection import Answer, BrokenError, Connection, connect, too_large
from collector.prometheus.credentials import changed, secret_header, tls_context, url_secret
from collector.prometheus.masking import shown
from collector.prometheus.skew import clock_skew_s
from collector.prometheus.targets import Target
from store.errors import SourceError

ACCEPT = "text/plain;version=0.0.4,*/*;q=0.1"
"""Not OpenMetrics: prometheus_client would then turn `a:b` into `a_b` below a TYPE line that keeps `a:b`."""
SMALL_BYTES = 64 << 10
"""A page up to this size is unpacked and read at once (some ms); a larger one in a thread."""
_MOVED = (301, 302, 303, 307, 308)
_MOST_MOVES = 5  # redirects followed; a target has no reason for more
_PORTS = {"http": 80, "https": 443}

_Key = tuple[str, str, int, TlsConfig]


@dataclass(frozen=True, slots=True)
class Page:
    """An answer with status 200: body after decompression, and its content type ('' for none).

    `clock_skew_s` is how far the server's clock is ahead of ours, None where it does not say.
    """

    body: bytes
    content_type: str
    clock_skew_s: float | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask. `timeout_s` covers all of it, redirects and body included; a limit of 0 is none."""

    url: str
    http: HttpClient = field(repr=False)
    timeout_s: float
    size_limit_bytes: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


class Fetcher:
    """Fetches pages over connections that stay open: one for each that is in use at once. Close it when done."""

    def __init__(self) -> None:
        self._idle: dict[_Key, list[Connection]] = {}
        self._contexts: dict[tuple[TlsConfig, tuple[int, ...]], ssl.SSLContext] = {}

    async def fetch(self, target: Target) -> Page:
        """GET the page of a target. Raises SourceError that says what went wrong."""
        headers = {"Accept": ACCEPT, "X-Prometheus-Scrape-Timeout-Seconds": f"{target.timeout_s:g}"}
        if target.compression:
            headers["Accept-Encoding"] = "gzip"
        limit = target.limits.body_size_bytes
        return await self.get(Request(target.url, target.http, target.timeout_s, limit, headers))

    async def get(self, request: Request) -> Page:
        """GET a URL. Raises SourceError that says what went wrong."""
        try:
            async with asyncio.timeout(request.timeout_s):
                answer = await self._follow(request)
                if answer.status != HTTPStatus.OK:
                    raise SourceError(f"HTTP {answer.status} {answer.reason}".rstrip(), _advice(answer))
                body = await _unpacked(answer, request.size_limit_bytes)
                skew_s = clock_skew_s(answer.headers, answer.asked_s, answer.answered_s)
                return Page(body, answer.headers.get("content-type", ""), skew_s)
        except TimeoutError as error:
            raise SourceError(f"no complete answer within {request.timeout_s:g} s", "raise scrape_timeout") from error
        except BrokenError as error:
            raise SourceError(str(error), "see the target's own log") from error

    def forget(self, url: str) -> None:
        """Close the idle connections to the server of a URL."""
        scheme, host, port = _origin(urlsplit(url))
        for key in [key for key in self._idle if key[:3] == (scheme, host, port)]:
            for connection in self._idle.pop(key):
                connection.close()

    async def close(self) -> None:
        """Close all idle connections."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    async def _follow(self, request: Request) -> Answer:
        """Ask, and ask again where the answer says it moved. Secrets are not sent to another server."""
        parts = urlsplit(request.url)
        secret = secret_header(request.http) or url_secret(parts)
        for _ in range(_MOST_MOVES + 1):
            answer = await self._exchange(parts, request, secret)
            place = answer.headers.get("location")
            if answer.status not in _MOVED or not place or not request.http.follow_redirects:
                return answer
            before, parts = parts, urlsplit(urljoin(parts.geturl(), place))
            if parts.scheme not in _PORTS or not parts.hostname:
                raise SourceError(f"redirected to {shown(place)}, which is no http address", "check metrics_path")
            secret = secret if _origin(before) == _origin(parts) else ""
        raise SourceError(
            f"more than {_MOST_MOVES} redirects, the last to {parts.path}", "a login page? check the path"
        )

    async def _exchange(self, parts: SplitResult, request: Request, secret: str) -> Answer:
        """Ask one server. A connection that was idle may have been closed meanwhile: then once more on a new one."""
        key = (*_origin(parts), request.http.tls_config)
        head = _head(parts, request.headers, secret)
        while (idle := self._take(key)) is not None:
            try:
                return await self._ask(key, idle, head, request.size_limit_bytes)
            except BrokenError as error:
                if error.began:
                    raise
        _, host, port, tls = key
        context = self._context(tls) if parts.scheme == "https" else None
        connection = await connect(host, port, context, tls.server_name)
        return await self._ask(key, connection, head, request.size_limit_bytes)

    async def _ask(self, key: _Key, connection: Connection, head: bytes, limit_bytes: int) -> Answer:
        answer = await connection.ask(head, limit_bytes)
        if connection.open:
            self._idle.setdefault(key, []).append(connection)
        return answer

    def _take(self, key: _Key) -> Connection | None:
        idle = self._idle.get(key, [])
        while idle:
            connection = idle.pop()
            if connection.open:
                return connection
        self._idle.pop(key, None)
        return None

    def _context(self, tls: TlsConfig) -> ssl.SSLContext:
        """Return the context of a TLS configuration, made anew when one of its files has changed."""
        key = tls, tuple(changed(file) for file in (tls.ca_file, tls.cert_file, tls.key_file) if file)
        if key not in self._contexts:
            self._contexts[key] = tls_context(tls)
        return self._contexts[key]


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    try:
        return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError as error:
        fact = f"{shown(parts.geturl())} is no address: the port is no number up to 65535"
        raise SourceError(fact, "write targets as host:port") from error


def _head(parts: SplitResult, headers: Mapping[str, str], secret: str) -> bytes:
    place = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    lines = [f"GET {place} HTTP/1.1", f"Host: {host.encode('idna').decode() if not host.isascii() else host}"]
    lines += ["User-Agent: infractl", *(f"{name}: {value}" for name, value in headers.items())]
    if secret:
        lines.append(f"Authorization: {secret}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


async def _unpacked(answer: Answer, limit_bytes: int) -> bytes:
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return bytes(answer.body)
    if encoding not in ("gzip", "x-gzip"):
        raise SourceError(
            f"the answer is packed as {encoding}, which was not asked for", "set enable_compression: false"
        )
    if len(answer.body) < SMALL_BYTES // 8:  # text packs to about a tenth
        return _gunzip(answer.body, limit_bytes)
    return await asyncio.to_thread(_gunzip, answer.body, limit_bytes)


def _gunzip(packed: bytearray, limit_bytes: int) -> bytes:
    """Unpack, but never more than the limit (a small body may unpack to gigabytes)."""
    found, rest = bytearray(), bytes(packed)
    try:
        while rest:
            member = zlib.decompressobj(wbits=31)
            found += member.decompress(rest, max(0, limit_bytes - len(found)) + 1 if limit_bytes else 0)
            if limit_bytes and len(found) > limit_bytes:
                raise too_large(limit_bytes)
            if not member.eof:
                raise SourceError("the packed answer is cut short", "see the target's own log")
            rest = member.unused_data
    except zlib.error as error:
        raise SourceError(f"the packed answer is damaged: {error}", "set enable_compression: false") from error
    return bytes(found)


def _advice(answer: Answer) -> str:
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return "check authorization or basic_auth of the job"
    return "check metrics_path" if answer.status == HTTPStatus.NOT_FOUND else "see the target's own log"
