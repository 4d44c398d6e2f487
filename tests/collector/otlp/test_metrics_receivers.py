"""Answers to senders of metrics over HTTP and gRPC; both add to the same sums."""

import gzip
import json
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import grpc as grpcio
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from collector.otlp import grpc, http
from collector.otlp.metrics import MetricsDecoder
from collector.otlp.receiver import ReceiverCounts, Submit
from collector.otlp.signals import JSON
from store.batch import Batch, Receipt
from store.database import Database
from store.errors import BusyError
from tests.collector.otlp.test_http import post

PATH = "/v1/metrics"


def now_ns() -> int:
    return int(datetime.now(UTC).timestamp() * 1e9)


def request(at_ns: int, value: float = 1.0, *, bad: bool = False) -> ExportMetricsServiceRequest:
    """Build a delta of one counter, and with `bad` a metric without a name."""
    metric = Metric(name="c")
    metric.sum.aggregation_temporality, metric.sum.is_monotonic = 1, True
    metric.sum.data_points.add(as_double=value, time_unix_nano=at_ns)
    made = ExportMetricsServiceRequest()
    part = made.resource_metrics.add().scope_metrics.add()
    part.metrics.append(metric)
    if bad:
        nameless = part.metrics.add()
        nameless.gauge.data_points.add(as_int=1, time_unix_nano=at_ns)
    return made


def busy(_: Batch) -> "Future[Receipt]":
    raise BusyError("full", 2.0)


def test_http_and_grpc_add_to_the_same_sum(database: Database, submit: Submit) -> None:
    decoder, counts, at = MetricsDecoder(), ReceiverCounts(), now_ns()
    app = http.create_app(submit, counts=counts, decoder=decoder)
    receiver = grpc.start("127.0.0.1", 0, submit, counts=counts, decoder=decoder)
    try:
        assert post(app, request(at, 5).SerializeToString(), path=PATH).status_code == 200
        with grpcio.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
            answer = MetricsServiceStub(channel).Export(request(at + 10**6, 7))
    finally:
        receiver.stop()
    assert answer == ExportMetricsServiceResponse()
    assert database.table("metric_samples").sort("ts")["value"].to_list() == [5, 12]
    assert counts.requests == {("http", "metrics", "stored"): 1, ("grpc", "metrics", "stored"): 1}


@pytest.mark.parametrize("form", [JSON, "application/x-protobuf"])
def test_refused_points_are_a_partial_success_with_reasons(submit: Submit, form: str) -> None:
    counts = ReceiverCounts()
    app = http.create_app(submit, counts=counts)
    raw = request(now_ns(), bad=True)
    body: Any = raw.SerializeToString()
    if form == JSON:
        point = {"asInt": "1", "timeUnixNano": str(now_ns())}
        metrics = [{"name": "g", "gauge": {"dataPoints": [point]}}, {"name": "", "gauge": {"dataPoints": [point]}}]
        body = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}).encode()
    answer = post(app, gzip.compress(body), form, PATH, content_encoding="gzip")
    assert answer.status_code == 200
    if form == JSON:
        told = answer.json()["partialSuccess"]
        assert (told["rejectedDataPoints"], "no_name: 1" in told["errorMessage"]) == ("1", True)
    else:
        partial = ExportMetricsServiceResponse.FromString(answer.content).partial_success
        assert (partial.rejected_data_points, "no_name: 1" in partial.error_message) == (1, True)
    assert counts.requests == {("http", "metrics", "partial"): 1}


def test_a_malformed_body_is_a_400_and_invalid_argument(submit: Submit) -> None:
    assert post(http.create_app(submit), b"\xff\xff", path=PATH).status_code == 400
    receiver = grpc.start("127.0.0.1", 0, submit)
    try:
        with grpcio.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
            call = channel.unary_unary("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
            with pytest.raises(grpcio.RpcError) as error:
                call(b"\xff\xff")
    finally:
        receiver.stop()
    assert error.value.code() is grpcio.StatusCode.INVALID_ARGUMENT


def test_a_full_queue_is_a_503_and_the_same_delta_again_counts_once(database: Database, submit: Submit) -> None:
    tries = iter([busy, submit, submit])

    def second_time(batch: Batch) -> "Future[Receipt]":
        return next(tries)(batch)

    app = http.create_app(second_time)
    body = request(now_ns(), 5).SerializeToString()
    answers = [post(app, body, path=PATH) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 200, 200]
    assert answers[0].headers["retry-after"] == "2"
    assert database.table("metric_samples")["value"].to_list() == [5]


def test_an_empty_request_is_taken() -> None:
    counts = ReceiverCounts()
    assert post(http.create_app(busy, counts=counts), b"", path=PATH).status_code == 200
    assert counts.requests == {("http", "metrics", "empty"): 1}
