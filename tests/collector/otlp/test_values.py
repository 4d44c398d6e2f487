"""Converters of attribute values."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.otlp import values


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_whole_number_is_exact_as_number_and_as_text(number: int) -> None:
    assert values.whole(number) == number
    assert values.whole(str(number)) == number


@pytest.mark.parametrize("value", [True, "x", "", 1.5, "1.5", math.nan, math.inf, 2**63, str(2**63), None, [1], {}])
def test_what_is_no_whole_number_of_64_bits_is_not_read(value: Any) -> None:
    assert values.whole(value) is None


def test_a_count_is_never_negative() -> None:
    assert values.count(-1) is None
    assert values.count("12") == values.count(12.0) == values.count("12.0") == 12


@given(st.one_of(st.floats(), st.text(), st.integers(), st.booleans(), st.none(), st.lists(st.integers())))
def test_a_real_number_is_always_finite(value: Any) -> None:
    number = values.real(value)
    assert number is None or math.isfinite(number)


def test_milliseconds_become_seconds() -> None:
    assert values.milliseconds("426.5") == pytest.approx(0.4265)
    assert values.milliseconds(-1) is None


@pytest.mark.parametrize(("value", "read"), [("True", True), (1, True), ("no", False), (False, False), ("maybe", None)])
def test_a_flag_is_read_from_words_and_numbers(value: Any, read: bool | None) -> None:
    assert values.flag(value) is read


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("az.ai.openai", "azure.ai.openai"),
        ("azure", "azure.ai.openai"),
        ("vertex_ai", "gcp.vertex_ai"),
        ("gemini", "gcp.gemini"),
        ("bedrock", "aws.bedrock"),
        ("xai", "x_ai"),
        ("mistral", "mistral_ai"),
        ("OpenAI", "openai"),
        ("openai.responses", "openai"),
        ("MyGateway", "MyGateway"),
        ("", None),
    ],
)
def test_provider_aliases_are_folded_and_unknown_names_kept(value: str, name: str | None) -> None:
    assert values.provider(value) == name


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (["stop"], "stop"),
        (["stop", "length", "stop"], "stop,length"),
        ('["length"]', "length"),
        ('[{"type": "stop", "matched": 2}]', "stop"),
        ('{"type": "abort"}', "abort"),
        ("stop", "stop"),
        ("[broken", "[broken"),
        ([], None),
    ],
)
def test_finish_reasons_are_read_from_lists_text_and_json(value: Any, reason: str | None) -> None:
    assert values.finish_reason(value) == reason


def test_only_the_inner_span_of_the_vercel_sdk_is_a_model_request() -> None:
    assert values.vercel_operation("ai.streamText.doStream") == "chat"
    assert values.vercel_operation("ai.streamText") == "ai.streamText"
    assert values.vercel_operation("ai.embed.doEmbed") == "embeddings"
    assert values.vercel_operation("ai.toolCall") == "execute_tool"


def test_langfuse_cost_is_the_total_of_its_details() -> None:
    assert values.total_cost('{"input": 0.1, "total": 0.25}') == 0.25
    assert values.total_cost({"input": 0.1}) is None
    assert values.total_cost("0.25 USD") is None
