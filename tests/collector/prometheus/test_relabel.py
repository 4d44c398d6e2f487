"""Rules over labels: laws, templates, and what is refused. Prometheus itself is asked in test_against_prometheus."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.prometheus.config import RelabelConfig
from collector.prometheus.relabel import compile_rule, expand, relabel
from store.errors import UsageError

LABELS = st.dictionaries(
    st.from_regex(r"[a-z_][a-z0-9_]{0,3}", fullmatch=True), st.text("ab1;", max_size=4), max_size=6
)
REGEX = st.sampled_from(["a.*", "[a-c].*", "(.*)b", "", ".*1.*"])


def apply(labels: dict[str, str], *rules: dict[str, Any]) -> dict[str, str] | None:
    return relabel(labels, [compile_rule(msgspec.convert(rule, RelabelConfig)) for rule in rules])


def filled(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if value}


@given(LABELS, REGEX)
def test_keep_and_drop_part_all_label_sets_in_two(labels: dict[str, str], regex: str) -> None:
    rule = {"source_labels": ["a", "b"], "regex": regex}
    kept, dropped = apply(labels, rule | {"action": "keep"}), apply(labels, rule | {"action": "drop"})
    assert (kept is None) != (dropped is None)
    assert (dropped if kept is None else kept) == filled(labels)


@given(LABELS)
def test_keepequal_and_dropequal_part_all_label_sets_in_two(labels: dict[str, str]) -> None:
    rule = {"source_labels": ["a"], "target_label": "b"}
    kept = apply(labels, rule | {"action": "keepequal"})
    assert (kept is None) == (apply(labels, rule | {"action": "dropequal"}) is not None)
    assert (kept is not None) == (labels.get("a", "") == labels.get("b", ""))


@given(LABELS, REGEX)
def test_labeldrop_and_labelkeep_part_the_labels(labels: dict[str, str], regex: str) -> None:
    kept = apply(labels, {"action": "labelkeep", "regex": regex})
    left = apply(labels, {"action": "labeldrop", "regex": regex})
    assert kept is not None
    assert left is not None
    assert not kept.keys() & left.keys()
    assert kept | left == filled(labels)


@given(st.text(max_size=20), st.integers(1, 1000))
def test_hashmod_is_a_shard_and_the_same_for_the_same_value(value: str, modulus: int) -> None:
    rule = {"source_labels": ["a"], "action": "hashmod", "modulus": modulus, "target_label": "shard"}
    one, two = apply({"a": value}, rule), apply({"a": value, "z": "1"}, rule)
    assert one is not None
    assert two is not None
    assert 0 <= int(one["shard"]) < modulus
    assert one["shard"] == two["shard"]


@given(LABELS)
def test_without_rules_only_empty_labels_go(labels: dict[str, str]) -> None:
    assert apply(labels) == filled(labels)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("$1", "one"),
        ("${1}x", "onex"),
        ("$1x", ""),
        ("$name", "two"),
        ("${name}", "two"),
        ("$0", "one-two"),
        ("$3$4", ""),
        ("$$1", "$1"),
        ("$", "$"),
        ("${1", "${1"),
        ("a$-b", "a$-b"),
        ("$01", ""),
        ("$name1", ""),
    ],
)
def test_templates_are_those_of_go(template: str, text: str) -> None:
    match = re.compile(r"(\w+)-(?P<name>\w+)(x)?").fullmatch("one-two")
    assert match is not None
    assert expand(match, template) == text


def test_a_replacement_that_is_empty_takes_the_label_away() -> None:
    assert apply({"a": "1", "b": "2"}, {"target_label": "a", "replacement": ""}) == {"b": "2"}


def test_rules_see_what_the_rules_before_them_did() -> None:
    shard = {"source_labels": ["a"], "action": "hashmod", "modulus": 1, "target_label": "__tmp"}
    assert apply({"a": "x"}, shard, {"source_labels": ["__tmp"], "regex": "0", "action": "drop"}) is None


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"action": "rename"}, "rename"),
        ({"action": ""}, "action"),
        ({"action": "replace"}, "target_label"),
        ({"target_label": "a-b"}, "a-b"),
        ({"target_label": "$-"}, "target_label"),
        ({"action": "hashmod", "target_label": "x"}, "modulus"),
        ({"action": "hashmod", "modulus": 3}, "target_label"),
        ({"action": "lowercase", "target_label": "${1}"}, "target_label"),
        ({"action": "lowercase", "target_label": "a", "replacement": "x"}, "replacement"),
        ({"action": "labelmap", "replacement": "-"}, "replacement"),
        ({"action": "labeldrop", "source_labels": ["a"]}, "source_labels"),
        ({"action": "labelkeep", "target_label": "a"}, "target_label"),
        ({"action": "keepequal", "target_label": "a", "regex": "x"}, "regex"),
        ({"action": "dropequal"}, "target_label"),
        ({"target_label": "a", "regex": "("}, "regex"),
    ],
)
def test_a_rule_that_prometheus_would_refuse_is_refused_with_a_remedy(rule: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        apply({}, rule)
    assert words in str(caught.value)
    assert caught.value.hint
