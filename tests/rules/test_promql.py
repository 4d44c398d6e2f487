"""Which metrics an expression names and which labels its result keeps."""

from pathlib import Path

import pytest
import yaml

from rules.promql import read
from store.errors import UsageError

KNOWN = {"a": frozenset("xyz"), "b": frozenset("xw"), "h_bucket": frozenset(("x", "le"))}


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a > 1", "xyz"),
        ("1 < a", "xyz"),
        ("-a", "xyz"),
        ("time() - a > 900.0", "xyz"),
        ("last_over_time(a[2m]) > 2.0", "xyz"),
        ("sum(a)", ""),
        ("sum by (x, y) (rate(a[5m])) > 0", "xy"),
        ("sum(a) by (x)", "x"),
        ("max without (z) (a)", "xy"),
        ("topk(3, a)", "xyz"),
        ('count_values("v", a)', "v"),
        ("vector(1)", ""),
        ("absent(a)", ""),
        ('absent(a{x="1", y!="2"})', "x"),
        ('absent(a{x="1"}) and on () b == 1', "x"),
        ("a or b", "x"),
        ("a and b or a", "xyz"),
        ("a / on (x) b", "x"),
        ("a / ignoring (z) b", "xy"),
        ("a * on (x) group_left (w) b", "wxyz"),
        ("b * on (x) group_right () a", "xyz"),
        ('label_replace(sum(a), "k", "$1", "x", "(.*)")', "k"),
        ("(a[5m:1m] offset 5m) > bool -1e-05", "xyz"),
        ("a @ end() ^ 2 ^ 3", "xyz"),
        ("quantile_over_time(0.9, a[1h])", "xyz"),
        ("1 > bool 0", ""),
    ],
)
def test_labels_kept(text: str, labels: str) -> None:
    assert read(text, KNOWN).labels == frozenset(labels)


def test_labels_of_a_metric_that_is_not_known_are_not_known() -> None:
    assert read("c > 1").labels is None
    assert read("max without (x) (c)").labels is None
    assert read("sum by (x) (c)").labels == {"x"}


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("histogram_quantile(0.99, sum by (le) (rate(vllm:x_bucket[5m]))) > 0.2", {"vllm:x_bucket"}),
        ('{__name__="a", k=~"b.*"} + c{d="e"} # f', {"a", "c"}),
        ('{"dotted.name", k="v"}', {"dotted.name"}),
        ("a unless on (inf) b == Inf", {"a", "b"}),
        ("time() > 5", set()),
    ],
)
def test_metrics_named(text: str, metrics: set[str]) -> None:
    assert read(text).metrics == metrics


@pytest.mark.parametrize("text", ["", "a >", "sum(", "a b", "a{x=", "a ; b", "a[5m", ") + 1"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read(text)


def test_rules_of_others_are_read(shared: Path) -> None:
    read_rules = 0
    for path in sorted((shared / "data" / "prom_rule_files").glob("awesome-alerts_*.yml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            for rule in group["rules"]:
                named = read(rule["expr"]).metrics
                assert named or "vector(1)" in rule["expr"] or "__name__" in rule["expr"]
                read_rules += 1
    assert read_rules > 50
