"""OTLP log records: counted, and refused. What GenAI events say of a request (model, tokens) its span says too.

A row for `gen_ai.client.inference.operation.details` would count the request twice, and the rest of it is conversation.
"""

from collections.abc import Iterator
from typing import Any

import orjson
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from store.batch import Batch
from store.errors import SourceError

REASON = "log_record"
"""What a refused record is counted as."""


def count_protobuf(body: bytes) -> Batch:
    """Count the records of an ExportLogsServiceRequest. Raises SourceError for a body that is none."""
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError as error:
        raise _malformed("protobuf", error) from None
    return _refused(sum(len(part.log_records) for group in request.resource_logs for part in group.scope_logs))


def count_json(body: bytes) -> Batch:
    """Count the records of an OTLP/JSON body. Raises SourceError for a body that is none."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _malformed("JSON", error) from None
    if not isinstance(document, dict):
        raise _malformed("JSON", "no object")
    return _refused(sum(1 for _ in records(document.get("resourceLogs"))))


def records(groups: Any) -> Iterator[dict[str, Any]]:
    """Yield the log records of `resourceLogs`."""
    for group in _maps(groups):
        for part in _maps(group.get("scopeLogs")):
            yield from _maps(part.get("logRecords"))


def _refused(count: int) -> Batch:
    return Batch("otlp", {}, {REASON: count} if count else {})


def _malformed(form: str, why: object) -> SourceError:
    return SourceError(f"not an OTLP logs request in {form}: {why}", "infractl takes traces and metrics")


def _maps(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
