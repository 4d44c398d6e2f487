"""What a sender is told, the same over HTTP and gRPC: partial success, errors, when to retry."""

import math
from typing import NamedTuple

from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.otlp.decode import rejected
from collector.otlp.inflate import TooLargeError
from collector.otlp.metrics import REASONS
from collector.push.batch import Pushed
from store.batch import Batch
from store.errors import BusyError, InfractlError, SourceError, StoreError

_INVALID_ARGUMENT, _RESOURCE_EXHAUSTED, _UNAVAILABLE = 3, 8, 14

STORE_RETRY_AFTER_S = 5.0
"""How long a sender waits when the store failed: a full disk is not freed in a second."""


LOGS_REFUSED = (
    "infractl takes traces and metrics: what a log record says of a request is on its span; send logs elsewhere"
)
"""What a sender of logs is told."""


def metrics_response(pushed: Pushed) -> ExportMetricsServiceResponse:
    """Answer for stored metrics; points that were refused make it a partial success, which no sender retries."""
    answer = ExportMetricsServiceResponse()
    refused = pushed.refused
    if refused:
        reasons = "; ".join(f"{reason}: {n} ({REASONS.get(reason, '')})" for reason, n in sorted(refused.items()))
        answer.partial_success.rejected_data_points = sum(refused.values())
        answer.partial_success.error_message = f"points refused: {reasons}"
    return answer


def logs_response(batch: Batch) -> ExportLogsServiceResponse:
    """Answer for log records: none is stored, which a partial success says without asking for another try."""
    answer = ExportLogsServiceResponse()
    if refused := sum(batch.drops.values()):
        answer.partial_success.rejected_log_records = refused
        answer.partial_success.error_message = LOGS_REFUSED
    return answer


def export_response(batch: Batch) -> ExportTraceServiceResponse:
    """Answer for a stored batch; spans that were refused make it a partial success, which no sender retries."""
    answer = ExportTraceServiceResponse()
    refused = rejected(batch)
    if refused:
        reasons = ", ".join(f"{reason}: {n}" for reason, n in sorted(batch.drops.items()))
        answer.partial_success.rejected_spans = refused
        answer.partial_success.error_message = f"spans refused ({reasons}); ids are 16 and 8 bytes, hex in OTLP/JSON"
    return answer


class Refusal(NamedTuple):
    """Why nothing of a request was stored: HTTP status, gRPC code, reason (as counted), and when to retry."""

    http_status: int
    grpc_code: int
    reason: str
    retry_after_s: float | None = None


class UnsupportedError(SourceError):
    """A content type or encoding that the receiver does not read; `reason` is what it is counted as."""

    def __init__(self, fact: str, hint: str, reason: str) -> None:
        super().__init__(fact, hint)
        self.reason = reason


def refusal_of(error: InfractlError) -> Refusal:
    """Return the answer to an error: only a full queue and a failed store are worth another try."""
    match error:
        case BusyError():
            return Refusal(503, _UNAVAILABLE, "busy", error.retry_after_s)
        case StoreError():
            return Refusal(503, _UNAVAILABLE, "store_error", STORE_RETRY_AFTER_S)
        case TooLargeError():
            return Refusal(413, _RESOURCE_EXHAUSTED, "too_large")
        case UnsupportedError():
            return Refusal(415, _INVALID_ARGUMENT, error.reason)
        case _:
            return Refusal(400, _INVALID_ARGUMENT, "malformed")


def error_status(error: InfractlError) -> Status:
    """google.rpc.Status of a refusal, with RetryInfo where the sender may try again."""
    refusal = refusal_of(error)
    status = Status(code=refusal.grpc_code, message=f"{error} ({error.hint})" if error.hint else str(error))
    if refusal.retry_after_s is not None:
        fraction, whole = math.modf(refusal.retry_after_s)
        delay = Duration(seconds=int(whole), nanos=int(fraction * 1e9))
        status.details.add().Pack(RetryInfo(retry_delay=delay))
    return status
