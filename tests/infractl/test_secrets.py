"""No secret of infractl.yaml comes out again: not in `config show`, status, doctor, logs or errors."""

from pathlib import Path

import httpx
import pytest

from store.database import Database
from tests.collector.prometheus.server import PageServer, serve
from tests.infractl.serving import serving, wait_for
from tests.infractl.test_cli import run
from tests.rules.servers import free_port

SECRET = "s3cr3t"


def config(address: str, dead: int) -> str:
    return f"""
scrape_configs:
- job_name: page
  scrape_interval: 500ms
  basic_auth: {{username: me, password: {SECRET}-password}}
  params: {{token: [{SECRET}-token], module: [gpu]}}
  static_configs: [{{targets: ['{address}']}}]
- job_name: dead
  scrape_interval: 500ms
  authorization: {{credentials: {SECRET}-credentials}}
  params: {{api_key: [{SECRET}-key]}}
  static_configs: [{{targets: ['127.0.0.1:{dead}', '127.0.0.1:{free_port()}']}}]
  http_sd_configs: [{{url: 'http://me:{SECRET}-url@127.0.0.1:{dead}/sd?key={SECRET}-sd'}}]
  relabel_configs: [{{source_labels: [__address__], regex: '127.0.0.1:{dead}', action: drop}}]
- job_name: bearer
  scrape_interval: 500ms
  bearer_token: {SECRET}-bearer
  static_configs: [{{targets: ['{address}'], labels: {{__param_secret: {SECRET}-label}}}}]
telemetry: {{traces: true, endpoint: 'http://me:{SECRET}-endpoint@127.0.0.1:{dead}/v1/traces?token={SECRET}-traces'}}
sql: {{server: 'http://me:{SECRET}-server@127.0.0.1:{dead}'}}
"""


@pytest.fixture
def engine():
    with serve() as server:
        server.answer.body = b"a 1\n"
        yield server


def test_config_show_masks_every_secret_and_shows_the_rest(engine: PageServer, tmp_path: Path) -> None:
    (tmp_path / "infractl.yaml").write_text(config(engine.address, 1))
    done = run("config", "show", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert done.stdout.count("<secret>") == 11
    for kept in ("'username': 'me'", "'module': ['gpu']", engine.address, "http://<secret>@127.0.0.1:1"):
        assert kept in done.stdout
    done = run("config", "show", cwd=tmp_path, INFRACTL_SERVER=f"http://me:{SECRET}@h")
    assert "http://<secret>@h " in done.stdout
    assert SECRET not in done.stdout


def test_a_running_server_prints_no_secret_anywhere_and_sends_all_of_them(engine: PageServer, tmp_path: Path) -> None:
    with serving(tmp_path, config(engine.address, free_port())) as served:

        def status() -> dict:
            return httpx.get(served.url + "/api/v1/status", trust_env=False).json()

        def settled() -> bool:
            return len(targets := status()["targets"]) == 3 and all(t["up"] is not None for t in targets)

        wait_for(settled)
        wait_for(lambda: any(s["errors"] for job in status()["discovery"] for s in job["sources"]))
        told = [
            httpx.get(served.url + path, trust_env=False).text
            for path in ("/api/v1/status", "/api/v1/doctor", "/metrics", "/")
        ]
        told += [served.cli(*command).stdout for command in (("status",), ("status", "--json"), ("doctor",))]
    told.append((tmp_path / "serve.log").read_text())
    assert [text for text in told if SECRET in text] == []
    assert "token=<secret>" in told[0]
    assert f"/metrics?module=gpu&token={SECRET}-token" in engine.paths
    assert f"Bearer {SECRET}-bearer" in [asked.get("authorization") for asked in engine.asked]
    with Database(tmp_path / "data") as database:
        assert SECRET not in str(database.table("metric_series").to_dicts())


@pytest.mark.parametrize(
    "source",
    [
        f"http://me:{SECRET}@127.0.0.1:1/m?token={SECRET}",
        f"http://me:{SECRET}@127.0.0.1:many/m?token={SECRET}",
        f"http://me:{SECRET}@:1/m?token={SECRET}",
        f"ftp://me:{SECRET}@127.0.0.1:1/m",
        f"me:{SECRET}@127.0.0.1:1",
    ],
)
def test_a_source_on_the_command_line_is_not_repeated_with_its_secrets(tmp_path: Path, source: str) -> None:
    done = run("collect", source, "--once", cwd=tmp_path)
    assert done.returncode != 0
    assert SECRET not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_user_and_password_of_a_url_are_sent_and_stored_nowhere(engine: PageServer, tmp_path: Path) -> None:
    done = run("collect", f"http://me:{SECRET}%21@{engine.address}/m", "--once", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert engine.asked[0]["authorization"] == "Basic bWU6czNjcjN0IQ=="
    with Database(tmp_path / "infractl-data") as database:
        assert set(database.table("metric_series")["instance"]) == {engine.address}


@pytest.mark.parametrize("value", [f"*{SECRET}", f"!{SECRET} x", f"&{SECRET} [", f"%{SECRET}", f"'{SECRET}"])
def test_a_password_that_yaml_cannot_read_is_named_by_its_line_only(tmp_path: Path, value: str) -> None:
    (tmp_path / "infractl.yaml").write_text(f"data: x\npassword: {value}\n")
    done = run("config", "validate", cwd=tmp_path)
    assert done.returncode == 2
    assert "line " in done.stderr
    assert SECRET not in done.stderr


def test_an_alertmanager_and_a_page_that_do_not_answer_are_named_without_their_secrets(tmp_path: Path) -> None:
    with Database(tmp_path / "data"):
        pass
    address = f"http://me:{SECRET}@127.0.0.1:{free_port()}"
    for command in (
        ("rules", "push", "--data", "data", "--alertmanager-url", address),
        ("rules", "check", "--metrics", f"{address}/metrics?token={SECRET}"),
    ):
        done = run(*command, cwd=tmp_path)
        assert done.returncode == 4, done.stderr
        assert "<secret>@127.0.0.1" in done.stderr
        assert SECRET not in done.stderr
