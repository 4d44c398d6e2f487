"""OTLP/JSON metric bodies as protobuf, so that both encodings are read alike."""

from typing import Any

import orjson
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from collector.otlp.repair import repair_json
from store.errors import SourceError


def from_json(body: bytes) -> bytes:
    """Return an OTLP/JSON body as protobuf; invalid UTF-8 is replaced. Raises SourceError."""
    try:
        try:
            content = orjson.loads(body)
        except orjson.JSONDecodeError:
            content = orjson.loads(repair_json(body))
        if not isinstance(content, dict) or (content and "resourceMetrics" not in content):
            raise malformed("JSON", "it has no resourceMetrics")
        _leave_out(content, "exemplars")  # their ids are hex, which the reader below takes for base64
        request = json_format.ParseDict(content, ExportMetricsServiceRequest(), ignore_unknown_fields=True)
    except (orjson.JSONDecodeError, json_format.ParseError, RecursionError) as error:
        raise malformed("JSON", error) from None
    return bytes(request.SerializeToString())


def _leave_out(content: Any, name: str) -> None:
    if isinstance(content, dict):
        content.pop(name, None)
    for item in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        _leave_out(item, name)


def malformed(form: str, why: object) -> SourceError:
    """Return the error for a body that is no OTLP metrics request."""
    return SourceError(
        f"not an OTLP metrics request in {form}: {why}", "see what the sender exports and how it encodes it"
    )
