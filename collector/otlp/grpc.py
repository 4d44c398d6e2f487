"""OTLP/gRPC receiver: Export of TraceService and MetricsService, acknowledged only after COMMIT.

LogsService refuses every record in a partial success.

Requests reach us as bytes, so that our decoder (and its repair of invalid UTF-8) reads them, not gRPC's.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc

from collector.otlp.answers import error_status, refusal_of
from collector.otlp.content import DEFAULT_CONTENT, ContentOptions
from collector.otlp.metrics import MetricsDecoder
from collector.otlp.receiver import ReceiverCounts, Submit
from collector.otlp.signals import PROTOBUF, Signal, logs, metrics, traces
from collector.push.batch import Pushed
from collector.push.gate import MAX_REQUESTS, Gate
from store.errors import InfractlError, SourceError

MAX_MESSAGE_BYTES = 32 << 20
"""Largest message, inflated. gRPC's default of 4 MiB loses whole batches of spans that carry prompts."""

_SERVICE = "opentelemetry.proto.collector.{0}.v1.{1}Service"
_THREADS = MAX_REQUESTS + 8  # those left over refuse: a request without a thread would wait with its message in memory
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
    gate: Gate | None = None,
) -> GrpcReceiver:
    """Listen on `host:port` (port 0: a free one) without TLS. `decoder` and `gate` are those of other receivers too.

    Raises SourceError when the address cannot be used.
    """
    server = grpc.server(
        ThreadPoolExecutor(_THREADS, thread_name_prefix="otlp-grpc"),
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),  # else a second server takes half of the requests without an error
        ],
    )
    counted, shared = counts or ReceiverCounts(), gate or Gate()
    signals = {"Trace": traces(options), "Metrics": metrics(decoder or MetricsDecoder()), "Logs": logs()}
    for name, signal in signals.items():
        method = grpc.unary_unary_rpc_method_handler(_Exporter(submit, signal, counted, shared).export)
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


@dataclass(frozen=True, slots=True)
class _Exporter:
    submit: Submit
    signal: Signal
    counts: ReceiverCounts
    gate: Gate

    def export(self, body: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            with self.gate.hold(len(body)):
                pushed = self._store(body)
        except InfractlError as error:
            self.counts.refused("grpc", refusal_of(error).reason, self.signal.name)
            status = error_status(error)
            context.set_trailing_metadata(((_DETAILS, status.SerializeToString()),))
            context.abort(_CODES[status.code], status.message)
        self.counts.taken("grpc", pushed.batch, self.signal.name)
        return bytes(self.signal.respond(pushed).SerializeToString())

    def _store(self, body: bytes) -> Pushed:
        with self.gate.decoders:
            pushed = self.signal.decoders[PROTOBUF](body)
        if pushed.batch.rows or pushed.batch.drops:
            self.submit(pushed.batch).result()
        self.signal.committed(pushed)
        return pushed
