"""An injected latency incident, from OTLP spans through serve, Prometheus and Alertmanager to an alert and back."""

import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.infractl.serving import command_line, environment, serving, wait_for
from tests.rules.servers import ALERTMANAGER, PROMETHEUS, alertmanager, http_server, prometheus
from tests.rules.test_end_to_end import prometheus_config

CONFIG = """
analyses:
  overview: {every: 2s, since: 5m}
  p99: {every: 1s, since: 3m, params: {bucket: 10s, resamples: 20}}
rules: {hold: 2s, keep_firing: 2s, gap: 5s, runbook_url: "RUNBOOKS"}
"""


def requests_at(seconds: list[float], ttft_s: list[float]) -> bytes:
    body = ExportTraceServiceRequest()
    resource = body.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "chat"
    spans = resource.scope_spans.add().spans
    ids = Random(repr(seconds))
    for at, ttft in zip(seconds, ttft_s, strict=True):
        span = spans.add(trace_id=ids.randbytes(16), span_id=ids.randbytes(8), name="chat m", kind="SPAN_KIND_SERVER")
        span.start_time_unix_nano, span.end_time_unix_nano = int(at * 1e9), int((at + 2 * ttft) * 1e9)
        span.attributes.add(key="gen_ai.operation.name").value.string_value = "chat"
        span.attributes.add(key="gen_ai.latency.time_to_first_token").value.double_value = ttft
    return body.SerializeToString()


class Traffic:
    """Fifty requests a second, each reported as it starts; slow while `slow` is set."""

    def __init__(self, url: str) -> None:
        self.slow = threading.Event()
        self._end = threading.Event()
        self._random = Random(7)
        self._url = url
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Traffic":
        now = time.time()
        past = [now - 150 + i / 50 for i in range(150 * 50)]
        self._send(past)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.2):
            now = time.time()
            self._send([now - i / 50 for i in range(10)])

    def _send(self, seconds: list[float]) -> None:
        level = 3.0 if self.slow.is_set() else 0.2
        body = requests_at(seconds, [level * self._random.lognormvariate(0, 0.3) for _ in seconds])
        headers = {"Content-Type": "application/x-protobuf"}
        assert httpx.post(self._url, content=body, headers=headers, timeout=30, trust_env=False).is_success


def alerts(manager: str) -> dict[str, Any]:
    found = httpx.get(f"{manager}/api/v2/alerts", trust_env=False).json()
    return {a["labels"]["alertname"]: a for a in found}


@pytest.mark.skipif(PROMETHEUS is None, reason="apt install prometheus")
@pytest.mark.skipif(ALERTMANAGER is None, reason="apt install prometheus-alertmanager")
def test_an_incident_fires_reaches_alertmanager_with_its_runbook_and_resolves(tmp_path: Path):
    import subprocess

    with http_server() as (webhook, posts), serving(tmp_path / "serve", CONFIG) as served:
        folder = served.data.parent
        config = folder / "infractl.yaml"
        config.write_text(CONFIG.replace("RUNBOOKS", served.url + "/runbooks/{slug}"))
        build = [
            "rules",
            "build",
            "--output",
            "rules.yml",
            "--alertmanager",
            "am.yml",
            "--webhook-url",
            f"http://{webhook}/",
        ]
        for words in (build, ["rules", "check", "rules.yml", "--metrics", served.url + "/metrics"]):
            done = subprocess.run(command_line(*words), cwd=folder, env=environment(), capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        hurried(folder / "am.yml")
        with alertmanager(folder, folder / "am.yml") as manager:
            (folder / "prometheus.yml").write_text(
                yaml_of(prometheus_config(served.url.removeprefix("http://"), manager))
            )
            otlp = f"http://127.0.0.1:{served.otlp_http}/v1/traces"
            with prometheus(folder, folder / "prometheus.yml"), Traffic(otlp) as traffic:
                wait_for(lambda: "InfractlDeadMansSwitch" in alerts(manager))
                time.sleep(4)
                assert "P99FarAboveBaseline" not in alerts(manager)
                traffic.slow.set()
                alert = wait_for(lambda: alerts(manager).get("P99FarAboveBaseline"), 60)
                assert alert["labels"]["service"] == "chat"
                assert alert["labels"]["severity"] == "critical"
                runbook = alert["annotations"]["runbook_url"]
                assert httpx.get(runbook, trust_env=False).text.startswith("# P99 above its baseline")
                wait_for(lambda: said(posts, "firing"), 60)
                found = served.cli("analyze", "p99", "--since", "3m", "--bucket", "10s", "--fail-on", "critical")
                assert found.returncode == 1
                assert "now  P99 TTFT of chat" in found.stdout
                traffic.slow.clear()
                wait_for(lambda: "P99FarAboveBaseline" not in alerts(manager), 90)
                wait_for(lambda: said(posts, "resolved"), 90)


def said(posts: list[Any], status: str) -> bool:
    return any(
        a["status"] == status and a["labels"]["alertname"] == "P99FarAboveBaseline"
        for post in posts
        for a in post["alerts"]
    )


def hurried(config: Path) -> None:
    """Notify within a second; the waits that the product ships are for people, not for a test."""
    import yaml

    values = yaml.safe_load(config.read_text())
    values["route"] |= {"group_wait": "0s", "group_interval": "1s"}
    config.write_text(yaml_of(values))


def yaml_of(values: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(values))
