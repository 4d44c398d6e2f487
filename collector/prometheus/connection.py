"""One HTTP/1.1 connection that is asked again and again: as lean as five hundred targets on one core need it.

With a general client and its pool the same load takes many times the CPU (benchmarks/scrape_500_targets.md).
"""

import asyncio
import os
import socket
import ssl
import time
from dataclasses import dataclass, field
from typing import cast

import httptools

from store.errors import SourceError


class BrokenError(Exception):
    """The connection ended before the answer did; `began` says whether any of the answer had come."""

    def __init__(self, reason: str, began: bool) -> None:
        super().__init__(reason)
        self.began = began


@dataclass(slots=True)
class Answer:
    """A whole answer. Header names are lower case; of a header sent twice the last counts. `body` is as sent.

    `asked_s` and `answered_s` are when the question left and when the headers were there, in Unix seconds.
    """

    status: int = 0
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    asked_s: float = 0.0
    answered_s: float = 0.0


class Connection(asyncio.Protocol):
    """Asks one question at a time; after an answer that leaves it open it may be asked again."""

    def __init__(self) -> None:
        self.open = False
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._answer = Answer()
        self._parser = httptools.HttpResponseParser(self)
        self._limit = 0
        self._began = False

    async def ask(self, head: bytes, limit_bytes: int) -> Answer:
        """Send a request and return its answer.

        Raises BrokenError, and SourceError for an answer that is not HTTP or whose body is larger than `limit_bytes`
        (0: no limit). A cancelled or failed question closes the connection.
        """
        if self._transport is None or not self.open:
            raise BrokenError("the connection is closed", began=False)
        self._answer, self._limit, self._began = Answer(asked_s=time.time()), limit_bytes, False
        self._parser = httptools.HttpResponseParser(self)
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(head)
        try:
            return await self._waiting
        except BaseException:
            self.close()
            raise
        finally:
            self._waiting = None

    def close(self) -> None:
        """Close without waiting."""
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport (asyncio)."""
        self._transport = cast("asyncio.Transport", transport)
        self.open = True

    def data_received(self, data: bytes) -> None:
        """Read what came (asyncio)."""
        self._began = True
        if self._waiting is None:  # nothing was asked
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(SourceError("the answer switches protocols", "is this the port of the metrics?"))
        except httptools.HttpParserError as error:
            self._fail(SourceError(f"the answer is not HTTP: {error}", "is this the port of the metrics?"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Finish an answer that ends with its connection; fail any other (asyncio)."""
        self.open = False
        headers = self._answer.headers
        unbounded = "content-length" not in headers and headers.get("transfer-encoding", "").lower() != "chunked"
        if exc is None and self._answer.status and unbounded:
            self.on_message_complete()
        self._fail(BrokenError(_lost(exc, self._began), self._began))

    def on_status(self, status: bytes) -> None:
        """Take (a part of) the reason (httptools)."""
        self._answer.reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header (httptools)."""
        self._answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Take the status (httptools)."""
        self._answer.answered_s = time.time()
        self._answer.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body (httptools)."""
        self._answer.body += body
        if self._limit and len(self._answer.body) > self._limit:
            self._fail(too_large(self._limit))

    def on_message_complete(self) -> None:
        """Hand the answer over, but for a 1xx, which another follows (httptools)."""
        if 100 <= self._answer.status < 200:
            self._answer = Answer(asked_s=self._answer.asked_s)
            return
        self.open = self.open and self._parser.should_keep_alive()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(self._answer)
        if not self.open:
            self.close()

    def _fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


async def connect(host: str, port: int, context: ssl.SSLContext | None, server_name: str | None) -> Connection:
    """Open a connection, with TLS where a context is given. Raises SourceError naming address and cause."""
    loop = asyncio.get_running_loop()
    named = (server_name or host) if context else None
    try:
        _, connection = await loop.create_connection(Connection, host, port, ssl=context, server_hostname=named)
    except ssl.SSLError as error:
        fact = f"TLS with {host}:{port} failed: {getattr(error, 'verify_message', '') or error.reason or error}"
        if isinstance(error, ssl.SSLCertVerificationError):
            fact = f"the certificate of {host}:{port} is refused: {error.verify_message}"
        raise SourceError(fact, "see tls_config: ca_file, server_name, insecure_skip_verify") from error
    except (OSError, UnicodeError) as error:
        fact = f"cannot connect to {host}:{port}: {_connect_reason(error)}"
        raise SourceError(fact, "is the target up, and the address right?") from error
    return connection


def too_large(limit_bytes: int) -> SourceError:
    """Return the error for a page over its limit."""
    return SourceError(f"the page is larger than body_size_limit ({limit_bytes} bytes)", "raise body_size_limit")


def _connect_reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, socket.gaierror):
        return f"no such host ({error.strerror})"
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else str(error)


def _lost(exc: Exception | None, began: bool) -> str:
    what = "the answer is cut short" if began else "the connection was closed without an answer"
    return f"{what}: {exc}" if exc else what
