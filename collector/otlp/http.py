"""OTLP/HTTP receiver: POST /v1/traces as an ASGI app, acknowledged only after COMMIT."""

import asyncio
import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from collector.otlp.answers import UnsupportedError, error_status, export_response, refusal_of
from collector.otlp.content import DEFAULT_CONTENT, ContentOptions
from collector.otlp.decode import decode_json, decode_protobuf
from collector.otlp.inflate import TooLargeError, inflate
from collector.otlp.receiver import ReceiverCounts, Submit
from store.batch import Batch
from store.errors import BusyError, InfractlError

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_DECODERS = {PROTOBUF: decode_protobuf, JSON: decode_json}
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest body (as sent, inflated), bytes of bodies held at once, and bodies decoded at once."""

    max_body_bytes: int = 16 * _MIB
    max_inflated_bytes: int = 32 * _MIB
    max_held_bytes: int = 128 * _MIB
    decoders: int = 2


DEFAULT_LIMITS = Limits()


def create_app(
    submit: Submit,
    options: ContentOptions = DEFAULT_CONTENT,
    limits: Limits = DEFAULT_LIMITS,
    counts: ReceiverCounts | None = None,
) -> Starlette:
    """Build the app. `app.state.counts` is the `ReceiverCounts` (the one given, else its own).

    200 means stored. 503 with Retry-After: queue full or store failed, send again. 400, 413, 415: sending again is no
    use. Refused spans of a stored batch are told as partial success.
    """
    receiver = _Receiver(submit, options, limits, counts or ReceiverCounts())
    app = Starlette(
        routes=[
            Route("/v1/traces", receiver.export, methods=["POST"]),
            Route("/v1/metrics", _traces_only, methods=["POST"]),
            Route("/v1/logs", _traces_only, methods=["POST"]),
        ]
    )
    app.state.counts = receiver.counts
    return app


class _Receiver:
    """Decodes in threads of its own, so the event loop stays free for other requests."""

    def __init__(self, submit: Submit, options: ContentOptions, limits: Limits, counts: ReceiverCounts) -> None:
        self.submit, self.options, self.limits, self.counts = submit, options, limits, counts
        self._threads = ThreadPoolExecutor(limits.decoders, thread_name_prefix="otlp-decode")
        self._held_bytes = 0

    async def export(self, request: Request) -> Response:
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            batch = await self._receive(request, form)
        except ClientDisconnect:
            self.counts.refused("http", "cut_off")
            return Response(status_code=400)
        except InfractlError as error:
            return self._refuse(error, form)
        self.counts.taken("http", batch)
        answer = export_response(batch)
        body = json.dumps(MessageToDict(answer)).encode() if form == JSON else answer.SerializeToString()
        return Response(body, media_type=form)

    async def _receive(self, request: Request, form: str) -> Batch:
        """Read, decode and store one request."""
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if form not in _DECODERS:
            fact = f"content type {form!r} is not OTLP" if form else "no content type"
            raise UnsupportedError(fact, f"send {PROTOBUF} or {JSON}", "unsupported_type")
        if encoding not in ("identity", "gzip"):
            fact = f"content encoding {encoding!r} is not read"
            raise UnsupportedError(fact, "send the body plain or with gzip", "unsupported_encoding")
        chunks: list[bytes] = []
        try:
            await self._read(request, chunks)
            loop = asyncio.get_running_loop()
            # no name for the job: it would hold its error, whose traceback holds this frame and all the bytes
            batch = await loop.run_in_executor(self._threads, self._decode, chunks, form, encoding)
        finally:
            self._held_bytes -= sum(map(len, chunks))
        if batch.rows or batch.drops:
            # shield: a request that is cancelled at shutdown must not cancel the commit
            await asyncio.shield(asyncio.wrap_future(self.submit(batch)))
        return batch

    async def _read(self, request: Request, chunks: list[bytes]) -> None:
        """Collect the body, within the limits on one body and on all that are held."""
        limit = self.limits.max_body_bytes
        declared = request.headers.get("content-length", "0")
        size = 0
        if declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        async for chunk in request.stream():
            chunks.append(chunk)
            size += len(chunk)
            self._held_bytes += len(chunk)
            if size > limit:
                raise _too_large(limit)
            if self._held_bytes > self.limits.max_held_bytes:
                raise BusyError("too many bodies at once")

    def _decode(self, chunks: list[bytes], form: str, encoding: str) -> Batch:
        body = b"".join(chunks)
        if encoding == "gzip":
            body = inflate(body, self.limits.max_inflated_bytes)
        return _DECODERS[form](body, self.options)

    def _refuse(self, error: InfractlError, form: str) -> Response:
        """Answer in the request's encoding, with Retry-After where the sender should try again."""
        refusal = refusal_of(error)
        self.counts.refused("http", refusal.reason)
        status = error_status(error)
        headers = {} if refusal.retry_after_s is None else {"Retry-After": str(math.ceil(refusal.retry_after_s))}
        if form == PROTOBUF:
            return Response(status.SerializeToString(), refusal.http_status, headers, PROTOBUF)
        text = json.dumps({"code": status.code, "message": status.message})
        return Response(text, refusal.http_status, headers, JSON)


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"the body has more than {limit} bytes", "send smaller batches or raise the limit")


async def _traces_only(request: Request) -> Response:
    return PlainTextResponse(
        f"{request.url.path} is not received: infractl takes traces (/v1/traces) and scrapes metrics itself\n", 404
    )
