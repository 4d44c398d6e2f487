"""OTLP in files: documents, lines of documents, protobuf; the same spans each way."""

import json
from pathlib import Path

import polars as pl
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.files.load import load, read, sniff
from collector.files.options import FileKind, ImportOptions
from store.errors import SourceError, UsageError


def document(span_id: str = "00f067aa0ba902b7", service: str | None = "chat") -> dict[str, object]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]} if service else {}
    span = {
        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
        "spanId": span_id,
        "name": "chat",
        "startTimeUnixNano": "1796040000000000000",
        "endTimeUnixNano": "1796040001500000000",
    }
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}


def message(span_id: bytes) -> bytes:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = bytes(range(1, 17)), span_id, "chat"
    span.start_time_unix_nano, span.end_time_unix_nano = 1796040000 * 10**9, 1796040001 * 10**9
    return request.SerializeToString()


def spans(path: Path) -> pl.DataFrame:
    [batch] = read(path)
    return batch.frames["spans"]


def test_a_document_over_many_lines_is_one_document(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document(), indent=2))
    assert sniff(path) is FileKind.OTLP
    assert spans(path)["duration_s"].to_list() == [1.5]


def test_a_line_of_the_file_exporter_is_a_document(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    ids = ["00f067aa0ba902b7", "00f067aa0ba902b8"]
    path.write_text("\n".join(json.dumps(document(i)) for i in ids) + "\n")
    assert spans(path)["span_id"].to_list() == ids


@pytest.mark.parametrize("framed", [False, True])
def test_protobuf_is_read_bare_and_after_its_length(tmp_path: Path, framed: bool) -> None:
    path = tmp_path / "export"
    bodies = [message(bytes([9] * 8)), message(bytes([8] * 8))]
    path.write_bytes(b"".join(len(b).to_bytes(4, "big") + b for b in bodies) if framed else bodies[0] + bodies[1])
    assert sniff(path) is FileKind.OTLP
    assert spans(path)["span_id"].to_list() == ["09" * 8, "08" * 8]


def test_a_protobuf_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "export"
    body = message(bytes([9] * 8))
    path.write_bytes(len(body).to_bytes(4, "big") + body[:-3])
    with pytest.raises(SourceError, match="cut short"):
        read(path)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("\n".join([json.dumps(document()), json.dumps(document()), '{"resourceSpans": [', json.dumps(document())]), 3),
        (json.dumps(document(), indent=2).replace('"name"', "name"), 20),
        ("\n".join([json.dumps(document()), '{"resourceMetrics": []}']), 2),
    ],
)
def test_a_broken_document_names_file_and_line(tmp_path: Path, body: str, line: int) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text(body)
    with pytest.raises(SourceError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert caught.value.hint


def test_spans_that_name_no_service_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document(service=None)))
    assert load(path, ImportOptions()).notes == ("1 spans name no service (resource service.name)",)


def test_a_mapping_does_not_apply(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document()))
    with pytest.raises(UsageError, match="--map does not apply to otlp files"):
        load(path, ImportOptions(mapping={"ts": "a"}))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("jaeger-ui_otlp2jaeger-in.json", 2),
        ("jaeger-ui_otlp2jaeger-multi-in.json.txt", 4),
        ("opentelemetry-proto_trace.json", 1),
    ],
)
def test_published_examples_load(shared: Path, name: str, count: int) -> None:
    path = shared / "data" / "otlp_json" / name
    assert sniff(path) is FileKind.OTLP
    assert spans(path).height == count


@pytest.mark.parametrize("name", ["logs", "metrics", "events"])
def test_published_examples_of_other_signals_are_refused_with_a_reason(shared: Path, name: str) -> None:
    with pytest.raises(SourceError, match="it has no resourceSpans"):
        read(shared / "data" / "otlp_json" / f"opentelemetry-proto_{name}.json")
