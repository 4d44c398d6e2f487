"""Groups of targets as JSON and YAML."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from collector.prometheus.discovery.group import Group, read_json, read_yaml
from store.errors import SourceError

TEXT = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\x85\u2028\u2029\ufeff"), max_size=8
)
GROUPS = st.lists(
    st.fixed_dictionaries({"targets": st.lists(TEXT, max_size=3), "labels": st.dictionaries(TEXT, TEXT, max_size=3)}),
    max_size=3,
)


@given(GROUPS)
def test_json_and_yaml_say_the_same(groups: list[dict[str, object]]) -> None:
    found = read_json(json.dumps(groups), "x")
    assert [list(group) for group in found] == [
        list(group) for group in read_yaml(yaml.safe_dump(groups, allow_unicode=True), "x")
    ]
    assert sum(len(group.targets) for group in found) == sum(len(list(map(str, g["targets"]))) for g in groups)  # type: ignore[call-overload]


def test_a_group_gives_the_labels_of_each_target() -> None:
    (group,) = read_json('[{"targets": ["a:1", "b:2"], "labels": {"x": "1"}}]', "f", {"__meta_filepath": "f"})
    assert list(group) == [
        {"__address__": "a:1", "x": "1", "__meta_filepath": "f"},
        {"__address__": "b:2", "x": "1", "__meta_filepath": "f"},
    ]


def test_yaml_scalars_are_taken_as_written() -> None:
    (group,) = read_yaml("- targets: [a:1]\n  labels: {version: 1.10, on: yes, when: 2026-11-30}\n", "f")
    assert group.labels == {"version": "1.10", "on": "yes", "when": "2026-11-30"}


@pytest.mark.parametrize("text", ["[]", "", "# nothing\n"])
def test_no_groups_are_no_targets(text: str) -> None:
    assert read_yaml(text, "f") == ()


def test_a_group_without_labels_or_targets_is_fine() -> None:
    assert read_json('[{"targets": ["a:1"]}, {}]', "f") == (Group(({"__address__": "a:1"},)), Group(()))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[\n{"targets": ["a"],}\n]', 2, ""),
        ("", 1, ""),
        ('{"targets": []}', 1, "no list"),
        ('[\n {"targets": []},\n 7]', 3, "no group"),
        ('[\n {"target": ["a"]}]', 2, "'target'"),
        ('[{"targets": ["a",\n 7]}]', 2, "7"),
        ('[{"targets": "a"}]', 1, "no list"),
        ('[{"targets": [],\n "labels": {"a": "1",\n "b": 2}}]', 3, "label b"),
        ('[{"targets": [], "labels": []}, \n{"targets": [], "labels": ["a"]}]', 2, "no mapping"),
    ],
)
def test_json_in_another_form_is_refused_with_file_and_line(text: str, line: int, words: str) -> None:
    with pytest.raises(SourceError, match=rf"sd/x\.json, line {line}: ") as caught:
        read_json(text, "sd/x.json")
    assert words in str(caught.value)
    assert "targets" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- targets: [a\n- b", 2),
        ("- targets: [a]\n  label: {}\n", 2),
        ("targets: []", 1),
        ("- targets:\n  - a\n  - [b]", 3),
    ],
)
def test_yaml_in_another_form_is_refused_with_file_and_line(text: str, line: int) -> None:
    with pytest.raises(SourceError, match=rf"x\.yml, line {line}: "):
        read_yaml(text, "x.yml")
