"""Rules that cannot fire or cannot be read are found before the night they are needed."""

import json
from pathlib import Path

import pytest
import yaml

from analytics.analysis import Analysis, Params
from rules.build import read_rules, rule_groups
from rules.lint import Page, known_metrics, lint, read_page, silent
from rules.own import DEAD_MANS_SWITCH
from store.errors import UsageError


def file_of(expr: str, summary: str = "s") -> dict[str, object]:
    rule = {"alert": "A", "expr": expr, "annotations": {"summary": summary}}
    return {"groups": [{"name": "g", "rules": [rule]}]}


def test_generated_rules_have_no_problem(analysis: Analysis[Params]) -> None:
    known = known_metrics([analysis])
    assert lint(rule_groups([analysis]), known, exposed=Page(frozenset(known))) == []


def test_a_rule_on_a_renamed_metric_can_never_fire_and_the_new_name_is_named(shared: Path) -> None:
    case = shared / "cases" / "69-rules-on-absent-metrics"
    rule_file = read_rules((case / "rules.yml").read_text(), "rules.yml")
    problems = lint(rule_file, {}, exposed=read_page((case / "metrics.prom").read_text()))
    expected = json.loads((case / "expected.json").read_text())
    assert {p.rule for p in problems} == set(expected["can_never_fire"])
    assert all("can never fire" in p.text for p in problems)
    hints = {p.rule: p.hint for p in problems}
    assert hints["KvHigh"] == "nearest: vllm:kv_cache_usage_perc"
    assert hints["TpotHigh"] == "nearest: vllm:inter_token_latency_seconds_bucket"


def test_the_switch_and_staleness_are_there_and_no_absent_guards_a_signal(analysis: Analysis[Params]) -> None:
    rules = [r for g in rule_groups([analysis])["groups"] for r in g["rules"]]
    assert [r["expr"] for r in rules if r["alert"] == DEAD_MANS_SWITCH] == ["vector(1)"]
    signals = {s.metric for s in analysis.signals}
    assert not [r for r in rules if "absent" in r["expr"] and any(m in r["expr"] for m in signals)]


@pytest.mark.parametrize(
    ("expr", "summary", "label"),
    [
        ("absent(infractl_target_up)", "{{ $labels.target }}", "target"),
        ("sum by (target) (infractl_target_up) < 1", "{{ with $labels.pod }}{{ . }}{{ end }}", "pod"),
        ("infractl_target_up < 1", "{{ $labels.pod }}", "pod"),
        ("vector(1)", "{{ if $labels.a }}x{{ end }}", "a"),
    ],
)
def test_a_template_label_that_the_expression_drops_is_found(
    analysis: Analysis[Params], expr: str, summary: str, label: str
) -> None:
    (problem,) = lint(file_of(expr, summary), known_metrics([analysis]))
    assert problem.rule == "A"
    assert f"$labels.{label}" in problem.text


def test_kept_labels_and_labels_of_foreign_metrics_are_no_problem(analysis: Analysis[Params]) -> None:
    known = known_metrics([analysis])
    assert lint(file_of("infractl_target_up < 1", "{{ $labels.target }} {{ $labels.instance }}"), known) == []
    assert lint(file_of("DCGM_FI_DEV_XID_ERRORS > 0", "{{ $labels.gpu }}"), known) == []


def test_an_alert_without_a_runbook_page_is_found(analysis: Analysis[Params], tmp_path: Path) -> None:
    built = rule_groups([analysis])
    (tmp_path / "target-down.md").write_text("x")
    problems = lint(built, known_metrics([analysis]), runbooks=tmp_path)
    named = {p.rule for p in problems}
    assert "TargetDown" not in named
    assert {"P99AboveBaseline", "InfractlDown"} <= named


def test_an_expression_that_cannot_be_read_is_a_problem_not_a_crash() -> None:
    (problem,) = lint(file_of("a >> 1"), {})
    assert "cannot read" in problem.text


