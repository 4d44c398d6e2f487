"""Parameters kept as one JSON text: their columns are read, instructions beside them are not stored."""

import orjson
import pytest

from collector.otlp.content import ContentOptions
from collector.otlp.decode import decode_json
from collector.otlp.parameters import parameters_of

NAME = "llm.invocation_parameters"
GIVEN = {"model": "gpt-4", "temperature": 0.5, "top_p": 0.9, "max_completion_tokens": 200, "n": 2, "stream": True,
         "system": "You are a pirate."}  # fmt: skip
COLUMNS = {"max_tokens": 200, "temperature": 0.5, "top_p": 0.9, "choices": 2, "stream": True}


def row(options: ContentOptions, **more: int) -> dict[str, object]:
    attributes = [
        {"key": "openinference.span.kind", "value": {"stringValue": "LLM"}},
        {"key": NAME, "value": {"stringValue": orjson.dumps(GIVEN).decode()}},
        *({"key": key, "value": {"intValue": str(value)}} for key, value in more.items()),
    ]
    span = {
        "traceId": "1" * 32,
        "spanId": "2" * 16,
        "startTimeUnixNano": "1796040000000000000",
        "attributes": attributes,
    }
    body = orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    return decode_json(body, options).frames["spans"].row(0, named=True)


def test_the_columns_are_read_and_the_text_is_not_stored() -> None:
    found = row(ContentOptions())
    assert {name: found[name] for name in COLUMNS} == COLUMNS
    assert found["attributes"] is None


def test_the_text_stays_where_content_is_kept_and_its_hash_where_that_is_asked_for() -> None:
    assert "pirate" in str(row(ContentOptions(store_content=True))["attributes"])
    hashed = row(ContentOptions(hash_content=True))
    assert "sha256:" in str(hashed["attributes"])
    assert hashed["max_tokens"] == 200


def test_an_attribute_of_its_own_wins() -> None:
    assert row(ContentOptions(), **{"gen_ai.request.max_tokens": 7})["max_tokens"] == 7


@pytest.mark.parametrize("value", ["", "no json", "[1]", '{"system": "x"}', '{"max_tokens": -1, "top_p": "much"}', 3])
def test_what_states_no_parameter_gives_none(value: object) -> None:
    assert parameters_of(value) is None
