"""OTLP in files: documents, lines of documents, protobuf; the same spans each way."""

import json
from pathlib import Path

import polars as pl
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
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
        ("\n".join([json.dumps(document()), '{"resource_spans": []}']), 2),
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


def test_published_metrics_become_series(shared: Path) -> None:
    path = shared / "data" / "otlp_json" / "opentelemetry-proto_metrics.json"
    [batch] = load(path, ImportOptions(labels={"service": "mine", "team": "a"})).batches
    series = batch.frames["metric_series"]
    assert {json.loads(text)["team"] for text in series["labels"]} == {"a"}
    assert series["service"].unique().to_list() == ["mine"]
    values = batch.frames["metric_samples"].join(series, on="series_id").rows_by_key("name", named=True)
    assert [row["value"] for row in values["my.counter"]] == [5.0]
    assert [row["value"] for row in values["my.gauge"]] == [10.0]
    assert {json.loads(row["labels"])["le"]: row["value"] for row in values["my.histogram_bucket"]} == {
        "1": 1.0, "+Inf": 2.0,
    }  # fmt: skip
    assert [row["value"] for row in values["my.exponential.histogram_sum"]] == [10.0]
    assert {row["kind"] for row in values["my.counter"]} == {"counter"}


@pytest.mark.parametrize("name", ["logs", "events"])
def test_published_log_records_are_refused_with_a_sentence_that_names_them(shared: Path, name: str) -> None:
    path = shared / "data" / "otlp_json" / f"opentelemetry-proto_{name}.json"
    with pytest.raises(SourceError, match="1 OTLP log records and nothing else; infractl takes traces and metrics"):
        read(path)


def metrics(value: float, at_s: int) -> dict[str, object]:
    point = {"asDouble": value, "timeUnixNano": str(at_s * 10**9), "startTimeUnixNano": str(1796040000 * 10**9)}
    metric = {"name": "requests", "sum": {"aggregationTemporality": 1, "isMonotonic": True, "dataPoints": [point]}}
    return {"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}


def test_lines_of_traces_metrics_and_logs_in_one_file_each_go_their_way(tmp_path: Path) -> None:
    logs: dict[str, object] = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{}, {}]}]}]}
    lines = [document(), metrics(2, 1796040060), logs, metrics(3, 1796040120)]
    path = tmp_path / "export.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    imported = load(path, ImportOptions())
    [batch] = imported.batches
    assert batch.frames["spans"].height == 1
    assert batch.frames["metric_series"].height == 1
    assert batch.frames["metric_samples"].sort("ts")["value"].to_list() == [0.0, 2.0, 5.0]  # deltas add up
    assert [(why.partition(":")[0], r.count) for why, r in imported.refused.items()] == [("OTLP log record", 2)]


def test_metrics_of_a_file_are_the_same_samples_each_time(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(metrics(2, 1796040060)))
    [first], [again] = read(path), read(path)
    assert first.frames["metric_samples"].equals(again.frames["metric_samples"])


@pytest.mark.parametrize("framed", [False, True])
def test_metrics_in_protobuf_are_told_from_spans(tmp_path: Path, framed: bool) -> None:
    request = json_format.ParseDict(metrics(2, 1796040060), ExportMetricsServiceRequest())
    body = request.SerializeToString()
    path = tmp_path / "export"
    path.write_bytes(len(body).to_bytes(4, "big") + body if framed else body)
    [batch] = read(path)
    assert set(batch.frames) == {"metric_series", "metric_samples"}
    assert batch.frames["metric_samples"].sort("ts")["value"].to_list() == [0.0, 2.0]
    with pytest.raises(UsageError, match="--label does not apply"):
        load(path, ImportOptions(labels={"team": "a"}))


def test_spans_of_which_every_id_is_wrong_are_counted_as_spans(tmp_path: Path) -> None:
    path = tmp_path / "export"
    path.write_bytes(message(bytes(8)))
    [batch] = read(path)
    assert (batch.rows, batch.drops) == (0, {"invalid_span_id": 1})


def test_labels_go_into_columns_where_there_are_and_into_attributes_else(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document()))
    [batch] = load(path, ImportOptions(labels={"service": "mine", "host": "h1", "team": "a"})).batches
    [row] = batch.frames["spans"].to_dicts()
    assert (row["service"], row["host"], json.loads(row["attributes"])) == ("mine", "h1", {"team": "a"})


def test_a_label_that_names_a_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document()))
    with pytest.raises(UsageError, match="ttft_s would set a field of numbers"):
        load(path, ImportOptions(labels={"ttft_s": "1"}))
