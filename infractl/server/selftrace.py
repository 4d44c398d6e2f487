"""infractl's own work as OpenTelemetry traces: into its own store, or to an OTLP/HTTP endpoint."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from collector.otlp.decode import decode_protobuf
from infractl import __version__
from infractl.configfile import Telemetry
from store.batch import Batch, Receipt
from store.errors import InfractlError


class StoreExporter(SpanExporter):
    """Writes spans into the own store, by the way every other span takes."""

    def __init__(self, submit: Callable[[Batch], "Future[Receipt]"]) -> None:
        self._submit = submit

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Encode, decode, store; a busy store drops them, as the SDK counts."""
        try:
            self._submit(decode_protobuf(encode_spans(spans).SerializeToString())).result(timeout=10)
        except (InfractlError, TimeoutError):
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS


def provider(settings: Telemetry, submit: Callable[[Batch], "Future[Receipt]"]) -> TracerProvider:
    """Build a tracer provider (never the global one, so that a host program keeps its own)."""
    made = TracerProvider(resource=Resource.create({"service.name": "infractl", "service.version": __version__}))
    if not settings.traces:
        return made
    exporter: SpanExporter = StoreExporter(submit)
    if settings.endpoint:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter(endpoint=settings.endpoint)
    made.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=5000))
    return made
