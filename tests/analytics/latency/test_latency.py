"""Segments, tails, cold starts and waiting: known truth, recordings, and refusals in words."""

import json
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics.latency import QUEUED, WAIT
from analytics.latency.load import bins
from analytics.latency.names import SEGMENTS
from analytics.latency.segments import ratio_limits
from analytics.result import Status
from collector.files import ImportOptions
from collector.otlp.decode import decode_protobuf
from collector.probe import timeline
from collector.prometheus.series import to_batch
from collector.prometheus.text import parse
from store.database import Database
from store.window import Window
from tests.analytics.frames_of import START, lines, times
from tests.analytics.latency.traces import REQUEST, answer, frame, node, run, segment, stored, summaries

DAY = Window(datetime(2022, 9, 11, tzinfo=UTC), datetime(2022, 9, 12, 1, tzinfo=UTC))


def engine(number: int, start: float, queue: float, prefill: float, decode: float, **more: Any) -> dict[str, Any]:
    """A request that an engine states the stages of; 10 ms are nobody's."""
    parts = {"queue_s": queue, "prefill_s": prefill, "decode_s": decode, "ttft_s": queue + prefill}
    whole = queue + prefill + decode + 0.01
    named = {"trace_id": f"{number:032x}", "e2e_s": whole} | REQUEST | parts | more
    return node(f"s{number}", None, start, whole, **named)


def words(notes: tuple[str, ...]) -> str:
    return "\n".join(notes)


def test_segments_of_every_request_add_up_to_its_time() -> None:
    rng = np.random.default_rng(1)
    made = [engine(i, i, *rng.exponential((2.0, 0.2, 3.0))) for i in range(500)]
    result = run(frame(made))
    shares = result.frames["segments"].filter(pl.col("segment") != "e2e")
    assert shares["share"].sum() == pytest.approx(1.0)
    assert shares["share_of_p99"].sum() == pytest.approx(1.0)
    queue = segment(result, "queue")
    values = np.array([n["queue_s"] for n in made])
    whole = np.array([n["e2e_s"] for n in made])
    slow = whole >= np.sort(whole)[-5]
    assert queue["n"] == 500
    assert queue["p50_s"] == pytest.approx(np.median(values))
    assert queue["p99_s"] == pytest.approx(np.quantile(values, 0.99))
    assert queue["cv"] == pytest.approx(values.std(ddof=1) / values.mean())
    assert queue["share_of_p99"] == pytest.approx(values[slow].sum() / whole[slow].sum())
    assert queue["n_tail"] == 5


def test_a_client_beyond_its_engine_is_transfer_and_the_connection_is_its_own() -> None:
    nodes = [
        node("c", None, 0, 3.0, kind="client", e2e_s=3.0, ttft_s=1.5, **REQUEST),
        node(timeline.DNS, "c", 0.0, 0.1),
        node(timeline.CONNECT, "c", 0.1, 0.05),
        node(timeline.TLS, "c", 0.15, 0.15),
        node(
            "e", "c", 0.4, 2.5, kind="server", service="b",
            queue_s=0.5, prefill_s=0.5, decode_s=1.4, ttft_s=1.05, e2e_s=2.5, **REQUEST,
        ),
    ]  # fmt: skip
    found = {row["segment"]: row["p50_s"] for row in run(frame(nodes)).frames["segments"].iter_rows(named=True)}
    wanted = {"dns": 0.1, "tcp": 0.05, "tls": 0.15, "queue": 0.5, "prefill": 0.5, "decode": 1.4, "transfer": 0.2}
    assert found == pytest.approx(wanted | {"other": 0.1, "e2e": 3.0})


def test_a_client_alone_tells_the_first_token_and_the_rest() -> None:
    result = run(frame([node("c", None, 0, 3.0, kind="client", e2e_s=3.0, ttft_s=1.5, **REQUEST)]))
    found = dict(result.frames["segments"].select("segment", "p50_s").iter_rows())
    assert found == pytest.approx({"first_token": 1.5, "decode": 1.5, "e2e": 3.0})


def test_stage_spans_of_parallel_ranks_count_once_and_the_queue_leaves_the_prefill() -> None:
    whole = {"quality": "queue_in_prefill"}
    nodes = [
        node("r", None, 0, 3.0, e2e_s=3.0, prefill_s=1.2, queue_s=0.5, decode_s=1.7, **whole, **REQUEST),
        *(node(f"rank{i}", "r", 0.1, 2.8, id=i) for i in range(4)),
        *(node(f"w{i}", f"rank{i}", 0.1, 0.5) | {"name": "prefill_waiting"} for i in range(4)),
        *(node(f"l{i}", f"rank{i}", 0.1, 0.2) | {"name": "tokenize"} for i in range(4)),
    ]  # fmt: skip
    found = dict(run(frame(nodes)).frames["segments"].select("segment", "p50_s").iter_rows())
    assert found["queue"] == pytest.approx(0.5)
    assert found["prefill"] == pytest.approx(0.7)
    assert found["transfer"] == pytest.approx(0.2)


