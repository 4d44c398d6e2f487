"""POST /api/v1/write as a route: Prometheus remote write 1.0 and 2.0, acknowledged only after COMMIT.

204: all is stored. 400: the rest is stored, what the body says never will be; the sender must not repeat it. 413, 415:
not received. 503 with Retry-After: the queue is full or the store failed, send again; nothing is stored twice.
"""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.message import Message

import cramjam
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from collector.otlp.answers import UnsupportedError, refusal_of
from collector.otlp.inflate import TooLargeError
from collector.otlp.receiver import METRICS, ReceiverCounts, Submit
from collector.push.batch import committed
from collector.push.bodies import DEFAULT_LIMITS, Bodies, Limits
from collector.push.gate import DECODERS, Gate
from collector.remote_write.collect import Senders
from collector.remote_write.decode import MESSAGES, Written, decode
from collector.remote_write.labels import REASONS
from store.errors import InfractlError, SourceError

PATH = "/api/v1/write"
PROTOCOL = "remote_write"
_PROTOBUF, _FIRST = "application/x-protobuf", "prometheus.WriteRequest"


def create_routes(
    submit: Submit,
    counts: ReceiverCounts | None = None,
    limits: Limits = DEFAULT_LIMITS,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    gate: Gate | None = None,
) -> list[Route]:
    """Return the routes of the receiver. `clock` gives the time (aware) that times of samples are held against.

    `gate` is that of other receivers too.
    """
    receiver = _Receiver(submit, counts or ReceiverCounts(), limits, clock, gate or Gate())
    return [Route(PATH, receiver.write, methods=["POST"])]


class _Receiver:
    """Decodes in threads of its own, so the event loop stays free for other requests."""

    def __init__(
        self, submit: Submit, counts: ReceiverCounts, limits: Limits, clock: Callable[[], datetime], gate: Gate
    ) -> None:
        self.submit, self.counts, self.limits, self.clock, self.gate = submit, counts, limits, clock, gate
        self._senders = Senders()
        self._bodies = Bodies(limits)
        self._threads = ThreadPoolExecutor(DECODERS, thread_name_prefix="remote-write")

    async def write(self, request: Request) -> Response:
        try:
            written = await self._receive(request)
        except ClientDisconnect:
            self.counts.refused(PROTOCOL, "cut_off", METRICS)
            return Response(status_code=400)
        except InfractlError as error:
            return self._refuse(error)
        self.counts.taken(PROTOCOL, written.pushed.batch, METRICS)
        return _answer(written)

    async def _receive(self, request: Request) -> Written:
        message = _message(request)
        chunks: list[bytes] = []
        try:
            await self._bodies.read(request, chunks)
            with self.gate.hold(sum(map(len, chunks))):
                return await self._store(chunks, message)
        finally:
            self._bodies.release(chunks)

    async def _store(self, chunks: list[bytes], message: str) -> Written:
        loop = asyncio.get_running_loop()
        written = await loop.run_in_executor(self._threads, self._decode, chunks, message)
        batch = written.pushed.batch
        if batch.rows or batch.drops:
            # shield: a request that is cancelled at shutdown must not cancel the commit
            await asyncio.shield(asyncio.wrap_future(self.submit(batch)))
        if written.pushed.tells:  # in a thread: it waits for a request that is being decoded
            await loop.run_in_executor(self._threads, committed, self._senders.series, written.pushed)
        return written

    def _decode(self, chunks: list[bytes], message: str) -> Written:
        with self.gate.decoders:
            body = uncompress(b"".join(chunks), self.limits.max_inflated_bytes)
            return decode(body, message, self._senders, self.clock())

    def _refuse(self, error: InfractlError) -> Response:
        refusal = refusal_of(error)
        self.counts.refused(PROTOCOL, refusal.reason, METRICS)
        headers = {} if refusal.retry_after_s is None else {"Retry-After": str(math.ceil(refusal.retry_after_s))}
        text = f"{error} ({error.hint})" if error.hint else str(error)
        return PlainTextResponse(text + "\n", refusal.http_status, headers)


def uncompress(body: bytes, limit: int) -> bytes:
    """Return the content of a snappy block of at most `limit` bytes; its size is read before anything is inflated.

    Raises TooLargeError and SourceError.
    """
    try:
        size = cramjam.snappy.decompress_raw_len(body)
        if size > limit:
            raise TooLargeError(f"the body inflates to {size} bytes, more than {limit}", "send smaller batches")
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as error:
        raise SourceError(f"the body is no snappy block: {error}", "not the framed format, and not plain") from None


def _message(request: Request) -> str:
    """Return the name of the message that a request carries. Raises UnsupportedError for one that is not read."""
    header = Message()
    header["content-type"] = request.headers.get("content-type", "")
    encoding = request.headers.get("content-encoding", "snappy").strip().lower()
    name = str(header.get_param("proto", _FIRST))
    if header.get_content_type() != _PROTOBUF or name not in MESSAGES:
        fact = f"content type {header['content-type']!r} is not remote write"
        raise UnsupportedError(fact, f"send {_PROTOBUF}, 1.0 or with proto={list(MESSAGES)[-1]}", "unsupported_type")
    if encoding != "snappy":
        raise UnsupportedError(f"content encoding {encoding!r} is not read", "send snappy", "unsupported_encoding")
    return name


def _answer(written: Written) -> Response:
    headers = {
        "X-Prometheus-Remote-Write-Samples-Written": str(written.samples),
        "X-Prometheus-Remote-Write-Histograms-Written": str(written.histograms),
        "X-Prometheus-Remote-Write-Exemplars-Written": "0",
    }
    refused = written.pushed.refused
    if not refused:
        return Response(status_code=204, headers=headers)
    reasons = "; ".join(f"{reason}: {n} ({REASONS.get(reason, '')})" for reason, n in sorted(refused.items()))
    return PlainTextResponse(f"samples refused, the others are stored: {reasons}\n", 400, headers)
