"""A whole prometheus.yml pasted into infractl.yaml: what is taken, what is said to have no effect, what is refused."""

from pathlib import Path

import pytest

from infractl import settings
from infractl.configfile import ConfigFile, load
from infractl.sources import scrape_jobs
from store.errors import ConfigError
from tests.infractl.test_cli import run

TAKEN = """\
# my global config
global:
  scrape_interval: 30s # Default is every 1 minute.
  scrape_timeout: 20s
  evaluation_interval: 15s
  external_labels:
    cluster: gpu-a
    replica: 1
  scrape_protocols: [OpenMetricsText1.0.0, PrometheusText0.0.4]
  sample_limit: 50000

rule_files:

scrape_configs:
  - job_name: "prometheus"
    static_configs:
      - targets: ["localhost:9090"]
  - job_name: vllm
    scrape_interval: 5s
    metrics_path: /metrics
    scheme: https
    tls_config: {insecure_skip_verify: true}
    basic_auth: {username: scraper, password_file: /run/secrets/scraper}
    file_sd_configs:
      - files: [targets/vllm-*.json]
        refresh_interval: 1m
    relabel_configs:
      - source_labels: [__address__]
        regex: "([^:]+):.*"
        target_label: node
    metric_relabel_configs:
      - source_labels: [__name__]
        regex: "python_gc_.*"
        action: drop
  - job_name: dcgm
    honor_labels: true
    scrape_timeout: 4s
    dns_sd_configs:
      - names: [dcgm-exporter.monitoring.svc]
        type: A
        port: 9400
"""
FOREIGN = """\
alerting:
  alertmanagers:
    - static_configs:
        - targets: ["alertmanager:9093"]
remote_write:
  - url: http://mimir:9009/api/v1/push
    basic_auth: {username: u, password: s3cr3t}
remote_read:
  - url: http://mimir:9009/prometheus/api/v1/read
storage:
  tsdb: {out_of_order_time_window: 30m}
  exemplars: {max_exemplars: 100000}
tracing: {endpoint: "tempo:4317", insecure: true}
otlp: {promote_resource_attributes: [service.name]}
runtime: {gogc: 75}
scrape_config_files: [jobs/*.yml]
"""


def pasted(tmp_path: Path, text: str) -> ConfigFile:
    (tmp_path / "infractl.yaml").write_text(text)
    return load(tmp_path / "infractl.yaml")


def test_jobs_and_defaults_of_a_prometheus_file_are_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = pasted(tmp_path, TAKEN)
    settings.check_top_level(config)
    own, vllm, dcgm = scrape_jobs(config)
    assert [(job.name, job.interval_s, job.timeout_s) for job in (own, vllm, dcgm)] == [
        ("prometheus", 30.0, 20.0),
        ("vllm", 5.0, 5.0),
        ("dcgm", 30.0, 4.0),
    ]
    assert {job.limits.samples for job in (own, vllm, dcgm)} == {50000}
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"warning: {tmp_path}/infractl.yaml, line 5: global: no effect here: "
        "evaluation_interval, external_labels, scrape_protocols\n"
    )


def test_the_command_line_takes_it_too_and_warns_once(tmp_path: Path) -> None:
    pasted(tmp_path, TAKEN)
    done = run("config", "validate", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no effect here") == 1
    assert done.stderr.endswith("infractl.yaml is fine\n")


def test_sections_of_prometheus_itself_are_refused_at_once_with_line_and_what_to_do_instead(tmp_path: Path) -> None:
    rules = TAKEN.replace("rule_files:\n", "rule_files: [rules/*.yml]\n")
    config = pasted(tmp_path, rules + FOREIGN)
    with pytest.raises(ConfigError) as caught:
        settings.check_top_level(config)
    fact, hint = str(caught.value), caught.value.hint
    first = len(TAKEN.splitlines()) + 1
    assert fact.startswith(f"{tmp_path}/infractl.yaml, line 12: rule_files is for Prometheus itself")
    assert f"alerting (line {first}) too" in fact
    for key in settings.ELSEWHERE:
        assert key in fact
        assert f"{key}: " in hint
    assert "docs/sources/push.md" in hint
    assert "infractl rules build" in hint
    assert "s3cr3t" not in fact + hint


@pytest.mark.parametrize("key", settings.ELSEWHERE)
def test_each_of_them_alone_is_named_with_its_line(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"line 2: {key} is for Prometheus itself$") as caught:
        settings.check_top_level(pasted(tmp_path, f"data: x\n{key}: [1]\n"))
    assert settings.ELSEWHERE[key] in caught.value.hint
    settings.check_top_level(pasted(tmp_path, f"{key}:\n"))


def test_a_page_that_is_named_instead_is_there() -> None:
    root = Path(settings.__file__).parents[1]
    words = " ".join(settings.ELSEWHERE.values()).split()
    named = {word.strip(",;") for word in words if word.startswith("docs/")}
    assert named
    assert [page for page in named if not (root / page).is_file()] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("global:\n  scrape_interval: often\n", "line 2: global: scrape_interval: 'often'"),
        ("global:\n  scrape_interval: 5s\n  scrape_timeout: 10s\n", "line 3: global: scrape_timeout: 10 s is longer"),
        ("global:\n  scrape_intervall: 5s\n", "line 2: unknown key 'global.scrape_intervall'"),
        ("global:\n  scrape_interval: 15\n", "line 2: global.scrape_interval: Expected"),
        ("global: [1]\n", "line 1: global: Expected"),
    ],
)
def test_a_default_that_cannot_be_used_names_file_line_and_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        scrape_jobs(pasted(tmp_path, text))
    assert words in str(caught.value)
    assert caught.value.hint


def test_an_empty_section_is_fine(tmp_path: Path) -> None:
    assert scrape_jobs(pasted(tmp_path, "global:\n")) == ()