def test_parts_that_exceed_the_whole_are_said_and_shrunk_for_the_shares() -> None:
    made = [engine(i, i, 1.0, 1.0, 1.0) | {"e2e_s": 2.0, "duration_s": 2.0} for i in range(30)]
    result = run(frame(made))
    assert segment(result, "queue")["share_of_p99"] == pytest.approx(1 / 3)
    assert "in 30 requests the segments exceed the whole" in words(result.notes)


def test_failed_requests_are_left_out_and_counted() -> None:
    made = [engine(i, i, 0.1, 0.1, 0.1, status="error" if i < 3 else "ok") for i in range(30)]
    result = run(frame(made))
    assert segment(result, "e2e")["n"] == 27
    assert "3 failed requests" in words(result.notes)


def test_few_requests_have_no_p99_and_fewer_have_no_tail() -> None:
    result = run(frame([engine(i, i, 0.1, 0.1, 0.1) for i in range(30)]))
    assert segment(result, "queue")["p99_s"] is None
    assert segment(result, "queue")["n_tail"] == 30  # all alike: all are at the quantile
    assert "a P99 needs 100" in words(result.notes)
    few = run(frame([engine(i, i, 0.1, 0.1, 0.1) for i in range(5)]))
    assert segment(few, "queue")["share_of_p99"] is None
    assert "need 20" in words(few.notes)


def test_requests_that_nothing_divides_are_said() -> None:
    made = [node(f"s{i}", None, i, 1.0, trace_id=str(i), e2e_s=1.0, **REQUEST) for i in range(30)]
    assert "nothing says how its requests spend their time" in words(run(frame(made)).notes)


def test_the_interval_of_a_share_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        whole = 10 + rng.exponential(2.0, 40)
        part = whole * rng.beta(6, 3, 40)
        _, low, high = ratio_limits(part, whole)
        assert low is not None
        assert high is not None
        inside += low <= 2 / 3 <= high
    assert 0.9 <= inside / 400 <= 0.98


def test_waiting_behind_a_burst_is_found_and_calm_traffic_is_not() -> None:
    rng = np.random.default_rng(2)
    calm = [engine(i, i, rng.exponential(0.01), 0.1, 1.0) for i in range(400)]
    assert run(frame(calm)).findings == ()
    burst = [engine(1000 + i, 300 + i * 0.01, 20 + rng.exponential(1.0), 0.1, 1.0) for i in range(20)]
    result = run(frame(calm + burst))
    (finding,) = result.findings
    assert finding.trigger == QUEUED.name
    assert 270 <= (finding.since - START.replace(tzinfo=UTC)).total_seconds() <= 300
    assert finding.until is not None
    assert result.samples[WAIT.name]["value"][0] < 0.2
    lasting = run(frame([n for n in calm + burst if n["at"] < 302]))
    assert [f.until for f in lasting.findings] == [None]
    assert lasting.findings[0].value == lasting.samples[WAIT.name]["value"][0]
    assert set(finding.evidence["trace_ids"]) <= {n["trace_id"] for n in burst}


def test_a_queue_that_is_all_of_a_request_is_no_alarm() -> None:
    rng = np.random.default_rng(3)
    waits = enumerate(rng.exponential(1, 500))
    made = [node(f"s{i}", None, i, q, trace_id=str(i), e2e_s=q, queue_s=q, **REQUEST) for i, q in waits]
    assert run(frame(made)).findings == ()


def test_waiting_that_grows_faster_than_the_load_has_a_bend_and_a_proportional_one_has_none() -> None:
    rng = np.random.default_rng(4)
    window = Window(START.replace(tzinfo=UTC), (START + timedelta(seconds=36_000)).replace(tzinfo=UTC))
    load = rng.uniform(0.1, 0.9, 600)
    for wait, verdict in ((load / (1 - load), "grows faster than the load"), (2 * load, "no bend found")):
        at = [60 * i + 60 * k / 50 for i, rho in enumerate(load) for k in range(round(rho * 50))]
        queue = [w * rng.gamma(20) / 20 for rho, w in zip(load, wait, strict=True) for _ in range(round(rho * 50))]
        rows = pl.DataFrame({"ts": times(at), "queue": queue})
        made, growth = bins(rows, window, timedelta(seconds=60))
        assert growth is not None
        assert growth["verdict"] == verdict
        assert len(made) == 10
        assert [row["rate_low"] for row in made] == sorted(row["rate_low"] for row in made)


