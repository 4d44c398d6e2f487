"""OTLP metric bodies to rows: every type, both temporalities, resets, refusals, both encodings."""

import contextlib
import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from collector.otlp.metrics import MetricsDecoder
from collector.push import series as push_series
from collector.push.batch import Pushed
from store.errors import SourceError
from tests.collector.otlp.builders import pairs

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
T0 = int(AT.timestamp())
DELTA, CUMULATIVE = 1, 2
Read = Callable[..., Pushed]


def body(*metrics: Metric, resource: dict[str, Any] | None = None, scope: str = "") -> bytes:
    """Return a request of some metrics under one resource and scope."""
    request = ExportMetricsServiceRequest()
    group = request.resource_metrics.add()
    group.resource.attributes.extend(pairs(resource or {}))
    part = group.scope_metrics.add()
    part.scope.name = scope
    part.metrics.extend(metrics)
    return bytes(request.SerializeToString())


def times(at_s: float, start_s: float | None = None) -> dict[str, int]:
    start = {} if start_s is None else {"start_time_unix_nano": int((T0 + start_s) * 1e9)}
    return {"time_unix_nano": int((T0 + at_s) * 1e9), **start}


def total(value: float, at_s: float, start_s: float | None = 0, *, delta: bool = True, rises: bool = True) -> Metric:
    """Return a sum of one point."""
    metric = Metric(name="c", unit="By")
    metric.sum.aggregation_temporality = DELTA if delta else CUMULATIVE
    metric.sum.is_monotonic = rises
    metric.sum.data_points.add(as_double=value, **times(at_s, start_s))
    return metric


def gauge(value: Any = None, at_s: float = 0, name: str = "g", flags: int = 0, **attributes: Any) -> Metric:
    metric = Metric(name=name)
    given = {"as_int" if isinstance(value, int) else "as_double": value} if value is not None else {}
    metric.gauge.data_points.add(attributes=pairs(attributes), flags=flags, **given, **times(at_s))
    return metric


def explicit(bounds: list[float], counts: list[int], at_s: float, *, delta: bool = True, **fields: Any) -> Metric:
    metric = Metric(name="h", unit="s")
    metric.histogram.aggregation_temporality = DELTA if delta else CUMULATIVE
    fields = {"count": sum(counts), "sum": 1.5} | fields
    metric.histogram.data_points.add(explicit_bounds=bounds, bucket_counts=counts, **fields, **times(at_s, at_s - 1))
    return metric


def exponential(scale: int, offset: int, counts: list[int], at_s: float, **fields: Any) -> Metric:
    metric = Metric(name="e")
    metric.exponential_histogram.aggregation_temporality = DELTA
    point = metric.exponential_histogram.data_points.add(scale=scale, count=sum(counts), **fields, **times(at_s, 0))
    point.positive.offset = offset
    point.positive.bucket_counts.extend(counts)
    return metric


class Store:
    """Takes what a decoder makes, as a store would: the first sample of a series and time stays."""

    def __init__(self) -> None:
        self.decoder = MetricsDecoder()
        self.series: dict[int, dict[str, Any]] = {}
        self.samples: dict[tuple[int, datetime], float | None] = {}

    def take(self, raw: bytes, *, commit: bool = True, at: datetime = AT + timedelta(minutes=5)) -> Pushed:
        pushed = self.decoder.decode_protobuf(raw, at)
        if commit:
            self.commit(pushed)
        return pushed

    def commit(self, pushed: Pushed) -> None:
        for row in pushed.batch.frames.get("metric_series", pl.DataFrame()).iter_rows(named=True):
            self.series.setdefault(row["series_id"], row)
        for series_id, ts, value in pushed.batch.frames.get("metric_samples", pl.DataFrame()).iter_rows():
            self.samples.setdefault((series_id, ts), value)
        self.decoder.committed(pushed)

    def values(self, name: str, **labels: str) -> list[tuple[float, float | None]]:
        """Return (seconds after AT, value) of the series with these labels."""
        ids = [
            i
            for i, row in self.series.items()
            if row["name"] == name and labels.items() <= json.loads(row["labels"]).items()
        ]
        assert len(ids) == 1, (name, labels, [r["labels"] for r in self.series.values()])
        found = [(ts.replace(tzinfo=UTC).timestamp() - T0, v) for (i, ts), v in self.samples.items() if i == ids[0]]
        return sorted((round(at, 3), value) for at, value in found)


