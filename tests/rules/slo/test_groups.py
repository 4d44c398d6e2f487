"""SLOs become the series that Sloth's dashboards read, and alerts where exporters' metrics say enough."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from analytics.catalog import load_all
from analytics.stats.proportion import wilson
from infractl.main import cli
from rules import promtool
from rules.alert import RuleOptions
from rules.build import to_yaml
from rules.lint import known_metrics, lint, read_page
from rules.pack.build import pack_groups
from rules.slo.groups import objectives, slo_groups
from rules.slo.unit_tests import example, slo_tests

needs_promtool = pytest.mark.skipif(not promtool.is_installed("promtool"), reason="apt install prometheus")
SAID = {
    "limit": "chat-ttft: ttft_s<=2 @0.99 over 30d where service=chat",
    "errors": "up: errors @0.995 over 7d where service=chat and model=m",
    "bad": 'web: bad http_requests_total{code=~"5.."} / http_requests_total{job="web"} @0.999 over 28d',
    "good": 'fast: good h_bucket{le="2"} / h_count @0.99',
}
UNSAID = {
    "two limits": "both: ttft_s<=2 & tpot_s<=0.1 @0.99 where service=chat",
    "slices": "slices: errors in 0.95 of requests per 5m @0.99",
    "a label engines lack": "route: errors @0.99 where provider=openai",
}
RUNBOOKS = Path(__file__).parents[3] / "rules" / "runbooks"
SLOTH = {
    *(f"slo:sli_error:ratio_rate{window}" for window in ("5m", "30m", "1h", "2h", "6h", "1d", "3d", "30d")),
    "slo:objective:ratio", "slo:error_budget:ratio", "slo:time_period:days", "slo:current_burn_rate:ratio",
    "slo:period_burn_rate:ratio", "slo:period_error_budget_remaining:ratio", "sloth_slo_info",
}  # fmt: skip


def rules_of(*texts: str) -> list[dict[str, Any]]:
    return [rule for group in slo_groups(RuleOptions(slos=texts)) for rule in group["rules"]]


def test_without_slos_nothing_is_written() -> None:
    assert slo_groups(RuleOptions()) == []


def test_every_name_and_label_of_sloth_is_there() -> None:
    rules = [rule for rule in rules_of(SAID["limit"]) if "sloth_id" in rule.get("labels", {})]
    records = {rule["record"]: rule for rule in rules if "record" in rule}
    assert records.keys() >= SLOTH
    for rule in rules:
        assert rule["labels"].items() >= {
            "sloth_id": "chat-chat-ttft", "sloth_service": "chat", "sloth_slo": "chat-ttft"
        }.items()  # fmt: skip
    assert records["slo:sli_error:ratio_rate6h"]["labels"]["sloth_window"] == "6h"
    assert records["slo:time_period:days"]["expr"] == "vector(30)"
    assert records["sloth_slo_info"]["labels"]["counted_from"] == "exporters' own metrics"


def test_alerts_take_the_factors_of_the_workbook_and_say_where_their_numbers_come_from() -> None:
    alerts = {rule["alert"]: rule for rule in rules_of(SAID["limit"]) if "alert" in rule}
    assert {name: rule["labels"]["sloth_severity"] for name, rule in alerts.items()} == {
        "SloErrorBudgetBurnsFast": "page", "SloErrorBudgetBurns": "page", "SloErrorBudgetBurnsSteadily": "ticket"
    }  # fmt: skip
    for name, factor, windows in (
        ("Fast", 14.4, ("1h", "5m")), ("", 6.0, ("6h", "30m")), ("Steadily", 1.0, ("3d", "6h"))
    ):  # fmt: skip
        expr = alerts[f"SloErrorBudgetBurns{name}"]["expr"]
        assert expr.count(f"> {factor!r}") == 2
        assert all(f"ratio{end}{{" in expr for end in (windows[0], f"_rate{windows[1]}"))
    for rule in alerts.values():
        assert "exporters' own metrics" in rule["annotations"]["description"]
        assert rule["annotations"]["dashboard_url"] == "http://127.0.0.1:8050/slo?service=chat"


@pytest.mark.parametrize("text", UNSAID.values(), ids=UNSAID)
def test_what_exporters_cannot_say_comes_from_the_signals_and_has_the_alerts_of_analyze_slo(text: str) -> None:
    rules = rules_of(text)
    assert not [rule for rule in rules if "alert" in rule]
    records = {rule["record"]: rule for rule in rules}
    assert "infractl_slo_budget_left_ratio{slo=" in records["slo:sli_error:ratio_rate30d"]["expr"]
    assert records["sloth_slo_info"]["labels"]["counted_from"] == "infractl's signals"


def test_a_burn_rate_that_no_share_of_bad_requests_reaches_has_no_alert() -> None:
    (lax,) = objectives(("lax: errors @0.9",))
    assert [rule.trigger.bound for rule in lax.rules] == [6.0, 1.0]


def test_no_series_is_recorded_twice() -> None:
    ours = {rule["record"] for rule in rules_of(*SAID.values()) if "record" in rule}
    packed = {rule["record"] for group in pack_groups(RuleOptions()) for rule in group["rules"] if "record" in rule}
    assert not ours & packed
    shared = [rule["record"] for rule in rules_of(*SAID.values()) if "labels" not in rule]
    assert len(shared) == len(set(shared))


def test_our_own_check_has_nothing_against_them() -> None:
    built = {"groups": slo_groups(RuleOptions(slos=(*SAID.values(), *UNSAID.values())))}
    assert lint(built, known_metrics(load_all()), runbooks=RUNBOOKS) == []


def test_a_limit_that_is_no_bound_of_the_histogram_is_told_with_the_nearest() -> None:
    page = read_page(
        "# TYPE vllm:time_to_first_token_seconds histogram\n"
        'vllm:time_to_first_token_seconds_bucket{le="1.0"} 1\n'
        'vllm:time_to_first_token_seconds_bucket{le="2.5"} 1\n'
    )

    def found(text: str) -> list[str]:
        rules = {"groups": slo_groups(RuleOptions(slos=(text,)))}
        return [f"{one.text}; {one.hint}" for one in lint(rules, known_metrics(()), exposed=page)]

    assert found(SAID["limit"]) == ["vllm:time_to_first_token_seconds_bucket has no bucket le=2; nearest: 2.5"]
    assert found(SAID["limit"].replace("<=2", "<=2.5")) == []


def test_an_slo_on_counters_nobody_exposes_can_never_fire_and_the_others_can() -> None:
    page = read_page('h_bucket{le="2.0"} 1\nh_count 1\n')
    rules = {"groups": slo_groups(RuleOptions(slos=(SAID["good"], SAID["bad"])))}
    problems = lint(rules, known_metrics(()), exposed=page)
    assert {one.rule.partition(" ")[2] for one in problems} == {"(web)"}
    assert {one.text for one in problems} == {"can never fire: no metric http_requests_total"}


@pytest.mark.parametrize("text", SAID.values(), ids=SAID)
def test_there_are_series_to_test_each_of_them_with(text: str) -> None:
    (one,) = objectives((text,))
    found = example(one)
    assert found is not None
    assert found.part != found.whole


@needs_promtool
def test_prometheus_takes_them_and_every_alert_fires_and_is_quiet(tmp_path: Path) -> None:
    options = RuleOptions(slos=(*SAID.values(), *UNSAID.values()), labels={"team": "x"})
    (tmp_path / "r.yml").write_text(to_yaml({"groups": slo_groups(options)}))
    assert "SUCCESS" in promtool.check_rules(tmp_path / "r.yml")
    made = list(slo_tests(RuleOptions(slos=tuple(SAID.values())[:3], labels={"team": "x"})))
    assert len(made) == 3
    for name, rules, tests in made:
        (tmp_path / f"{name}.yml").write_text(to_yaml(rules))
        (tmp_path / "test.yml").write_text(to_yaml(tests))
        assert "SUCCESS" in promtool.test_rules(tmp_path / "test.yml")


def asked(folder: Path, text: str, series: dict[str, str], expr: str, at: str, labels: str, value: float) -> str:
    """Have Prometheus evaluate an expression over the groups of one SLO; the value to 0.1.

    Before version 3 a range of an hour holds both its ends, one evaluation more.
    """
    groups = slo_groups(RuleOptions(slos=(text,)))
    (folder / "r.yml").write_text(to_yaml({"groups": groups}))
    wanted = [{"labels": labels, "value": round(value, 1)}]
    test = {
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": f"round({expr}, 0.1)", "eval_time": at, "exp_samples": wanted}],
    }
    order = [group["name"] for group in groups]
    told = {"rule_files": ["r.yml"], "evaluation_interval": "1m", "group_eval_order": order, "tests": [test]}
    (folder / "test.yml").write_text(to_yaml(told))
    return promtool.test_rules(folder / "test.yml")


@needs_promtool
def test_signals_become_what_is_left_of_the_budget(tmp_path: Path) -> None:
    series = {'infractl_slo_budget_left_ratio{slo="both", job="infractl"}': "0.4x20"}
    labels = '{sloth_id="chat-both", sloth_service="chat", sloth_slo="both", sloth_window="30d"}'
    expr = "slo:period_error_budget_remaining:ratio"
    assert "SUCCESS" in asked(tmp_path, UNSAID["two limits"], series, expr, "4m", labels, 0.4)


@needs_promtool
def test_the_lower_limit_is_the_one_of_analyze_slo(tmp_path: Path) -> None:
    series = {
        'http_requests_total{code="200", job="web"}': "0+19x320",
        'http_requests_total{code="503", job="web"}': "0+1x320",
    }
    low = float(wilson(240.0, 4800.0)[0]) / (1 - 0.999)
    labels = '{sloth_id="all-web", sloth_service="all", sloth_slo="web", sloth_window="1h"}'
    assert "SUCCESS" in asked(tmp_path, SAID["bad"], series, "slo:burn_rate_low:ratio1h", "75m", labels, low)


def test_slos_of_the_configuration_file_are_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "infractl.yaml").write_text(
        "slos:\n  - {name: chat-ttft, sli: ttft_s<=2, objective: 0.99, where: {service: chat}}\n"
    )
    done = CliRunner().invoke(cli, ["rules", "build", "--output", "r.yml"], catch_exceptions=False)
    assert done.exit_code == 0
    names = [group["name"] for group in yaml.safe_load((tmp_path / "r.yml").read_text())["groups"]]
    assert "sloth-slo-alerts-chat-chat-ttft" in names