def test_a_page_promises_the_series_of_its_families() -> None:
    page = (
        '# TYPE idle histogram\n# TYPE jobs counter\n# TYPE t gauge\nx {a="{ }"} 1\ny{} NaN 1\n'
        '{"dotted.name",k="v"} -1.5e+3\n.5 x\nz 2 # {t="1"} 3\n'
    )
    names = read_page(page).names
    assert names == {"idle_bucket", "idle_sum", "idle_count", "jobs", "jobs_total", "t", "x", "y", "dotted.name", "z"}


@pytest.mark.parametrize("page", ["", "<html>\n<p>Please log in at 10 Main St</p>\n</html>", "# HELP a b\n"])
def test_a_login_page_is_no_metrics_page(page: str) -> None:
    with pytest.raises(UsageError, match="no metric"):
        read_page(page)


def test_recorded_names_count_as_exposed() -> None:
    text = "groups: [{name: g, rules: [{record: 'a:b', expr: c}, {alert: A, expr: 'a:b > 1'}]}]"
    assert lint(yaml.safe_load(text), {}, exposed=Page(frozenset(("c",)))) == []


def test_what_a_recorded_series_lacks_is_named_by_the_alerts_that_read_it() -> None:
    text = "groups: [{name: g, rules: [{record: 'a:b', expr: c or d}, {alert: A, expr: 'a:b > 1'}]}]"
    (problem,) = lint(yaml.safe_load(text), {}, exposed=Page(frozenset(("e",))))
    assert "no metric c" in problem.text
    assert lint(yaml.safe_load(text), {}, exposed=Page(frozenset(("d",)))) == []


def test_one_of_several_alternatives_is_enough() -> None:
    assert lint(file_of("(a or b) > 1 and on () c"), {}, exposed=Page(frozenset("bc"))) == []
    assert {p.text for p in lint(file_of("(a or b) > 1 and on () c"), {}, exposed=Page(frozenset("b")))} == {
        "can never fire: no metric c"
    }
    pattern = '{__name__=~"(ray_)?vllm[:_]x"} > 1'
    assert lint(file_of(pattern), {}, exposed=Page(frozenset(("ray_vllm_x",)))) == []


def test_alerts_of_the_pack_need_not_be_able_to_fire_but_are_named() -> None:
    text = "groups: [{name: pack-g, rules: [{alert: A, expr: a > 1}, {alert: B, expr: b > 1}]}]"
    page = Page(frozenset("b"))
    assert lint(yaml.safe_load(text), {}, exposed=page) == []
    assert silent(yaml.safe_load(text), page) == ["A"]


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        ("a / b > 1", True),
        ("a / (b > 0) > 1", False),
        ("a / 5 > 1", False),
        ("a / on (x) group_left () (sum by (x) (b) > 0)", False),
        ("sum(a) / sum(b) > 0.1", True),
        ("5 / a < 1", True),
    ],
)
def test_a_division_by_what_may_be_zero_is_found(expr: str, found: bool) -> None:
    assert any("divides by" in p.text for p in lint(file_of(expr), {})) is found


def test_a_bound_that_the_buckets_cannot_tell_is_found() -> None:
    page = read_page("".join(f'h_bucket{{le="{le}"}} 1\n' for le in (0.5, 1, 2.5, "+Inf")))
    (problem,) = lint(file_of('rate(h_bucket{le="2.0"}[5m]) > 1'), {}, exposed=page)
    assert "no bucket le=2.0" in problem.text
    assert problem.hint == "nearest: 2.5"
    assert lint(file_of('rate(h_bucket{le="1.0"}[5m]) > 1'), {}, exposed=page) == []
    (problem,) = lint(file_of("histogram_quantile(0.99, sum by (le) (rate(h_bucket[5m]))) > 4"), {}, exposed=page)
    assert "last finite bucket of h_bucket ends at 2.5" in problem.text
