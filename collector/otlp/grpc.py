"""OTLP/gRPC receiver: Export of TraceService and MetricsService, acknowledged only after COMMIT.

LogsService refuses every record in a partial success.

Requests reach us as bytes, so that our decoder (and its repair of invalid UTF-8) reads them, not gRPC's.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import grpc

from collector.otlp.answers import error_status, refusal_of
from collector.otlp.content import DEFAULT_CONTENT, ContentOptions
from collector.otlp.metrics import MetricsDecoder
from collector.otlp.receiver import ReceiverCounts, Submit
from collector.otlp.signals import PROTOBUF, Signal, logs, metrics, traces
from collector.push.batch import Pushed
from store.errors import BusyError, InfractlError, SourceError

MAX_MESSAGE_BYTES = 32 << 20
"""Largest message, inflated. gRPC's default of 4 MiB loses whole batches of spans that carry prompts."""

_SERVICE = "opentelemetry.proto.collector.{0}.v1.{1}Service"
MAX_REQUESTS, MAX_HELD_BYTES = 56, 128 << 20
"""Requests decoded or waiting for their commit at once, and bytes of their messages; one more is refused at once."""

_THREADS = MAX_REQUESTS + 8  # those left over refuse: a request without a thread would wait with its message in memory
_DECODERS = 2
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_DETAILS = "grpc-status-details-bin"


@dataclass(frozen=True, slots=True)
class GrpcReceiver:
    """A running server."""

    port: int
    _server: grpc.Server

    def stop(self, grace_s: float = 5.0) -> None:
        """Take no new request, finish those under way (at most `grace_s` seconds) and release the port."""
        self._server.stop(grace_s).wait()


def start(
    host: str,
    port: int,
    submit: Submit,
    options: ContentOptions = DEFAULT_CONTENT,
    counts: ReceiverCounts | None = None,
    decoder: MetricsDecoder | None = None,
) -> GrpcReceiver:
    """Listen on `host:port` (port 0: a free one) without TLS. `decoder` is the one that other receivers use too.

    Raises SourceError when the address cannot be used.
    """
    server = grpc.server(
        ThreadPoolExecutor(_THREADS, thread_name_prefix="otlp-grpc"),
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),  # else a second server takes half of the requests without an error
        ],
    )
    counted, room = counts or ReceiverCounts(), _Room()
    signals = {"Trace": traces(options), "Metrics": metrics(decoder or MetricsDecoder()), "Logs": logs()}
    for name, signal in signals.items():
        method = grpc.unary_unary_rpc_method_handler(_Exporter(submit, signal, counted, room).export)
        service = _SERVICE.format(name.lower(), name)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": method}),))
    try:
        bound = server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except RuntimeError:
        bound = 0
    if bound == 0:
        raise SourceError(f"cannot listen on {host}:{port} for OTLP/gRPC", "choose another port with --otlp-grpc-port")
    server.start()
    return GrpcReceiver(bound, server)


class _Room:
    """Counts the requests under way and their bytes."""

    def __init__(self) -> None:
        self._lock, self.decoders = threading.Lock(), threading.Semaphore(_DECODERS)
        self._requests = self._bytes = 0

    @contextmanager
    def hold(self, size: int) -> Iterator[None]:
        """Count a request as under way. Raises BusyError where it is one too many."""
        with self._lock:
            if self._requests >= MAX_REQUESTS or (self._requests and self._bytes + size > MAX_HELD_BYTES):
                raise BusyError("too many requests at once")
            self._requests, self._bytes = self._requests + 1, self._bytes + size
        try:
            yield
        finally:
            with self._lock:
                self._requests, self._bytes = self._requests - 1, self._bytes - size


@dataclass(frozen=True, slots=True)
class _Exporter:
    submit: Submit
    signal: Signal
    counts: ReceiverCounts
    room: _Room

    def export(self, body: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            with self.room.hold(len(body)):
                pushed = self._store(body)
        except InfractlError as error:
            self.counts.refused("grpc", refusal_of(error).reason, self.signal.name)
            status = error_status(error)
            context.set_trailing_metadata(((_DETAILS, status.SerializeToString()),))
            context.abort(_CODES[status.code], status.message)
        self.counts.taken("grpc", pushed.batch, self.signal.name)
        return bytes(self.signal.respond(pushed).SerializeToString())

    def _store(self, body: bytes) -> Pushed:
        with self.room.decoders:
            pushed = self.signal.decoders[PROTOBUF](body)
        if pushed.batch.rows or pushed.batch.drops:
            self.submit(pushed.batch).result()
        self.signal.committed(pushed)
        return pushed