def test_where_keeps_the_traces_of_the_requests_asked_for_whole() -> None:
    nodes = [
        node("c1", None, 0, 3.0, trace_id="1", service="x", e2e_s=3.0, **REQUEST),
        node("e1", "c1", 1, 1.0, trace_id="1", service="b"),
        node("c2", None, 0, 3.0, trace_id="2", service="y", e2e_s=3.0, **REQUEST),
    ]
    where = (("service", "x"),)
    result = run(frame(nodes, where=where), where=where)
    rows = result.frames["critical_path"].select("entry", "service", "self_s").rows()
    assert rows == [("x", "x", 2.0), ("x", "b", 1.0)]
    assert result.frames["segments"]["service"].unique().to_list() == ["x"]


def test_the_first_request_after_a_start_is_compared_with_the_others() -> None:
    made = [engine(i, 10 * i, 0.0, 0.1, 9.0 if i == 20 else 0.5) for i in range(40)]
    origin = START.replace(tzinfo=UTC).timestamp()
    loads = summaries(
        [
            {
                "name": "process_start_time_seconds", "service": "a", "series_id": 1,
                "first": origin - 5000, "last": origin + 195, "increase": 0.0, "first_ts": START, "last_ts": START,
            }
        ]
    )  # fmt: skip
    from analytics.latency.cold import cold_rows

    spans = frame(made)
    (row,) = cold_rows(spans, spans.with_columns(pl.lit(None, pl.String).alias("faas.coldstart")), loads)
    assert (row["kind"], row["n"]) == ("first request after a start", 1)
    assert row["p50_s"] == pytest.approx(9.11)
    assert row["usual_s"] == pytest.approx(0.61)


