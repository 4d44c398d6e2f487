"""`infractl collect`: URLs, this host and configured jobs, once or at an interval, into the store or through serve."""

import signal
import subprocess
from pathlib import Path

import orjson
import pytest

from store.database import Database
from tests.collector.prometheus.server import PageServer, serve
from tests.infractl.serving import command_line, environment
from tests.infractl.test_cli import run

PAGE = b"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
# TYPE vllm:prompt_tokens counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 30
# TYPE something_else gauge
something_else 4
"""


@pytest.fixture
def engine():
    with serve() as server:
        server.answer.body = PAGE
        yield server


def test_a_url_is_read_once_and_what_came_is_told(engine: PageServer, tmp_path: Path):
    done = run(
        "collect",
        f"http://{engine.address}/metrics",
        "--once",
        "--label",
        "service=chat",
        "--format",
        "json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert orjson.loads(done.stdout) == [
        {
            "target": f"collect {engine.address}",
            "up": True,
            "samples": 3,
            "series": 3,
            "understood": 2,
            "kind": "vLLM",
            "remark": "",
        }
    ]
    with Database(tmp_path / "infractl-data") as database:
        found = database.sql(
            "SELECT canonical, service, value FROM metric_series JOIN metric_samples USING (series_id) "
            "WHERE name LIKE 'vllm:num%'"
        ).to_pylist()
    assert found == [{"canonical": "requests_running", "service": "chat", "value": 3.0}]


def test_one_source_that_does_not_answer_is_named_and_the_others_are_stored(engine: PageServer, tmp_path: Path):
    done = run("collect", f"http://{engine.address}", "http://127.0.0.1:1/metrics", "--once", cwd=tmp_path)
    assert done.returncode == 4
    assert "Connection refused" in done.stdout
    with Database(tmp_path / "infractl-data") as database:
        assert database.counts()["metric_samples"] > 2


def test_this_host_is_read_without_an_exporter(tmp_path: Path):
    done = run("collect", "host", "--once", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with Database(tmp_path / "infractl-data") as database:
        [row] = database.sql(
            "SELECT value, unit FROM metric_series JOIN metric_samples USING (series_id) "
            "WHERE canonical = 'host_memory_bytes' AND labels LIKE '%\"state\":\"total\"%'"
        ).to_pylist()
    stated_kb = int(Path("/proc/meminfo").read_text().split()[1])
    assert row == {"value": stated_kb * 1024.0, "unit": "bytes"}


def test_sources_of_the_configuration_are_read_by_name_or_all(engine: PageServer, tmp_path: Path):
    (tmp_path / "targets.json").write_text(orjson.dumps([{"targets": [engine.address]}]).decode())
    (tmp_path / "infractl.yaml").write_text(
        "scrape_configs:\n"
        "- job_name: found\n  file_sd_configs: [{files: [targets.json]}]\n"
        f"- job_name: named\n  static_configs: [{{targets: ['{engine.address}']}}]\n"
        "collectors:\n  host: {every: 5s, labels: {host: h1}}\n"
    )
    every = orjson.loads(run("collect", "--once", "--format", "json", cwd=tmp_path).stdout)
    assert {row["target"].split()[0] for row in every} == {"found", "named", "host"}
    one = orjson.loads(run("collect", "found", "--once", "--format", "json", cwd=tmp_path).stdout)
    assert [row["target"] for row in one] == [f"found {engine.address}"]


@pytest.mark.parametrize(
    ("config", "sources", "said"),
    [
        ("", ["hots"], "did you mean host?"),
        ("", [], "no source is named"),
        ("", ["host", "--once", "--every", "5s"], "--once and --every exclude each other"),
        ("", ["host", "--every", "0s"], "no time to wait"),
        ("collectors: {gpus: {}}\n", [], "infractl.yaml, line 1: there is no collector 'gpus'"),
    ],
)
def test_what_cannot_be_collected_is_refused_with_the_next_step(
    tmp_path: Path, config: str, sources: list[str], said: str
):
    (tmp_path / "infractl.yaml").write_text(config)
    done = run("collect", *sources, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_collecting_goes_on_until_interrupted_and_tells_when_a_target_goes_down(engine: PageServer, tmp_path: Path):
    line = command_line("collect", f"http://{engine.address}/metrics", "--every", "300ms")
    process = subprocess.Popen(line, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == f"collect {engine.address}: up, 3 samples\n"
        engine.answer.status = 503
        assert "down: HTTP 503" in process.stderr.readline()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    with Database(tmp_path / "infractl-data") as database:
        ups = database.sql(
            "SELECT value FROM metric_series JOIN metric_samples USING (series_id) WHERE name = 'up' ORDER BY ts"
        ).to_pylist()
    assert ups[0] == {"value": 1.0}
    assert ups[-1] == {"value": 0.0}
