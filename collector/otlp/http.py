"""OTLP/HTTP receiver: POST /v1/traces and /v1/metrics as an ASGI app, acknowledged only after COMMIT.

Log records are answered with a partial success that refuses them all: a sender of three signals needs no other setting.
"""

import asyncio
import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from collector.otlp.answers import UnsupportedError, error_status, refusal_of
from collector.otlp.content import DEFAULT_CONTENT, ContentOptions
from collector.otlp.cors import cors
from collector.otlp.inflate import ENCODINGS
from collector.otlp.metrics import MetricsDecoder
from collector.otlp.receiver import ReceiverCounts, Submit
from collector.otlp.signals import JSON, PROTOBUF, Signal, logs, metrics, traces
from collector.push.batch import Pushed
from collector.push.bodies import DEFAULT_LIMITS, Bodies, Limits
from collector.push.gate import DECODERS, Gate
from store.errors import InfractlError


def create_app(
    submit: Submit,
    options: ContentOptions = DEFAULT_CONTENT,
    limits: Limits = DEFAULT_LIMITS,
    counts: ReceiverCounts | None = None,
    decoder: MetricsDecoder | None = None,
    origins: Sequence[str] = (),
    gate: Gate | None = None,
) -> Starlette:
    """Build the app. `app.state.counts` is the `ReceiverCounts` (the one given, else its own).

    `decoder` and `gate` are those of other receivers too; pages of `origins` may send from a browser. 200 means
    stored. 503 with Retry-After: too much at once or store failed, send again. 400, 413, 415: sending again is no use.
    Refused spans and points of a stored batch are told as partial success.
    """
    receiver = _Receiver(submit, limits, counts or ReceiverCounts(), gate or Gate())
    signals = {
        "/v1/traces": traces(options),
        "/v1/metrics": metrics(decoder or MetricsDecoder()),
        "/v1/logs": logs(),
    }
    routes = [Route(path, partial(receiver.export, signal), methods=["POST"]) for path, signal in signals.items()]
    app = Starlette(routes=routes, middleware=cors(origins, receiver.counts))
    app.state.counts = receiver.counts
    return app


class _Receiver:
    """Decodes in threads of its own, so the event loop stays free for other requests."""

    def __init__(self, submit: Submit, limits: Limits, counts: ReceiverCounts, gate: Gate) -> None:
        self.submit, self.limits, self.counts, self.gate = submit, limits, counts, gate
        self._threads = ThreadPoolExecutor(DECODERS, thread_name_prefix="otlp-decode")
        self._bodies = Bodies(limits)

    async def export(self, signal: Signal, request: Request) -> Response:
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            pushed = await self._receive(signal, request, form)
        except ClientDisconnect:
            self.counts.refused("http", "cut_off", signal.name)
            return Response(status_code=400)
        except InfractlError as error:
            return self._refuse(error, form, signal)
        self.counts.taken("http", pushed.batch, signal.name)
        answer = signal.respond(pushed)
        body = json.dumps(MessageToDict(answer)).encode() if form == JSON else answer.SerializeToString()
        return Response(body, media_type=form)

    async def _receive(self, signal: Signal, request: Request, form: str) -> Pushed:
        """Read, decode and store one request."""
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if form not in signal.decoders:
            fact = f"content type {form!r} is not OTLP" if form else "no content type"
            raise UnsupportedError(fact, f"send {PROTOBUF} or {JSON}", "unsupported_type")
        if encoding not in ENCODINGS:
            fact = f"content encoding {encoding!r} is not read"
            raise UnsupportedError(fact, "send the body plain, or with gzip or zstd", "unsupported_encoding")
        chunks: list[bytes] = []
        try:
            await self._bodies.read(request, chunks)
            with self.gate.hold(sum(map(len, chunks))):
                return await self._store(signal, chunks, form, encoding)
        finally:
            self._bodies.release(chunks)

    async def _store(self, signal: Signal, chunks: list[bytes], form: str, encoding: str) -> Pushed:
        loop = asyncio.get_running_loop()
        # no name for the job: it would hold its error, whose traceback holds this frame and all the bytes
        pushed = await loop.run_in_executor(self._threads, self._decode, signal, chunks, form, encoding)
        if pushed.batch.rows or pushed.batch.drops:
            # shield: a request that is cancelled at shutdown must not cancel the commit
            await asyncio.shield(asyncio.wrap_future(self.submit(pushed.batch)))
        if pushed.tells:  # in a thread: it waits for a request that is being decoded
            await loop.run_in_executor(self._threads, signal.committed, pushed)
        return pushed

    def _decode(self, signal: Signal, chunks: list[bytes], form: str, encoding: str) -> Pushed:
        with self.gate.decoders:
            body = ENCODINGS[encoding](b"".join(chunks), self.limits.max_inflated_bytes)
            return signal.decoders[form](body)

    def _refuse(self, error: InfractlError, form: str, signal: Signal) -> Response:
        """Answer in the request's encoding, with Retry-After where the sender should try again."""
        refusal = refusal_of(error)
        self.counts.refused("http", refusal.reason, signal.name)
        status = error_status(error)
        headers = {} if refusal.retry_after_s is None else {"Retry-After": str(math.ceil(refusal.retry_after_s))}
        if form == PROTOBUF:
            return Response(status.SerializeToString(), refusal.http_status, headers, PROTOBUF)
        text = json.dumps({"code": status.code, "message": status.message})
        return Response(text, refusal.http_status, headers, JSON)
