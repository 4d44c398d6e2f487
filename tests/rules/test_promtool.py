"""Prometheus' own tools judge what is generated (skipped where they are not installed)."""

import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.analysis import Analysis, Params
from analytics.catalog import load_all
from analytics.result import Severity, Signal, Trigger
from rules import promtool
from rules.alert import RuleOptions
from rules.alertmanager import NotifyOptions, alertmanager_config
from rules.build import rule_groups, to_yaml
from rules.unit_tests import unit_tests
from store.errors import ConfigError, UsageError
from tests.rules.conftest import make_analysis

needs_promtool = pytest.mark.skipif(not promtool.is_installed("promtool"), reason="apt install prometheus")
needs_amtool = pytest.mark.skipif(not promtool.is_installed("amtool"), reason="apt install prometheus-alertmanager")

SECONDS = RuleOptions(
    hold=timedelta(seconds=2), keep_firing=timedelta(seconds=3), gap=timedelta(seconds=5), labels={"team": "x"}
)
LONG = RuleOptions(
    hold=timedelta(minutes=10), stale_after=timedelta(hours=1), job="obs", runbook_url="https://w/{slug}.md"
)


def write(folder: Path, name: str, values: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text(to_yaml(values))
    return path


def run_unit_tests(folder: Path, analyses: list[Analysis[Any]], options: RuleOptions) -> str:
    write(folder, "rules.yml", rule_groups(analyses, options))
    return promtool.test_rules(write(folder, "rules_test.yml", unit_tests(analyses, options, "rules.yml")))


@needs_promtool
@pytest.mark.parametrize("options", [RuleOptions(), SECONDS, LONG], ids=["defaults", "seconds", "long"])
def test_every_rule_passes_its_generated_unit_tests(
    analysis: Analysis[Params], tmp_path: Path, options: RuleOptions
) -> None:
    assert "SUCCESS" in run_unit_tests(tmp_path, [analysis], options)
    assert "SUCCESS" in promtool.check_rules(tmp_path / "rules.yml")


@needs_promtool
def test_the_first_row_refused_for_a_new_reason_is_told_and_a_missing_sensor_is_not(
    analysis: Analysis[Params], tmp_path: Path
) -> None:
    write(tmp_path, "rules.yml", rule_groups([analysis], RuleOptions()))
    series = 'infractl_ingest_dropped_rows_total{source="otlp",reason="new"}'
    absent = 'infractl_ingest_dropped_rows_total{source="scrape",reason="blank_value"}'
    checks = [
        {"eval_time": at, "alertname": "InfractlIngestDropping", "exp_alerts": alerts}
        for at, alerts in (("24m", []), ("45m", []))
    ]
    told = 'sum(ALERTS{alertname="InfractlIngestDropping",alertstate="firing"})'
    case = {
        "interval": "1m",
        "input_series": [{"series": series, "values": "_x20 7+0x40"}, {"series": absent, "values": "0+1x60"}],
        "alert_rule_test": checks,
        "promql_expr_test": [{"expr": told, "eval_time": "27m", "exp_samples": [{"labels": "{}", "value": 1}]}],
    }
    tests = write(tmp_path, "new_test.yml", {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [case]})
    assert "SUCCESS" in promtool.test_rules(tests)


@needs_promtool
def test_every_rule_of_the_catalog_passes_its_generated_unit_tests(tmp_path: Path) -> None:
    assert "SUCCESS" in run_unit_tests(tmp_path, load_all(), RuleOptions())
    assert "SUCCESS" in promtool.check_rules(tmp_path / "rules.yml")


@needs_promtool
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("> 2.0", ">= 2.0"),
        ("> 2.0", "> 2.1"),
        ("for: 2m", "for: 1m"),
        ("n/a", "none"),
        ("severity: info", "severity: x"),
    ],
)
def test_the_unit_tests_notice_a_rule_that_was_changed(
    analysis: Analysis[Params], tmp_path: Path, old: str, new: str
) -> None:
    tests = write(tmp_path, "rules_test.yml", unit_tests([analysis], RuleOptions(), "rules.yml"))
    text = to_yaml(rule_groups([analysis]))
    assert old in text
    (tmp_path / "rules.yml").write_text(text.replace(old, new))
    with pytest.raises(ConfigError, match="refuses"):
        promtool.test_rules(tests)


