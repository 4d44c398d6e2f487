"""`infractl rules` as a person types it."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from analytics.analysis import Analysis, Params
from analytics.result import Finding, Severity
from infractl.commands.rules import command
from rules import promtool
from rules.alertmanager import PLACEHOLDER_URL
from store.errors import ConfigError, InfractlError, SourceError, UsageError
from tests.rules.conftest import WINDOW, make_result
from tests.rules.servers import http_server

needs_promtool = pytest.mark.skipif(not promtool.is_installed("promtool"), reason="apt install prometheus")


@pytest.fixture(autouse=True)
def _catalog(monkeypatch: pytest.MonkeyPatch, analysis: Analysis[Params], tmp_path: Path) -> None:
    monkeypatch.setattr("analytics.catalog.load_all", lambda: [analysis])
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Result:
    result = CliRunner().invoke(command, words)
    if isinstance(result.exception, InfractlError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_build_writes_the_rules_to_stdout_and_nothing_else() -> None:
    groups = yaml.safe_load(run("build").stdout)["groups"]
    assert [g["name"] for g in groups] == [
        "infractl-p99",
        "infractl-self",
        *(f"pack-{name}" for name in ("series", "gpus", "links", "engines")),
    ]


def test_build_writes_both_files_and_says_that_the_webhook_is_not_set(tmp_path: Path) -> None:
    done = run("--hold", "2s", "--label", "team=x", "build", "--output", "out/r.yml", "--alertmanager", "out/am.yml")
    assert done.stdout == ""
    assert "rules in out/r.yml" in done.stderr
    assert PLACEHOLDER_URL in done.stderr
    rule = yaml.safe_load((tmp_path / "out/r.yml").read_text())["groups"][0]["rules"][0]
    assert rule["for"] == "2s"
    assert rule["labels"]["team"] == "x"
    assert yaml.safe_load((tmp_path / "out/am.yml").read_text())["route"]["receiver"] == "webhook"


def test_teams_and_severities_get_webhooks_of_their_own(tmp_path: Path) -> None:
    words = ("--team", "gpu=http://h/gpu", "--severity", "critical=http://h/pager")
    run("build", "--output", "r.yml", "--alertmanager", "am.yml", *words)
    receivers = yaml.safe_load((tmp_path / "am.yml").read_text())["receivers"]
    assert {"team-gpu", "severity-critical"} <= {one["name"] for one in receivers}
    for wrong in (("--severity", "bad=http://h"), ("--team", "gpu")):
        with pytest.raises(UsageError):
            run("build", "--output", "r.yml", "--alertmanager", "am.yml", *wrong)


def test_links_lead_to_where_the_app_is(tmp_path: Path) -> None:
    run("--dashboard-url", "https://obs.example/app/", "build", "--output", "r.yml")
    rules = [r for g in yaml.safe_load((tmp_path / "r.yml").read_text())["groups"] for r in g["rules"] if "alert" in r]
    assert all(r["annotations"]["dashboard_url"].startswith("https://obs.example/app/") for r in rules)


def test_options_come_from_the_configuration_file_too(tmp_path: Path) -> None:
    (tmp_path / "infractl.yaml").write_text("rules: {job: obs, build: {output: r.yml}}\n")
    from infractl.main import cli

    assert CliRunner().invoke(cli, ["rules", "build"], catch_exceptions=False).exit_code == 0
    assert 'up{job="obs"}' in (tmp_path / "r.yml").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("--label", "team", "build"),
        ("--hold", "soon", "build"),
        ("build", "--output", "/proc/none/r.yml"),
        ("check", "none.yml"),
        ("check", "--metrics", "none.prom"),
    ],
)
def test_what_cannot_be_used_is_an_error_with_the_fact(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        run(*words)


def test_check_without_a_file_checks_what_build_would_write() -> None:
    assert "no problem" in run("check").stderr


def test_check_lists_rules_that_can_never_fire_and_fails(shared: Path) -> None:
    case = shared / "cases" / "69-rules-on-absent-metrics"
    result = CliRunner().invoke(command, ["check", str(case / "rules.yml"), "--metrics", str(case / "metrics.prom")])
    assert isinstance(result.exception, ConfigError)
    assert "2 problems" in str(result.exception)
    assert result.exception.code != 0
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["TpotHigh", "KvHigh"]
    assert "vllm:kv_cache_usage_perc" in result.stdout


def test_check_reads_a_page_from_an_address() -> None:
    with http_server(lambda: b"infractl_debt_ratio 1\n") as (address, _), pytest.raises(ConfigError, match="problems"):
        run("check", "--metrics", f"http://{address}/metrics")
    with pytest.raises(SourceError, match="does not answer"):
        run("check", "--metrics", f"http://{address}/metrics")


PARTS = ("rules", "pack-gpus", "pack-links", "pack-engines")


@needs_promtool
def test_check_hands_the_file_to_promtool(shared: Path) -> None:
    bad = shared / "data" / "prom_rule_files" / "rulefmt_bad_field.bad.yaml"
    with pytest.raises(ConfigError, match="promtool check rules refuses"):
        run("check", str(bad))


def test_check_says_when_promtool_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "apt install prometheus" in run("check").stderr
    with pytest.raises(UsageError, match="promtool is not installed"):
        run("test")


@needs_promtool
def test_test_runs_the_unit_tests_and_keeps_them_where_asked(tmp_path: Path) -> None:
    assert "SUCCESS" in run("test", "--output", "kept").stdout
    assert {p.name for p in (tmp_path / "kept").iterdir()} == {
        f"{part}{end}.yml" for part in PARTS for end in ("", "_test")
    }


class FakeAccess:
    """A store whose every analysis has two findings; one of them has ended."""

    def analyze(self, name: str, params: object, window: str | None) -> object:
        assert window == "1d"
        lasts = Finding("TargetDown", Severity.CRITICAL, {"http.route": "/x"}, 0.0, (1, 1), WINDOW.start, "down")
        return make_result({}, (lasts, replace(lasts, trigger="DebtHigh", until=WINDOW.end)))

    def close(self) -> None:
        """Nothing is open."""


def test_push_sends_the_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infractl.access.open_access", lambda *_: FakeAccess())
    with http_server() as (address, posts):
        done = run("push", "--alertmanager-url", f"http://{address}")
    assert "3 alerts delivered" in done.stderr
    (sent,) = posts
    assert [a["labels"]["alertname"] for a in sent] == ["TargetDown", "DebtHigh", "InfractlDeadMansSwitch"]
    with pytest.raises(SourceError, match="does not take alerts"):
        run("push", "--alertmanager-url", f"http://{address}")
