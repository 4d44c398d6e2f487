"""What OpenTelemetry's own Python SDK prints to the console is read back as what it exports over OTLP."""

import io
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, StatusCode, set_span_in_context
from opentelemetry.util.types import Attributes

from collector.files import FileKind
from collector.otlp.decode import decode_protobuf
from store.errors import SourceError
from tests.collector.files.traces.taking import Row, take

MS = 1_000_000
START_NS = 1_796_040_000_000 * MS  # the console prints whole microseconds


@pytest.fixture
def printed() -> tuple[str, list[Row]]:
    """The text that the SDK prints, and the rows of the same spans over OTLP."""
    out, memory = io.StringIO(), InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "gateway"}))
    for exporter in (ConsoleSpanExporter(out=out), memory):
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("lib")
    asked: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3, "stops": ["a", "b"]}
    parent = tracer.start_span("request", kind=SpanKind.SERVER, start_time=START_NS)
    links = [Link(parent.get_span_context(), {"why": "retry"})]
    within = set_span_in_context(parent)
    span = tracer.start_span("chat", within, SpanKind.CLIENT, asked, links, start_time=START_NS + 10 * MS)
    span.add_event("first_token", {"n": 1}, START_NS + 260 * MS)
    span.set_status(StatusCode.ERROR, "boom")
    span.end(START_NS + 1_010 * MS)
    parent.end(START_NS + 1_020 * MS)
    frame = decode_protobuf(encode_spans(memory.get_finished_spans()).SerializeToString()).frames["spans"]
    return out.getvalue(), frame.to_dicts()


def test_printed_spans_equal_those_of_otlp_but_for_the_scope_that_is_not_printed(
    tmp_path: Path, printed: tuple[str, list[Row]]
) -> None:
    text, expected = printed
    imported, rows = take(tmp_path, text)
    assert imported.kind is FileKind.SDK_SPANS
    assert rows == [row | {"scope": None} for row in expected]
    assert (rows[0]["ttft_s"], rows[0]["e2e_s"], rows[0]["input_tokens"]) == (pytest.approx(0.25), 1.0, 3)


def test_a_single_printed_span_and_a_line_for_each_are_read_too(tmp_path: Path, printed: tuple[str, list[Row]]) -> None:
    text, _ = printed
    first = text[: text.index("\n}\n") + 3]
    lines = "".join(part.replace("\n", "") + "\n" for part in (first, text[len(first) :]))
    assert [len(take(tmp_path, form)[1]) for form in (first, lines, text)] == [1, 2, 2]


def test_broken_printing_names_the_line(tmp_path: Path, printed: tuple[str, list[Row]]) -> None:
    text, _ = printed
    broken = text[::-1].replace('"eman"', "eman", 1)[::-1]  # a key of the second object
    at = next(number for number, line in enumerate(broken.split("\n"), 1) if line.strip().startswith("name"))
    with pytest.raises(SourceError, match=f":{at}: broken JSON"):
        take(tmp_path, broken)