def test_production_latencies_queues_and_loads_come_out_right(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "alibaba_gentd26"

    def options(field: str, **labels: str) -> ImportOptions:
        from collector.files.options import FileKind

        mapping = {"ts": "timestamp_anon"} | dict.fromkeys(field.split(), "value")
        units = dict.fromkeys(field.split(), "ms")
        return ImportOptions(kind=FileKind.REQUESTS, mapping=mapping, units=units, labels=labels)

    files = [
        (folder / "pipeline_inference_data_anon.parquet", options("e2e_s", service="pipeline")),
        (folder / "queue_rt_raw_anon.parquet", options("queue_s e2e_s", service="gateway")),
        (folder / "basemodel_update_latency_anon.parquet", options("duration_s", operation="base_model_load")),
    ]
    with stored(tmp_path, files) as database:
        result = answer(database, DAY)
    rows = {(r["service"], r["segment"]): r for r in result.frames["segments"].iter_rows(named=True)}
    whole, queue = rows["pipeline", "e2e"], rows["gateway", "queue"]
    assert (whole["n"], whole["p50_s"], round(whole["p99_s"], 4)) == (34_421, 15.132, 70.5558)
    assert (queue["n"], queue["p50_s"], round(queue["p99_s"], 5)) == (23_478, 0.203, 0.62723)
    (load,) = result.frames["cold_starts"].rows(named=True)
    assert (load["n"], load["p50_s"], load["p90_s"], round(load["p99_s"], 4)) == (7_531, 22.718, 41.988, 51.8464)
    assert result.findings == ()  # the queue is all that is known of those requests


def test_a_trace_in_two_formats_has_one_critical_path(shared: Path, tmp_path: Path) -> None:
    found = []
    for name in ("in", "out"):
        file = shared / "data" / "otlp_json" / f"jaeger-ui_otlp2jaeger-{name}.json"
        with stored(tmp_path / name, [(file, ImportOptions())]) as database:
            window = Window(datetime(2024, 1, 31, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC))
            found.append(answer(database, window).frames["critical_path"].to_dicts())
    assert found[0] == found[1]
    assert found[0][0]["self_s"] == 0.000123
    assert found[0][0]["span"] == "okey-dokey-0"


def test_an_access_log_divides_requests_into_load_balancer_and_upstream(shared: Path, tmp_path: Path) -> None:
    file = shared / "data" / "alb_access_log" / "conversem_alb_edge_cases.log"
    with stored(tmp_path, [(file, ImportOptions())]) as database:
        result = answer(database, Window(datetime(2024, 1, 15, tzinfo=UTC), datetime(2024, 1, 16, tzinfo=UTC)))
    assert segment(result, "upstream")["p50_s"] == 0.002
    assert segment(result, "transfer")["n"] == 3  # -1 is no time, and a failed request none either


@pytest.fixture(scope="module")
def recording(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """The recording of a real engine: what clients and the engine say of each request, and the engine's metrics."""
    folder = shared / "data" / "vllm_real"
    database = stored(tmp_path_factory.mktemp("store"), [(folder / "client.jsonl.gz", ImportOptions())])
    database.append([decode_protobuf(b64decode(body["body_b64"])) for body in lines(folder / "otlp_traces.jsonl.gz")])
    pages = lines(folder / "vllm_metrics.jsonl.gz")
    target = {"job": "vllm", "instance": "127.0.0.1:8000"}
    database.append(
        [
            to_batch("test", parse(page["text"].encode()), datetime.fromtimestamp(page["ts_ms"] / 1000, UTC), target)
            for page in (pages[0], pages[-1])
        ]
    )
    return database


WHOLE = Window(datetime(2026, 11, 30, 16, 18, tzinfo=UTC), datetime(2026, 11, 30, 16, 30, tzinfo=UTC))


def test_a_real_tail_is_the_engines_queue(recording: Database, shared: Path) -> None:
    result = answer(recording, WHOLE)
    queues: dict[str, float] = {}
    for body in lines(shared / "data" / "vllm_real" / "otlp_traces.jsonl.gz"):
        spans = decode_protobuf(b64decode(body["body_b64"])).frames["spans"]
        queues |= dict(spans.select("trace_id", "queue_s").iter_rows())
    client = [r for r in lines(shared / "data" / "vllm_real" / "client.jsonl.gz") if r["status"] == 200]
    whole = sorted(((r["duration_us"] / 1e6, queues.get(r["trace_id"], 0.0)) for r in client), reverse=True)
    tail = whole[:16]
    row = segment(result, "queue")
    assert row["n_tail"] == 16
    assert row["share_of_p99"] == pytest.approx(sum(q for _, q in tail) / sum(w for w, _ in tail), rel=1e-6)
    assert row["share_low"] > 0.7
    assert segment(result, "transfer")["p50_s"] == pytest.approx(0.0087, abs=5e-4)
    assert [f.trigger for f in result.findings] == [QUEUED.name] * 2  # the burst; long prompts, and the noisy neighbour
    assert [f.until is None for f in result.findings] == [False, False]
    assert "47 of 1505 requests have no engine's view" in words(result.notes)


def test_a_real_calm_hour_gives_no_alarm(recording: Database) -> None:
    calm = Window(datetime(2026, 11, 30, 16, 18, 25, tzinfo=UTC), datetime(2026, 11, 30, 16, 19, 40, tzinfo=UTC))
    assert answer(recording, calm).findings == ()


def test_histograms_of_an_engine_agree_with_its_spans_within_their_buckets(recording: Database) -> None:
    result = answer(recording, WHOLE)
    rows = {row["stage"]: row for row in result.frames["engine_stages"].iter_rows(named=True)}
    tail = segment(result, "queue")["p99_s"]
    assert rows["queue"]["p99_low_s"] <= tail <= rows["queue"]["p99_high_s"]
    assert (rows["queue"]["p50"], rows["queue"]["p50_s"]) == ("<= 0.3 s", None)
    assert rows["decode"]["p99_low_s"] <= segment(result, "decode")["p99_s"] <= rows["decode"]["p99_high_s"]


def test_beyond_the_last_bucket_a_stage_says_so(tmp_path: Path) -> None:
    with Database(tmp_path) as database:
        for minute, n in ((0, 0), (5, 100)):
            page = f"""# TYPE vllm:request_queue_time_seconds histogram
vllm:request_queue_time_seconds_bucket{{le="30"}} {n // 4}
vllm:request_queue_time_seconds_bucket{{le="+Inf"}} {n}
vllm:request_queue_time_seconds_count {n}
vllm:request_queue_time_seconds_sum {n * 200}
"""
            at = START.replace(tzinfo=UTC) + timedelta(minutes=minute)
            database.append([to_batch("test", parse(page.encode()), at, {"job": "e", "instance": "i:1"})])
        result = answer(database, Window(START.replace(tzinfo=UTC), START.replace(tzinfo=UTC) + timedelta(hours=1)))
    (row,) = result.frames["engine_stages"].rows(named=True)
    assert (row["stage"], row["n"], row["p99"], row["p99_s"]) == ("queue", 100.0, "> 30 s", None)
    assert result.status is Status.OK


def test_segments_are_declared_once() -> None:
    assert len(set(SEGMENTS)) == len(SEGMENTS)
    assert json.dumps(SEGMENTS)
