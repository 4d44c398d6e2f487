"""The OpenTelemetry SDK exports over HTTP and gRPC: what the store holds is what the instruments recorded."""

import contextlib
import json
import math
import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import (
    Counter,
    Histogram,
    MeterProvider,
    ObservableCounter,
    ObservableUpDownCounter,
    UpDownCounter,
)
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource

from collector.otlp import grpc, http
from collector.otlp.receiver import ReceiverCounts, Submit
from store.database import Database
from tests.collector.otlp.conftest import Served

RESOURCE = {
    "service.name": "gateway",
    "service.namespace": "prod",
    "service.instance.id": "gw-1",
    "host.name": "node-7",
    "k8s.pod.name": "gw-abc",
    "process.pid": 12,
}
KINDS = (Counter, UpDownCounter, Histogram, ObservableCounter, ObservableUpDownCounter)
TTFT = "gen_ai.server.time_to_first_token"


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
            yield f"{url}/v1/metrics"


def exporter(protocol: str, url: str, temporality: AggregationTemporality) -> Any:
    preferred: Any = dict.fromkeys(KINDS, temporality)
    if protocol == "grpc":
        return GrpcExporter(url, insecure=True, preferred_temporality=preferred)
    return HttpExporter(url, compression=Compression.Gzip, preferred_temporality=preferred)


def stored(database: Database) -> pl.DataFrame:
    """Return samples with name and labels (JSON), in order of time."""
    return database.table("metric_samples").join(database.table("metric_series"), on="series_id").sort("ts")


def latest(frame: pl.DataFrame, name: str, **labels: str) -> float | None:
    """Return the newest value of the one series with these labels."""
    found = [
        (json.loads(text), value)
        for text, value in frame.filter(pl.col("name") == name).select("labels", "value").iter_rows()
    ]
    matching = [(own, value) for own, value in found if labels.items() <= own.items()]
    assert len({json.dumps(own) for own, _ in matching}) == 1, (name, labels, matching)
    value: float | None = matching[-1][1]
    return value


@pytest.mark.parametrize("temporality", [AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA])
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_what_the_instruments_recorded_is_in_the_store(
    database: Database, submit: Submit, protocol: str, temporality: AggregationTemporality
) -> None:
    counts, chance = ReceiverCounts(), random.Random(7)
    latencies = [chance.lognormvariate(-1, 1.2) for _ in range(300)]
    power = iter([310.5, 320.0, 333.25])

    def watts(_: CallbackOptions) -> Iterable[Observation]:
        yield Observation(next(power, 333.25), {"gpu": 0, "ecc": True})

    with receiving(protocol, submit, counts) as url:
        reader = PeriodicExportingMetricReader(exporter(protocol, url, temporality), math.inf)
        views = [View(instrument_name="exp.*", aggregation=ExponentialBucketHistogramAggregation())]
        provider = MeterProvider([reader], Resource(RESOURCE), views=views)
        meter = provider.get_meter("client-lib")
        requests = meter.create_counter("requests", "{request}")
        queue = meter.create_up_down_counter("queue")
        ttft = meter.create_histogram(TTFT, "s", explicit_bucket_boundaries_advisory=[0.1, 0.5, 1, 5])
        exp = meter.create_histogram("exp.latency", "s")
        meter.create_observable_gauge("hw.gpu.power", [watts], "W")
        for turn in range(3):
            requests.add(turn + 1, {"model": "m"})
            requests.add(10, {"model": "other"})
            queue.add(5 - 4 * turn)
            for value in latencies[turn * 100 : turn * 100 + 100]:
                ttft.record(value)
                exp.record(value)
            assert provider.force_flush()
        provider.shutdown()
    frame = stored(database)
    assert latest(frame, "requests", model="m") == 6
    assert latest(frame, "requests", model="other") == 30
    assert latest(frame, "queue") == 3
    assert latest(frame, "hw.gpu.power", gpu="0", ecc="true") == 333.25
    for name, bounds in ((TTFT, (0.1, 0.5, 1, 5)), ("exp.latency", exponential_bounds(frame))):
        for bound in bounds:
            text = str(int(bound)) if float(bound).is_integer() else repr(bound)
            assert latest(frame, f"{name}_bucket", le=text) == sum(v <= bound for v in latencies), (name, bound)
        assert latest(frame, f"{name}_bucket", le="+Inf") == latest(frame, f"{name}_count") == 300
        assert latest(frame, f"{name}_sum") == pytest.approx(sum(latencies))
    check_zeros(frame)
    check_rows(database)
    assert {outcome for _, signal, outcome in counts.requests if signal == "metrics"} == {"stored"}


def exponential_bounds(frame: pl.DataFrame) -> list[float]:
    texts = {json.loads(t)["le"] for t in frame.filter(pl.col("name") == "exp.latency_bucket")["labels"]}
    bounds = sorted(float(text) for text in texts - {"+Inf"})
    assert 20 < len(bounds) < 60
    return bounds


def check_zeros(frame: pl.DataFrame) -> None:
    """Every count starts at zero, so that the increase over its samples is what was recorded."""
    for name, grows_to in (("requests", 36), (f"{TTFT}_count", 300), ("exp.latency_count", 300)):
        series = frame.filter(pl.col("name") == name).sort("ts")
        ends = series.group_by("series_id", maintain_order=True).agg(
            pl.col("value").first().alias("first"), pl.col("value").last().alias("last")
        )
        assert ends["first"].to_list() == [0.0] * ends.height
        assert (ends["last"] - ends["first"]).sum() == grows_to


def check_rows(database: Database) -> None:
    rows = {row["name"]: row for row in database.table("metric_series").to_dicts()}
    requests = rows["requests"]
    assert (requests["job"], requests["instance"], requests["service"]) == ("prod/gateway", "gw-1", "gateway")
    labels = json.loads(requests["labels"])
    assert (labels["host"], labels["k8s.pod.name"]) == ("node-7", "gw-abc")
    assert labels["otel_scope_name"] == "client-lib"
    assert "process.pid" not in labels
    assert {name: rows[name]["kind"] for name in ("requests", "queue", f"{TTFT}_sum", "exp.latency_sum")} == {
        "requests": "counter",
        "queue": "gauge",
        f"{TTFT}_sum": "histogram",
        "exp.latency_sum": "exponential_histogram",
    }
    assert (requests["unit"], rows["exp.latency_sum"]["unit"]) == ("request", "s")


@pytest.mark.parametrize("temporality", [AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA])
def test_an_increase_over_a_restart_of_the_receiver_is_what_was_recorded(
    database: Database, submit: Submit, temporality: AggregationTemporality
) -> None:
    with Served(http.create_app(submit)) as url:
        port = int(url.rpartition(":")[2])
        reader = PeriodicExportingMetricReader(exporter("http", f"{url}/v1/metrics", temporality), math.inf)
        provider = MeterProvider([reader])
        requests = provider.get_meter("t").create_counter("requests")
        for _ in range(3):
            requests.add(5)
            assert provider.force_flush()
    with Served(http.create_app(submit), port):
        for _ in range(3):
            requests.add(40)
            assert provider.force_flush()
        provider.shutdown()
    values = stored(database)["value"].to_list()
    increase = sum(b - a if b >= a else b for a, b in pairwise(values))
    assert increase == 135
