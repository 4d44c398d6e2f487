"""A sender of logs is told that none is stored, and how many; the real SDK's exporter takes that for an answer."""

import contextlib
import logging
from collections.abc import Iterator

import httpx
import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

from collector.otlp import grpc, http
from collector.otlp.answers import LOGS_REFUSED
from collector.otlp.logs import REASON, count_json, count_protobuf
from collector.otlp.receiver import ReceiverCounts, Submit
from store.database import Database
from store.errors import SourceError
from tests.collector.otlp.conftest import Served

EVENT = "gen_ai.client.inference.operation.details"


@contextlib.contextmanager
def receiving(protocol: str, submit: Submit, counts: ReceiverCounts) -> Iterator[str]:
    if protocol == "grpc":
        receiver = grpc.start("127.0.0.1", 0, submit, counts=counts)
        try:
            yield f"http://127.0.0.1:{receiver.port}"
        finally:
            receiver.stop()
    else:
        with Served(http.create_app(submit, counts=counts)) as url:
            yield f"{url}/v1/logs"


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_sdk_sends_a_log_once_without_an_error_and_it_is_counted_as_refused(
    database: Database, submit: Submit, caplog: pytest.LogCaptureFixture, protocol: str
) -> None:
    counts = ReceiverCounts()
    with receiving(protocol, submit, counts) as url, caplog.at_level(logging.WARNING, "opentelemetry.exporter"):
        exporter = GrpcExporter(url, insecure=True) if protocol == "grpc" else HttpExporter(url)
        provider = LoggerProvider()
        provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
        attributes = {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 5}
        record = LogRecord(severity_number=SeverityNumber.INFO, event_name=EVENT, attributes=attributes)
        provider.get_logger("test").emit(record)
        provider.shutdown()
    assert counts.requests == {(protocol, "logs", "partial"): 1}
    assert counts.refused_rows == {("logs", REASON): 1}
    assert database.table("spans").height == 0
    assert database.table("ingest_drops").select("reason", "rows").rows() == [(REASON, 1)]
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


def test_the_answer_is_a_partial_success_that_says_what_to_do(submit: Submit) -> None:
    body = ExportLogsServiceRequest()
    scope = body.resource_logs.add().scope_logs.add()
    scope.log_records.add()
    scope.log_records.add()
    headers = {"content-type": "application/x-protobuf"}
    with Served(http.create_app(submit)) as url:
        answer = httpx.post(f"{url}/v1/logs", content=body.SerializeToString(), headers=headers)
        empty = httpx.post(f"{url}/v1/logs", content=b"{}", headers={"content-type": "application/json"})
    told = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, told.rejected_log_records, told.error_message) == (200, 2, LOGS_REFUSED)
    assert (empty.status_code, empty.json()) == (200, {})


def test_records_are_counted_in_json_and_what_is_no_request_is_refused() -> None:
    body = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},{}]},{"logRecords":[{}]}]}]}'
    assert count_json(body).drops == {REASON: 3}
    for count, broken in ((count_json, b"["), (count_json, b"[]"), (count_protobuf, b"\xff")):
        with pytest.raises(SourceError, match="not an OTLP logs request"):
            count(broken)