def test_deltas_add_up_from_zero_at_the_start() -> None:
    store = Store()
    for i, value in enumerate((5.0, 0.0, 7.0)):
        store.take(body(total(value, 10 * i + 10, 10 * i)))
    assert store.values("c") == [(0, 0), (10, 5), (20, 5), (30, 12)]


def test_a_cumulative_sum_stays_as_it_is_and_each_new_start_is_a_zero() -> None:
    store = Store()
    for value, at_s, start_s in ((5.0, 10, 0), (9.0, 20, 0), (11.0, 40, 35)):
        store.take(body(total(value, at_s, start_s, delta=False)))
    assert store.values("c") == [(0, 0), (10, 5), (20, 9), (35, 0), (40, 11)]


def test_a_delta_that_comes_again_is_added_once_whether_its_commit_failed_or_its_answer_was_lost() -> None:
    for commit in (False, True):
        store = Store()
        first, second = body(total(5, 10, 0)), body(total(3, 20, 10))
        store.take(first, commit=commit)
        store.take(first)
        store.take(second, commit=commit)
        store.take(second)
        assert store.values("c") == [(0, 0), (10, 5), (20, 8)]


def test_a_delta_older_than_the_last_is_refused_and_counted() -> None:
    store = Store()
    store.take(body(total(5, 20, 10)))
    assert store.take(body(total(5, 15, 5))).refused == {"out_of_order": 1}
    store.take(body(total(1, 30, 20)))
    assert store.values("c")[-1] == (30, 6)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e6)), max_size=30))
def test_deltas_of_many_streams_add_up_each_to_its_own_total(points: list[tuple[int, float]]) -> None:
    store = Store()
    sums: dict[int, float] = {}
    for i, (stream, value) in enumerate(points):
        metric = total(value, i + 1, i)
        metric.sum.data_points[0].attributes.extend(pairs({"stream": stream}))
        store.take(body(metric))
        sums[stream] = sums.get(stream, 0.0) + value
    assert {s: store.values("c", stream=str(s))[-1][1] for s in sums} == sums


def test_a_sum_that_may_fall_is_a_gauge_without_a_zero() -> None:
    store = Store()
    store.take(body(total(5, 10, 0, rises=False)))
    store.take(body(total(-2, 20, 10, rises=False)))
    assert store.values("c") == [(10, 5), (20, 3)]
    assert [(row["kind"], row["unit"]) for row in store.series.values()] == [("gauge", "bytes")]


def test_delta_histograms_add_up_and_start_anew_where_bounds_change() -> None:
    store = Store()
    store.take(body(explicit([1, 2], [1, 2, 3], 1)))
    store.take(body(explicit([1, 2], [1, 0, 0], 2)))
    assert store.values("h_bucket", le="1")[-2:] == [(1, 1), (2, 2)]
    assert store.values("h_bucket", le="+Inf") == [(0, 0), (1, 6), (2, 7)]
    assert store.values("h_sum") == [(0, 0), (1, 1.5), (2, 3.0)]
    store.take(body(explicit([1, 4], [2, 2, 0], 10)))
    assert store.values("h_bucket", le="2")[-1] == (10, None)
    assert store.values("h_bucket", le="4") == [(9, 0), (10, 4)]
    assert store.values("h_count")[-2:] == [(9, 0), (10, 4)]


def test_cumulative_histograms_and_ones_without_bounds_or_sum() -> None:
    store = Store()
    store.take(body(explicit([0.5], [1, 2], 1, delta=False)))
    assert store.values("h_bucket", le="0.5")[-1] == (1, 1)
    bare = explicit([], [], 2, delta=False, count=4)
    bare.name = "bare"
    bare.histogram.data_points[0].ClearField("sum")
    store.take(body(bare))
    assert store.values("bare_count")[-1] == (2, 4)
    assert "bare_sum" not in {row["name"] for row in store.series.values()}


@given(st.lists(st.lists(st.floats(0.001, 1000), min_size=1, max_size=20), min_size=1, max_size=5), st.data())
def test_exponential_histograms_of_changing_scale_count_every_value_once(turns: list[list[float]], data: Any) -> None:
    store, all_values = Store(), []
    for i, values in enumerate(turns):
        scale = data.draw(st.integers(0, 6))
        indexes = [math.ceil(math.log2(v) * 2**scale) - 1 for v in values]
        counts = [indexes.count(at) for at in range(min(indexes), max(indexes) + 1)]
        store.take(body(exponential(scale, min(indexes), counts, i + 1)))
        all_values += values
        for row in list(store.series.values()):
            if row["name"] != "e_bucket":
                continue
            le = json.loads(row["labels"])["le"]
            at, value = store.values("e_bucket", le=le)[-1]
            near = [v for v in all_values if math.isclose(v, float(le), rel_tol=1e-9)]
            below = sum(v <= float(le) for v in all_values)
            assert value is None or (at == i + 1 and abs(value - below) <= len(near))


