"""One process, end to end: real exporters in, rows out, commands beside it, killed and restarted."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

from store.database import Database
from tests.infractl.serving import Served, command_line, environment, replaying, serving, wait_for
from tests.rules.servers import free_port

VLLM_PAGE = b"""# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 7.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with replaying([VLLM_PAGE]) as target:
        config = f"""
scrape_configs:
- job_name: vllm
  scrape_interval: 500ms
  static_configs: [{{targets: ['{target}'], labels: {{service: chat}}}}]
- job_name: gone
  scrape_interval: 500ms
  static_configs: [{{targets: ['127.0.0.1:{free_port()}']}}]
analyses:
  overview: {{every: 1s, since: 1h}}
  p99: {{every: 1s, since: 1h}}
"""
        with serving(tmp_path_factory.mktemp("serve"), config) as running:
            yield running


def send(exporter: SpanExporter, count: int, service: str) -> None:
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    for _ in range(count):
        with tracer.start_as_current_span("chat m") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.usage.input_tokens", 10)
            span.set_attribute("gen_ai.response.time_to_first_chunk", 0.2)
    provider.shutdown()


def test_spans_of_a_real_sdk_over_http_and_grpc_are_stored(served: Served):
    send(HttpExporter(endpoint=f"http://127.0.0.1:{served.otlp_http}/v1/traces"), 5, "by-http")
    send(GrpcExporter(endpoint=f"127.0.0.1:{served.otlp_grpc}", insecure=True), 4, "by-grpc")
    query = """SELECT service, count(*) n, sum(input_tokens)::BIGINT t, max(ttft_s) s
               FROM spans WHERE operation = 'chat' GROUP BY 1 ORDER BY 1"""
    assert served.sql(query) == [
        {"service": "by-grpc", "n": 4, "t": 40, "s": 0.2},
        {"service": "by-http", "n": 5, "t": 50, "s": 0.2},
    ]


def test_a_scraped_page_is_stored_under_raw_and_canonical_name(served: Served):
    query = """SELECT DISTINCT name, canonical, service, value FROM metric_samples JOIN metric_series USING (series_id)
               WHERE canonical IN ('requests_waiting', 'kv_cache_usage_ratio') AND value IS NOT NULL ORDER BY name"""
    rows = wait_for(lambda: served.sql(query))
    assert rows == [
        {"name": "vllm:kv_cache_usage_perc", "canonical": "kv_cache_usage_ratio", "service": "chat", "value": 0.25},
        {"name": "vllm:num_requests_waiting", "canonical": "requests_waiting", "service": "chat", "value": 7.0},
    ]


def test_a_target_that_does_not_answer_is_up_0_and_named_in_status(served: Served):
    query = """SELECT job, max(value) up FROM metric_samples JOIN metric_series USING (series_id)
               WHERE name = 'up' GROUP BY 1 ORDER BY 1"""
    wait_for(lambda: served.sql(query) == [{"job": "gone", "up": 0.0}, {"job": "vllm", "up": 1.0}])
    status = httpx.get(served.url + "/api/v1/status", trust_env=False).json()
    health = {t["job"]: t for t in status["targets"]}
    assert health["gone"]["up"] is False
    assert health["gone"]["last_error"]


