"""Sends synthetic requests one after the other and times them: httpcore underneath, whose trace gives the phases."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpcore
import msgspec

from collector.probe.attempt import Attempt
from collector.probe.config import Probe
from collector.probe.faults import Fault, FaultError, fault_of, http_fault
from collector.probe.network import TimedBackend
from collector.probe.request import body_of, headers_of
from collector.probe.sse import EventReader
from collector.probe.target import Operation
from collector.prometheus.credentials import tls_context

MAX_BODY_BYTES = 64 << 20
"""Longest answer that is read; it is not kept."""
_EMPTY = Fault("NO_TOKENS", "an answer without a token", "see the server's own log")
_CUT = Fault("CUT_SHORT", "the answer is cut short", "see the server's own log")
_LONG = Fault("TOO_LARGE", f"the answer is longer than {MAX_BODY_BYTES >> 20} MiB", "probe another address")
_UNNAMED = Fault("NO_MODEL", "the endpoint lists no model", "name one with --model or model")
_GONE = ("NO_ANSWER", "CONNECTION_RESET")


class Model(NamedTuple):
    """A model and who serves it (owned_by: vllm, sglang, openai, …)."""

    name: str
    owner: str | None


class Client:
    """One connection's worth of requests. Close it when done.

    Raises SourceError where a file with a credential cannot be read.
    """

    def __init__(self, probe: Probe, context: ssl.SSLContext | None) -> None:
        self.probe = probe
        self._headers = headers_of(probe)
        self._backend = TimedBackend()
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=1,
            max_keepalive_connections=1 if probe.config.keep_alive else 0,
            network_backend=self._backend,
        )

    async def attempt(self, model: Model | None) -> Attempt:
        """Make one request; whatever goes wrong is its fault. A kept connection that was closed gets a second try."""
        attempt = await self._once(model, 0)
        stale = attempt.fault is not None and attempt.fault.code in _GONE and not attempt.timeline.phases
        return await self._once(model, 1) if stale else attempt

    async def first_model(self) -> Model | Attempt:
        """Return the first model that the endpoint lists, or the attempt to ask for it where that failed."""
        attempt = Attempt()
        body = bytearray()
        async with self._timed(attempt):
            async with self._exchange(attempt, "GET", self.probe.target.models_path, b"") as response:
                async for piece in _pieces(attempt, response):
                    body += piece
            listed = _models(bytes(body))
            if listed:
                return listed[0]
            attempt.fault = _UNNAMED
        return attempt

    async def close(self) -> None:
        """Close the connection."""
        await self._pool.aclose()

    async def _once(self, model: Model | None, resend_count: int) -> Attempt:
        attempt = Attempt(model.name if model else None, resend_count=resend_count)
        async with self._timed(attempt):
            if self.probe.target.operation is Operation.TCP:
                await self._connect()
            elif model is None:
                async with self._exchange(attempt, "GET", self.probe.target.path, b"") as response:
                    async for _ in _pieces(attempt, response):
                        pass
            else:
                await self._ask(attempt, model)
        return attempt

    @asynccontextmanager
    async def _timed(self, attempt: Attempt) -> AsyncIterator[None]:
        """Limit the time of an attempt, note its end and what went wrong."""
        self._backend.timeline = attempt.timeline
        try:
            async with asyncio.timeout(self.probe.timeout_s):
                yield
        except FaultError as error:
            attempt.fault = error.fault
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            if attempt.answer.done_ns is None:
                attempt.fault = fault_of(error, attempt.timeline, self.probe.timeout_s)
        attempt.end_ns = attempt.answer.done_ns or attempt.timeline.now_ns()

    async def _connect(self) -> None:
        target = self.probe.target
        stream = await self._backend.connect_tcp(target.host, target.port)
        await stream.aclose()

    async def _ask(self, attempt: Attempt, model: Model) -> None:
        body = body_of(self.probe, model.name, model.owner)
        async with self._exchange(attempt, "POST", self.probe.target.path, body) as response:
            attempt.streamed = b"json" not in _header(response, b"content-type")
            await (_read_stream if attempt.streamed else _read_whole)(attempt, response)

    @asynccontextmanager
    async def _exchange(
        self, attempt: Attempt, method: str, path: str, body: bytes
    ) -> AsyncIterator[httpcore.Response]:  # fmt: skip
        """Send one request and give the head of its answer. Raises FaultError for a status that is an error."""
        target = self.probe.target
        extensions: dict[str, Any] = {"trace": attempt.timeline.traced}
        if self.probe.config.tls_config.server_name:
            extensions["sni_hostname"] = self.probe.config.tls_config.server_name
        host = target.host.encode("idna")
        url = httpcore.URL(scheme=target.scheme.encode(), host=host, port=target.port, target=path.encode())
        headers = [*self._headers, (b"traceparent", attempt.traceparent.encode())]
        if body:
            headers.append((b"content-length", str(len(body)).encode()))
        sent = self._pool.stream(method, url, headers=headers, content=body or None, extensions=extensions)
        async with sent as response:
            attempt.status = response.status
            if fault := http_fault(response.status):
                raise FaultError(fault)
            yield response


async def _read_stream(attempt: Attempt, response: httpcore.Response) -> None:
    """Read an answer event by event, each at the time of the piece that completes it."""
    answer, events = attempt.answer, EventReader()
    async for piece in _pieces(attempt, response):
        at_ns = attempt.timeline.now_ns()
        for event in _fed(events, piece):
            answer.take(event, at_ns)
    for event in events.finish():
        answer.take(event, attempt.timeline.now_ns())
    if not answer.complete:
        raise FaultError(_CUT if answer.arrivals else _EMPTY)


async def _read_whole(attempt: Attempt, response: httpcore.Response) -> None:
    whole = bytearray()
    async for piece in _pieces(attempt, response):
        whole += piece
    attempt.answer.take(bytes(whole), attempt.timeline.now_ns())


async def _pieces(attempt: Attempt, response: httpcore.Response) -> AsyncIterator[bytes]:
    """Yield the body as it comes. Raises FaultError for one that is too long."""
    async for piece in response.aiter_stream():
        attempt.body_bytes += len(piece)
        if attempt.body_bytes > MAX_BODY_BYTES:
            raise FaultError(_LONG)
        yield piece


def _header(response: httpcore.Response, name: bytes) -> bytes:
    return next((bytes(value).lower() for key, value in response.headers if key.lower() == name), b"")


def tls_of(probe: Probe) -> ssl.SSLContext | None:
    """Return the TLS context of a probe. Raises SourceError for files that cannot be used."""
    return tls_context(probe.config.tls_config) if probe.target.scheme == "https" else None


def _fed(events: EventReader, piece: bytes) -> list[bytes]:
    try:
        return list(events.feed(piece))
    except ValueError:
        raise FaultError(_LONG) from None


def _models(body: bytes) -> list[Model]:
    try:
        message = msgspec.json.decode(body)
        return [Model(str(one["id"]), one.get("owned_by")) for one in message["data"]]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return []