def test_zero_and_negative_buckets_count() -> None:
    metric = exponential(0, 0, [4], 1, zero_count=3, zero_threshold=0.25)
    point = metric.exponential_histogram.data_points[0]
    point.negative.offset = 1
    point.negative.bucket_counts.extend([2])
    point.count = 9
    store = Store()
    store.take(body(metric))
    found = {
        json.loads(row["labels"])["le"]: store.values("e_bucket", le=json.loads(row["labels"])["le"])[-1][1]
        for row in store.series.values()
        if row["name"] == "e_bucket"
    }
    assert found == {"-4": 0, "-2": 2, "0.25": 5, "1": 5, "2": 9, "+Inf": 9}


def test_summaries_keep_their_quantiles() -> None:
    metric = Metric(name="s")
    point = metric.summary.data_points.add(count=10, sum=5.5, **times(0))
    point.quantile_values.add(quantile=0.99, value=1.25)
    point.quantile_values.add(quantile=1, value=2.5)
    store = Store()
    store.take(body(metric))
    assert store.values("s", quantile="0.99") == [(0, 1.25)]
    assert store.values("s", quantile="1") == [(0, 2.5)]
    assert (store.values("s_count"), store.values("s_sum")) == ([(0, 10)], [(0, 5.5)])


def test_no_recorded_value_ends_every_series_of_the_stream() -> None:
    store = Store()
    store.take(body(explicit([1], [1, 1], 1, delta=False)))
    ended = explicit([], [], 2, delta=False, flags=1)
    pushed = store.take(body(ended))
    assert pushed.batch.drops == {}
    for name in ("h_count", "h_sum"):
        assert store.values(name)[-1] == (2, None)
    assert store.values("h_bucket", le="1")[-1] == (2, None)


def test_a_nan_is_null_and_counted_and_a_point_without_value_is_refused() -> None:
    pushed = Store().take(body(gauge(math.nan), gauge(None, name="none")))
    assert pushed.batch.frames["metric_samples"]["value"].to_list() == [None]
    assert pushed.batch.drops == {"not_a_number": 1, "no_value": 1}
    assert pushed.refused == {"no_value": 1}


def test_labels_come_from_resource_scope_and_point() -> None:
    resource = {
        "service.name": "llm",
        "service.instance.id": "i1",
        "host.name": "n1",
        "cloud.region": "eu",
        "os.type": "x",
    }
    attributes = {"gpu": 3, "ok": True, "f": 0.5, "list": ["a", 1], "service": "mine", "empty": ""}
    store = Store()
    store.take(body(gauge(1, **attributes), resource=resource, scope="lib"))
    (row,) = store.series.values()
    assert json.loads(row["labels"]) == {
        "job": "llm",
        "instance": "i1",
        "service": "llm",
        "host": "n1",
        "cloud.region": "eu",
        "otel_scope_name": "lib",
        "gpu": "3",
        "ok": "true",
        "f": "0.5",
        "list": '["a",1]',
        "exported_service": "mine",
    }
    assert (row["job"], row["instance"], row["service"]) == ("llm", "i1", "llm")


def test_a_name_that_a_preset_knows_is_canonical_and_its_unit_is_the_presets() -> None:
    metric = gauge(0.5, name="vllm:kv_cache_usage_perc")
    metric.unit = "percent"
    store = Store()
    store.take(body(metric, gauge(2, name="own")))
    rows = {row["name"]: (row["canonical"], row["unit"]) for row in store.series.values()}
    assert rows == {"vllm:kv_cache_usage_perc": ("kv_cache_usage_ratio", "ratio"), "own": (None, None)}


