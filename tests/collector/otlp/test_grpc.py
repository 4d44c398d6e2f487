"""OTLP/gRPC: a real exporter into a real store, and every answer a sender can get."""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind

from collector.otlp.grpc import MAX_MESSAGE_BYTES, start
from collector.otlp.receiver import ReceiverCounts, Submit
from collector.push.gate import Gate
from store.batch import Batch, Receipt
from store.database import Database
from store.errors import BusyError, SourceError, StoreError
from tests.collector.otlp.builders import make_request, make_span

BODY = make_request(make_span(name="one")).SerializeToString()


def never(_: Batch) -> "Future[Receipt]":
    raise AssertionError("nothing is to be stored")


@contextmanager
def running(submit: Submit, counts: ReceiverCounts | None = None, gate: Gate | None = None) -> Iterator[str]:
    receiver = start("127.0.0.1", 0, submit, counts=counts, gate=gate)
    try:
        yield f"127.0.0.1:{receiver.port}"
    finally:
        receiver.stop(0)


def export(
    address: str, body: bytes, compression: grpc.Compression = grpc.Compression.NoCompression
) -> ExportTraceServiceResponse:
    """Send bytes as a request."""
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        return ExportTraceServiceResponse.FromString(call(body, timeout=30, compression=compression))


def failure(address: str, body: bytes, **kwargs: grpc.Compression) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        export(address, body, **kwargs)
    return caught.value


def test_the_sdk_exports_into_the_store(database: Database, submit: Submit) -> None:
    counts = ReceiverCounts()
    with running(submit, counts) as address:
        exporter = OTLPSpanExporter(address, insecure=True, compression=grpc.Compression.Gzip)
        provider = TracerProvider(resource=Resource({"service.name": "gw"}))
        provider.add_span_processor(BatchSpanProcessor(exporter))
        with provider.get_tracer("t").start_as_current_span("chat m", kind=SpanKind.CLIENT) as span:
            span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 3, "mine": [1, 2]})
        provider.shutdown()
    (row,) = database.table("spans").iter_rows(named=True)
    assert (row["service"], row["kind"], row["operation"], row["output_tokens"]) == ("gw", "client", "chat", 3)
    assert json.loads(row["attributes"]) == {"mine": [1, 2]}
    assert counts.requests == {("grpc", "traces", "stored"): 1}


def test_refused_spans_are_told_as_partial_success(database: Database, submit: Submit) -> None:
    with running(submit) as address:
        answer = export(address, make_request(make_span(), make_span(start_time_unix_nano=0)).SerializeToString())
    assert answer.partial_success.rejected_spans == 1
    assert "missing_start_time: 1" in answer.partial_success.error_message
    assert database.counts()["spans"] == 1


@pytest.mark.parametrize(
    ("error", "delay_s"), [(BusyError("full", retry_after_s=1.5), 1.5), (StoreError("disk full"), 5.0)]
)
def test_a_full_queue_or_a_failed_store_is_unavailable_with_retry_info(error: Exception, delay_s: float) -> None:
    def submit(_: Batch) -> "Future[Receipt]":
        raise error

    with running(submit) as address:
        refused = failure(address, BODY)
    assert refused.code() is grpc.StatusCode.UNAVAILABLE
    details = dict(refused.trailing_metadata())["grpc-status-details-bin"]
    info = RetryInfo()
    assert Status.FromString(details).details[0].Unpack(info)
    assert info.retry_delay.ToTimedelta().total_seconds() == delay_s


def test_a_malformed_message_is_an_invalid_argument() -> None:
    counts = ReceiverCounts()
    with running(never, counts) as address:
        refused = failure(address, b"\xff\xff")
    assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "protobuf" in refused.details()
    assert counts.requests == {("grpc", "traces", "malformed"): 1}


def test_a_message_of_16_mib_is_taken_and_one_above_the_limit_says_which_limit(
    database: Database, submit: Submit
) -> None:
    big = make_request(make_span({"gen_ai.prompt": "x" * (16 << 20)})).SerializeToString()
    with running(submit) as address:
        export(address, big)
        refused = failure(address, bytes(MAX_MESSAGE_BYTES + 1))
        bomb = failure(address, bytes(MAX_MESSAGE_BYTES + 1), compression=grpc.Compression.Gzip)
    assert database.counts()["spans"] == 1
    assert refused.code() is bomb.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert str(MAX_MESSAGE_BYTES) in refused.details()


def test_a_port_in_use_names_the_address_and_the_option() -> None:
    with running(never) as address, pytest.raises(SourceError, match=address) as caught:
        start("127.0.0.1", int(address.rpartition(":")[2]), never)
    assert "--otlp-grpc-port" in caught.value.hint


def test_a_stopped_receiver_releases_its_port(submit: Submit) -> None:
    first = start("127.0.0.1", 0, submit)
    first.stop(0)
    second = start("127.0.0.1", first.port, submit)
    second.stop(0)
    assert second.port == first.port


@pytest.mark.parametrize(("requests", "held_bytes"), [(2, 1 << 20), (9, 2 * len(BODY))])
def test_a_request_too_many_is_told_to_come_back_while_the_others_wait_for_their_commit(
    requests: int, held_bytes: int
) -> None:
    commits: Queue[Future[Receipt]] = Queue()

    def submit(_: Batch) -> "Future[Receipt]":
        future: Future[Receipt] = Future()
        commits.put(future)
        return future

    counts = ReceiverCounts()
    gate = Gate(requests, held_bytes)
    with running(submit, counts, gate) as address, ThreadPoolExecutor(2) as senders:
        sent = [senders.submit(export, address, BODY) for _ in range(2)]
        waiting = [commits.get(timeout=30) for _ in sent]
        refused = failure(address, BODY)
        for future in waiting:
            future.set_result(Receipt("b", {}, {}))
        assert all(answer.result(timeout=30) == ExportTraceServiceResponse() for answer in sent)
        assert commits.empty(), "what was refused was not stored"
    assert refused.code() is grpc.StatusCode.UNAVAILABLE
    assert "too many requests" in refused.details()
    assert counts.requests == {("grpc", "traces", "busy"): 1, ("grpc", "traces", "stored"): 2}