def test_node_exporter_is_scraped_for_real(tmp_path: Path):
    binary = shutil.which("prometheus-node-exporter")
    if binary is None:
        pytest.skip("prometheus-node-exporter is not installed (Debian package of that name)")
    port = free_port()
    exporter = subprocess.Popen([binary, f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
    config = f"""
scrape_configs:
- job_name: node
  scrape_interval: 500ms
  static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""
    try:
        with serving(tmp_path, config) as running:
            query = """SELECT count(DISTINCT series_id) n FROM metric_samples JOIN metric_series USING (series_id)
                       WHERE job = 'node' AND name LIKE 'node_%'"""
            wait_for(lambda: running.sql(query)[0]["n"] > 200)
            boot = running.sql("""SELECT max(value) v FROM metric_samples JOIN metric_series USING (series_id)
                                  WHERE name = 'node_boot_time_seconds'""")[0]["v"]
        stat = Path("/proc/stat").read_text()
        assert boot == float(stat.split("btime ")[1].split()[0])
    finally:
        exporter.kill()
        exporter.wait()


def test_commands_work_beside_the_server(served: Served):
    done = served.cli("analyze", "overview", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert '"analysis":"overview"' in done.stdout
    assert f"server {served.url}" in served.cli("status").stdout
    done = served.cli("sql", "DROP TABLE spans")
    assert (done.returncode, done.stdout) == (2, "")
    done = served.cli("export", "metric_series", "--output", "series.parquet")
    assert done.returncode == 0, done.stderr


def test_import_goes_through_the_server(served: Served, tmp_path: Path):
    file = tmp_path / "requests.csv"
    file.write_text("ts,ttft_s,service\n2026-11-30T10:00:00Z,0.5,imported\n2026-11-30T10:00:01Z,0.7,imported\n")
    for _ in range(2):
        done = served.cli("import", str(file), "--as", "requests")
        assert done.returncode == 0, done.stderr
    assert served.sql("SELECT count(*) n FROM spans WHERE service='imported'") == [{"n": 2}]


def test_metrics_page_is_valid_and_fresh(served: Served):
    from prometheus_client.parser import text_string_to_metric_families

    def page() -> dict[str, float]:
        text = httpx.get(served.url + "/metrics", trust_env=False).text
        return {s.name + str(s.labels): s.value for f in text_string_to_metric_families(text) for s in f.samples}

    key = "infractl_analysis_last_success_timestamp_seconds{'analysis': 'overview'}"
    wait_for(lambda: time.time() - page().get(key, 0) < 10)


def test_its_own_work_is_traced_into_its_own_store(served: Served):
    query = "SELECT DISTINCT name, operation FROM spans WHERE service = 'infractl' ORDER BY 1"
    rows = wait_for(lambda: served.sql(query))
    assert {"name": "analysis overview", "operation": None} in rows


def test_its_own_traces_go_to_an_endpoint_when_one_is_given(tmp_path: Path):
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    from collector.otlp.decode import decode_protobuf

    names: set[str] = set()

    class Sink(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            batch = decode_protobuf(self.rfile.read(int(self.headers["Content-Length"])))
            names.update(batch.frames["spans"]["name"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    sink = HTTPServer(("127.0.0.1", 0), Sink)
    Thread(target=sink.serve_forever, daemon=True).start()
    config = f"telemetry: {{endpoint: 'http://127.0.0.1:{sink.server_port}/v1/traces'}}\n"
    try:
        with serving(tmp_path, config) as running:
            wait_for(lambda: {"analysis overview", "analysis p99"} <= names)
            assert running.sql("SELECT count(*) n FROM spans") == [{"n": 0}]
    finally:
        sink.shutdown()


def test_a_second_server_on_the_same_data_or_port_is_refused(served: Served, tmp_path: Path):
    def refused(*args: str) -> tuple[int, str]:
        done = subprocess.run(
            command_line("serve", *args), cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stderr

    code, words = refused("--data", str(served.data), "--port", "0")
    assert code == 3
    assert f"in use by process {served.process.pid}" in words
    code, words = refused("--data", str(tmp_path / "d"), "--port", str(served.port))
    assert code == 4
    assert f"127.0.0.1:{served.port}" in words
    assert "--port" in words


def test_malformed_protobuf_is_a_400_and_stores_nothing(served: Served):
    before = served.sql("SELECT count(*) n FROM spans WHERE service != 'infractl'")
    answer = httpx.post(
        f"http://127.0.0.1:{served.otlp_http}/v1/traces",
        content=b"\xff\xff\xff not protobuf",
        headers={"Content-Type": "application/x-protobuf"},
        trust_env=False,
    )
    assert answer.status_code == 400
    assert served.sql("SELECT count(*) n FROM spans WHERE service != 'infractl'") == before
    page = httpx.get(served.url + "/metrics", trust_env=False).text
    assert 'infractl_received_requests_total{outcome="malformed",protocol="http",signal="traces"} 1.0' in page
    assert "malformed" in served.cli("status").stdout


def test_a_form_of_a_web_page_is_no_request_to_the_api(served: Served):
    for path in ("/api/v1/sql", "/api/v1/append"):
        answer = httpx.post(served.url + path, content=b"x", headers={"Content-Type": "text/plain"}, trust_env=False)
        assert answer.status_code == 400
        assert "takes application/" in answer.json()["error"]


def otlp_body(first: int, count: int) -> bytes:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    start = int(datetime(2026, 11, 30, 9, tzinfo=UTC).timestamp()) * 10**9
    for i in range(first, first + count):
        at = start + i * 10**6
        span = spans.add(trace_id=(i + 1).to_bytes(16), span_id=(i + 1).to_bytes(8), name="r")
        span.start_time_unix_nano, span.end_time_unix_nano = at, at + 10
    return request.SerializeToString()


def test_killed_with_9_during_ingest_it_loses_nothing_acknowledged_and_a_retry_doubles_nothing(tmp_path: Path):
    import threading

    size, senders, acknowledged, tried = 200, 4, [], []
    with serving(tmp_path) as running:
        url = f"http://127.0.0.1:{running.otlp_http}/v1/traces"
        headers = {"Content-Type": "application/x-protobuf"}

        def sender(number: int) -> None:
            with httpx.Client(trust_env=False, timeout=10) as client:
                for batch in range(number, 4000, senders):
                    tried.append(batch)
                    try:
                        answer = client.post(url, content=otlp_body(batch * size, size), headers=headers)
                    except httpx.HTTPError:
                        return
                    if answer.status_code == 200:
                        acknowledged.append(batch)

        threads = [threading.Thread(target=sender, args=(n,)) for n in range(senders)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(acknowledged) >= 20, 60)
        running.kill()
        for thread in threads:
            thread.join(30)
    acked, sent = set(acknowledged), set(tried)
    assert len(acked) >= 20
    assert sent - acked, "the kill must fall into requests under way"
    with Database(tmp_path / "data") as database:
        ids = database.sql("SELECT trace_id FROM spans WHERE service IS NULL").column(0).to_pylist()
    stored = {int(i, 16) - 1 for i in ids}
    assert len(stored) == len(ids)
    assert {b * size + i for b in acked for i in range(size)} <= stored
    with serving(tmp_path) as again:
        for batch in sent:
            url = f"http://127.0.0.1:{again.otlp_http}/v1/traces"
            answer = httpx.post(url, content=otlp_body(batch * size, size), headers=headers, trust_env=False)
            assert answer.status_code == 200
        count = again.sql("SELECT count(*) n, count(DISTINCT trace_id) d FROM spans WHERE service IS NULL")[0]
    assert count == {"n": len(sent) * size, "d": len(sent) * size}
