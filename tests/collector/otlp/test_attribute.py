"""Attributes to columns: the best name wins, nothing is lost."""

import itertools
from typing import Any

import pytest

from collector.otlp.attribute import Promoted, prepare_all, promote
from collector.otlp.content import DEFAULT_CONTENT
from collector.otlp.dialects import SPAN_INDEX, SPAN_NAMES


def taken(attributes: dict[str, Any]) -> Promoted:
    return promote(prepare_all(attributes, DEFAULT_CONTENT, SPAN_INDEX))


@pytest.mark.parametrize("column", [c for c, names in SPAN_NAMES.items() if len(names) > 1])
def test_the_first_name_wins_in_whatever_order_the_attributes_come(column: str) -> None:
    names = [name for name, _ in SPAN_NAMES[column][:3]]
    values: dict[str, Any] = dict(zip(names, ("1", "500", "404"), strict=False))
    for order in itertools.permutations(values):
        found, origin, rest, _ = taken({name: values[name] for name in order})
        assert origin[column].key == names[0]
        assert rest == {name: values[name] for name in names[1:]}
        assert found == {column: SPAN_INDEX[names[0]][2]("1")}


def test_a_value_that_does_not_convert_stays_and_the_next_name_is_read() -> None:
    found, _, rest, _ = taken({"gen_ai.usage.input_tokens": "many", "gen_ai.usage.prompt_tokens": "7"})
    assert found == {"input_tokens": 7}
    assert rest == {"gen_ai.usage.input_tokens": "many"}


def test_conversation_text_is_nowhere_and_a_cut_value_is_told() -> None:
    found, _, rest, cut = taken({"gen_ai.prompt": "secret", "long": "x" * 9000})
    assert (found, list(rest), len(rest["long"]), cut) == ({}, ["long"], 8192, True)
