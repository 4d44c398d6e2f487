"""What Prometheus has loaded against what infractl makes, with a real Prometheus."""

from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from infractl.commands.rules import command
from rules.loaded import differences
from rules.promql import words
from store.errors import SourceError, UsageError
from tests.rules.servers import PROMETHEUS, free_port, program, wait_for

RULE = {"alert": "A", "expr": "a / (b > 0) > 1e-1", "for": "2m", "labels": {"severity": "warning"}}
LOADED = {"name": "A", "query": "a / (b > 0) > 0.1", "duration": 120, "labels": {"severity": "warning"}}


def answer(**rule: object) -> dict[str, object]:
    groups = [{"name": "infractl-x", "rules": [LOADED | rule]}, {"name": "own", "rules": [LOADED]}]
    return {"data": {"groups": groups}}


def test_spelling_is_no_difference_and_groups_of_others_are_left_alone() -> None:
    assert differences({"groups": [{"name": "infractl-x", "rules": [RULE]}]}, answer()) == []


def test_prometheus_writes_seven_days_as_a_week_and_that_is_no_difference() -> None:
    assert words("sum_over_time(a[7d]) + rate(b[90m])") == words("sum_over_time(a[1w]) + rate(b[1h30m])")
    assert words("rate(a[5m])") != words("rate(a[6m])")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"query": "a > 0.1"}, "is loaded with another expression"),
        ({"duration": 60}, "is loaded with another hold"),
        ({"annotations": {"summary": "s"}}, "is loaded with another annotations"),
    ],
)
def test_what_has_changed_is_named(rule: dict[str, object], text: str) -> None:
    (found,) = differences({"groups": [{"name": "infractl-x", "rules": [RULE]}]}, answer(**rule))
    assert str(found) == f"infractl-x: A {text}"


def test_a_rule_that_is_not_loaded_and_one_no_longer_made_are_told_apart() -> None:
    other = RULE | {"alert": "B"}
    found = differences({"groups": [{"name": "infractl-x", "rules": [other]}]}, answer())
    assert [(d.rule, d.kind) for d in found] == [("A", "stale"), ("B", "missing")]


def run(*words: str) -> "object":
    return CliRunner().invoke(command, list(words), standalone_mode=False)


@pytest.mark.skipif(PROMETHEUS is None, reason="apt install prometheus")
def test_rules_are_pushed_to_a_real_prometheus_which_then_has_no_difference(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "prometheus.yml").write_text("rule_files: [rules/*.yml]\n")
    port = free_port()
    words = [
        f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--web.enable-lifecycle",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    assert PROMETHEUS is not None
    with program(tmp_path / "log", PROMETHEUS, *words):
        wait_for("Prometheus", lambda: httpx.get(url + "/-/ready", trust_env=False).is_success)
        before = run("diff", "--prometheus-url", url)
        assert before.return_value == 1
        assert "GpuLost is not loaded" in before.output
        pushed = run("push", "--rules-dir", str(tmp_path / "rules"), "--prometheus-url", url)
        assert pushed.exception is None, pushed.output
        wait_for("rules", lambda: run("diff", "--prometheus-url", url).return_value == 0)
        assert run("--hold", "7m", "diff", "--prometheus-url", url).return_value == 1


def test_nowhere_to_push_and_a_prometheus_that_is_not_there_are_said(tmp_path: Path) -> None:
    assert isinstance(run("push").exception, UsageError)
    missing = run("push", "--rules-dir", str(tmp_path), "--prometheus-url", "http://127.0.0.1:9")
    assert isinstance(missing.exception, SourceError)
    assert (tmp_path / "infractl.rules.yml").exists()