def bad_temporality() -> Metric:
    metric = total(1, 1)
    metric.sum.aggregation_temporality = 0
    return metric


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (gauge(1.0, name=""), "no_name"),
        (Metric(name="x"), "no_data"),
        (bad_temporality(), "no_temporality"),
        (gauge(1.0, at_s=7200), "time_out_of_range"),
        (gauge(1.0, at_s=-T0), "time_out_of_range"),
        (explicit([2, 1], [1, 1, 1], 1), "invalid_histogram"),
        (explicit([1, 2], [1, 1], 1), "invalid_histogram"),
        (exponential(99, 0, [1], 1), "invalid_histogram"),
    ],
)
def test_a_point_that_cannot_be_stored_is_counted_and_the_others_stay(metric: Metric, reason: str) -> None:
    pushed = Store().take(body(metric, gauge(1.0, name="good")))
    assert pushed.refused == {reason: 1}
    assert pushed.batch.frames["metric_series"]["name"].to_list() == ["good"]


def test_invalid_utf_8_is_replaced_and_costs_nothing_else() -> None:
    raw = body(gauge(1, name="g_BAD", label="BAD")).replace(b"BAD", b"\xff\xfe\xfd")
    store = Store()
    store.take(raw)
    (row,) = store.series.values()
    assert row["name"] == "g_\ufffd\ufffd\ufffd"
    assert json.loads(row["labels"]) == {"label": "\ufffd\ufffd\ufffd"}


def test_json_and_protobuf_give_the_same_rows() -> None:
    raw = body(gauge(3, a="x"), total(5, 10, 0), explicit([1], [1, 2], 5), resource={"service.name": "s"})
    as_json = json.dumps(MessageToDict(ExportMetricsServiceRequest.FromString(raw))).encode()
    one, other = MetricsDecoder().decode_protobuf(raw, AT), MetricsDecoder().decode_json(as_json, AT)
    for name, frame in one.batch.frames.items():
        by = ["series_id", *(["ts"] if name == "metric_samples" else [])]
        assert frame.sort(by).equals(other.batch.frames[name].sort(by))


def test_the_published_example_in_json(shared: Path) -> None:
    raw = (shared / "data/otlp_json/opentelemetry-proto_metrics.json").read_bytes()
    pushed = MetricsDecoder().decode_json(raw, AT)
    assert pushed.batch.drops == {}
    joined = pushed.batch.frames["metric_samples"].join(pushed.batch.frames["metric_series"], on="series_id")
    found = {(name, json.loads(text).get("le")): v for name, text, v in joined.select("name", "labels", "value").rows()}
    assert found["my.counter", None] == 5
    assert found["my.gauge", None] == 10
    assert (found["my.histogram_bucket", "1"], found["my.histogram_count", None]) == (1, 2)
    assert set(joined["service"]) == {"my.service"}


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b'{"resourceSpans": []}', b'{"resource_metrics": []}', b'{"resourceMetrics": 3}', b"\xff"]
)
def test_json_that_is_no_metrics_request_is_refused(raw: bytes) -> None:
    with pytest.raises(SourceError, match="not an OTLP metrics request in JSON"):
        MetricsDecoder().decode_json(raw, AT)


def test_protobuf_that_is_no_metrics_request_is_refused() -> None:
    with pytest.raises(SourceError, match="not an OTLP metrics request in protobuf"):
        MetricsDecoder().decode_protobuf(b"\xff\xff", AT)


def test_series_rows_are_sent_until_they_are_stored() -> None:
    store = Store()
    raw = body(gauge(1))
    assert "metric_series" in store.take(raw, commit=False).batch.frames
    assert "metric_series" in store.take(raw).batch.frames
    assert "metric_series" not in store.take(raw).batch.frames


@given(st.binary(max_size=8), st.integers(0, 300))
def test_a_body_with_changed_bytes_is_read_or_refused(noise: bytes, at: int) -> None:
    raw = body(gauge(1, a="x"), total(5, 10), explicit([1], [1, 2], 5), exponential(2, 0, [1, 2], 5))
    at %= len(raw)
    with contextlib.suppress(SourceError):
        MetricsDecoder().decode_protobuf(raw[:at] + noise + raw[at + len(noise) :], AT)


def test_silent_streams_are_forgotten_and_start_again_from_zero() -> None:
    store = Store()
    store.take(body(total(5, 10, 0)))
    later = AT + timedelta(hours=2)
    store.take(body(gauge(1, at_s=7200)), at=later)
    store.take(body(total(3, 7210, 7200)), at=later + timedelta(minutes=2))
    assert store.values("c") == [(0, 0), (10, 5), (7200, 0), (7210, 3)]


def test_streams_beyond_the_most_series_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push_series, "MOST_SERIES", 1)
    store = Store()
    assert store.take(body(gauge(1), gauge(1, name="more"))).refused == {"too_many_series": 1}
    assert store.take(body(gauge(2, at_s=1))).refused == {}
