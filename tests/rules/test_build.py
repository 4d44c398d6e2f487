"""The rule file says what the triggers say."""

from datetime import timedelta

import pytest
import yaml

from analytics.analysis import Analysis, Params
from analytics.result import Severity, Signal, Trigger
from rules.alert import RuleOptions
from rules.build import read_rules, rule_groups, to_yaml
from store.errors import ConfigError, UsageError
from tests.rules.conftest import RATIO, make_analysis


def rules_of(analysis: Analysis[Params], options: RuleOptions | None = None) -> dict[str, dict[str, object]]:
    groups = rule_groups([analysis], options)["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_a_trigger_becomes_one_alert_with_its_own_bound_and_times(analysis: Analysis[Params]) -> None:
    rule = rules_of(analysis)["P99AboveBaseline"]
    assert rule == {
        "alert": "P99AboveBaseline",
        "expr": "last_over_time(infractl_p99_baseline_ratio[2m]) > 2.0",
        "for": "2m",
        "keep_firing_for": "5m",
        "labels": {"severity": "warning", "analysis": "p99"},
        "annotations": {
            "summary": (
                "P99 of {{ with $labels.service }}{{ . }}{{ else }}n/a{{ end }} "
                "({{ with $labels.gen_ai_request_model }}{{ . }}{{ else }}n/a{{ end }}) "
                'is {{ $value | printf "%.1f" }}x its baseline'
            ),
            "description": ("P99 of TTFT over its baseline. The bound: above 2.0. Ask why with: infractl analyze p99"),
            "runbook_url": "http://127.0.0.1:8050/runbooks/p99-above-baseline",
            "dashboard_url": (
                "http://127.0.0.1:8050/latency{{ with $labels.service }}?service={{ . | urlquery }}{{ end }}"
            ),
        },
    }


def test_bounds_are_written_to_the_last_bit(analysis: Analysis[Params]) -> None:
    rules = rules_of(analysis)
    assert str(rules["DebtHuge"]["expr"]).endswith("> 0.30000000000000004")
    assert str(rules["DebtHigh"]["expr"]).endswith("> 1e-05")
    assert str(rules["TargetDown"]["expr"]).endswith("< 0.5")


def test_a_site_overrides_holds_labels_job_and_runbook_address(analysis: Analysis[Params]) -> None:
    options = RuleOptions(
        hold=timedelta(seconds=2),
        keep_firing=timedelta(),
        labels={"my.team": "x", "none": ""},
        job="obs",
        runbook_url="https://wiki.example/ops/",
    )
    rules = rules_of(analysis, options)
    assert rules["TargetDown"]["for"] == "2s"
    assert "keep_firing_for" not in rules["TargetDown"]
    assert rules["TargetDown"]["labels"] == {"severity": "critical", "analysis": "p99", "my_team": "x"}
    assert rules["TargetDown"]["annotations"]["runbook_url"] == "https://wiki.example/ops/target-down"  # type: ignore[index]
    assert rules["InfractlDown"]["expr"] == 'up{job="obs"} == 0 or absent(up{job="obs"})'
    assert "for" not in rules["InfractlDeadMansSwitch"]


def test_every_analysis_is_watched_for_age_also_one_without_triggers(analysis: Analysis[Params]) -> None:
    groups = rule_groups([analysis, make_analysis("quiet", (), (RATIO,))])["groups"]
    assert [g["name"] for g in groups] == ["infractl-p99", "infractl-self"]
    stale = [r["labels"]["analysis"] for r in groups[1]["rules"] if r["alert"] == "InfractlAnalysisStale"]
    assert stale == ["p99", "quiet"]


def test_no_rule_is_an_error_not_an_empty_file() -> None:
    with pytest.raises(UsageError, match="no trigger"):
        rule_groups([make_analysis("quiet", (), (RATIO,))])
    for text in ("", "groups: []", "groups: [{name: g, rules: []}]", "[]"):
        with pytest.raises(ConfigError, match="holds no rule"):
            read_rules(text, "r.yml")


def test_a_file_that_is_no_yaml_is_named_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"r.yml:2"):
        read_rules("groups:\n- {name: [}\n", "r.yml")


@pytest.mark.parametrize("bound", [float("nan"), float("inf")])
def test_a_bound_that_no_value_passes_is_refused(bound: float) -> None:
    with pytest.raises(UsageError, match="has the bound"):
        rule_groups([make_analysis("p99", (Trigger("T", RATIO, bound, Severity.INFO, "s", "r"),))])


def test_a_signal_label_that_the_rule_would_overwrite_is_refused() -> None:
    signal = Signal("findings", "", "by severity", ("severity",))
    with pytest.raises(UsageError, match="severity"):
        rule_groups([make_analysis("p99", (Trigger("T", signal, 1.0, Severity.INFO, "s", "r"),))])


def test_two_triggers_of_one_name_are_refused(analysis: Analysis[Params]) -> None:
    with pytest.raises(UsageError, match="two triggers are named TargetDown"):
        rule_groups([analysis, make_analysis("overview", analysis.triggers[1:2])])


def test_the_file_is_the_same_each_time_and_reads_back(analysis: Analysis[Params]) -> None:
    built = rule_groups([analysis])
    assert to_yaml(built) == to_yaml(rule_groups([analysis]))
    assert yaml.safe_load(to_yaml(built)) == built