numbers = st.floats(allow_nan=False, allow_infinity=False)


@needs_promtool
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases=st.lists(st.tuples(numbers, st.one_of(st.none(), numbers), st.booleans()), min_size=1, max_size=12))
def test_a_rule_fires_exactly_where_its_trigger_holds(
    tmp_path: Path, cases: list[tuple[float, float | None, bool]]
) -> None:
    now = timedelta()
    triggers = tuple(
        Trigger(f"T{i}", Signal(f"s{i}", "", "s"), bound, Severity.INFO, "s", "r", above, now, now)
        for i, (bound, _, above) in enumerate(cases)
    )
    values = [bound if value is None else value for bound, value, _ in cases]
    expected = [t.name for t, value in zip(triggers, values, strict=True) if t.holds(value)]
    write(tmp_path, "rules.yml", rule_groups([make_analysis("p99", triggers)]))
    series = [{"series": t.signal.metric, "values": repr(v)} for t, v in zip(triggers, values, strict=True)]
    firing = {
        "expr": 'count by (alertname) (ALERTS{alertname=~"T.*", alertstate="firing"})',
        "eval_time": "0s",
        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in expected],
    }
    test = {"interval": "15s", "input_series": series, "promql_expr_test": [firing]}
    promtool.test_rules(write(tmp_path, "t.yml", {"rule_files": ["rules.yml"], "tests": [test]}))


@needs_promtool
def test_missed_scrapes_neither_delay_an_alert_nor_resolve_it(
    analysis: Analysis[Params], shared: Path, tmp_path: Path
) -> None:
    case = shared / "cases" / "65-flap-on-missing-scrapes"
    expected = json.loads((case / "expected.json").read_text())
    with (case / "scrapes.csv").open() as file:
        rows = list(csv.DictReader(file))
    good = {"1": "3", "0": "1", "": "stale"}
    write(tmp_path, "rules.yml", rule_groups([analysis]))
    checks, firing, changes = [], False, 0
    for row in rows:  # pending for two minutes, then firing until the condition is false for keep_firing_for
        at, true = int(row["t_s"]), 120 <= int(row["t_s"]) < expected["resolved_not_before_s"] + 300
        changes += true != firing
        firing = true
        samples = [{"labels": '{__name__="ALERTS", alertname="P99AboveBaseline"}', "value": 1}] if firing else []
        expr = 'sum by (__name__, alertname) (ALERTS{alertname="P99AboveBaseline", alertstate="firing"})'
        checks.append({"expr": expr, "eval_time": f"{at}s", "exp_samples": samples})
    test = {
        "interval": "15s",
        "input_series": [
            {
                "series": 'infractl_p99_baseline_ratio{service="s"}',
                "values": " ".join(good[r["condition"]] for r in rows),
            }
        ],
        "promql_expr_test": checks,
    }
    assert changes == expected["firing"] + expected["resolved"]
    groups = {"rule_files": ["rules.yml"], "evaluation_interval": "15s", "tests": [test]}
    promtool.test_rules(write(tmp_path, "t.yml", groups))


@needs_amtool
@pytest.mark.parametrize(
    "options", [NotifyOptions(), NotifyOptions(webhook_url="http://127.0.0.1:1/x", deadman_url="http://127.0.0.1:1/y")]
)
def test_amtool_accepts_the_configuration(tmp_path: Path, options: NotifyOptions) -> None:
    path = write(tmp_path, "alertmanager.yml", alertmanager_config(options))
    assert "SUCCESS" in promtool.check_alertmanager(path)


@needs_promtool
def test_a_refused_file_is_named_with_what_promtool_says(shared: Path) -> None:
    bad = shared / "data" / "prom_rule_files" / "rulefmt_bad_expr.bad.yaml"
    with pytest.raises(ConfigError, match="rulefmt_bad_expr") as caught:
        promtool.check_rules(bad)
    assert "could not parse expression" in caught.value.hint


def test_a_tool_that_is_not_there_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="promtool is not installed") as caught:
        promtool.check_rules(tmp_path / "r.yml")
    assert "apt install prometheus" in caught.value.hint
    with pytest.raises(UsageError, match="amtool is not installed"):
        promtool.check_alertmanager(tmp_path / "a.yml")
