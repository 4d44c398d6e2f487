"""Conversation text stays out unless asked for; long values are cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.otlp.content import MAX_VALUE_BYTES, ContentOptions, clip, is_content
from tests.collector.otlp.builders import make_event, row_of

CONTENT = [
    "gen_ai.prompt", "gen_ai.prompt.0.content", "gen_ai.completion", "gen_ai.completion.0.role",
    "gen_ai.input.messages",
    "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.content.prompt", "gen_ai.tool.call.arguments",
    "llm.invocation_parameters",
    "llm.prompts", "llm.completions", "llm.prompts.0.user", "llm.input_messages.0.message.content",
    "llm.output_messages.0.message.role", "input.value", "output.value", "input", "output", "traceloop.entity.input",
    "traceloop.entity.output", "ai.prompt.messages", "ai.response.text", "embedding.embeddings.0.embedding.text",
]  # fmt: skip
NO_CONTENT = [
    "gen_ai.prompt.name", "gen_ai.prompt.version", "gen_ai.usage.prompt_tokens", "gen_ai.completion_tokens",
    "input.mime_type", "llm.token_count.prompt", "traceloop.entity.name", "ai.response.id",
    "exception.message",
]  # fmt: skip


@pytest.mark.parametrize("key", CONTENT)
def test_conversation_text_is_stored_only_when_asked_for(key: str) -> None:
    assert row_of({key: "secret"})["attributes"] is None
    kept = row_of({key: "secret"}, options=ContentOptions(store_content=True))["attributes"]
    assert json.loads(kept) == {key: "secret"}


@pytest.mark.parametrize("key", NO_CONTENT)
def test_names_that_only_look_like_content_are_kept(key: str) -> None:
    assert not is_content(key)


def test_messages_in_events_and_resources_stay_out_too() -> None:
    events = [
        make_event("gen_ai.user.message", content="secret", role="user"),
        make_event("gen_ai.choice", message="secret", index=0, finish_reason="stop", gen_ai__completion="secret"),
        make_event("gen_ai.content.completion", gen_ai__completion="secret"),
        make_event("llm.content.completion.chunk", delta="secret", tokens=1),
        make_event("exception", exception__message="visible"),
    ]
    row = row_of(events=events, resource={"gen_ai.prompt": "secret"})
    assert "secret" not in str(row)
    assert [event["attributes"] for event in json.loads(row["events"])] == [
        {"role": "user"}, {"index": 0, "finish_reason": "stop"}, {}, {"tokens": 1},
        {"exception.message": "visible"},
    ]  # fmt: skip
    kept = row_of(events=events, options=ContentOptions(store_content=True))
    assert str(kept["events"]).count("secret") == 5


def test_a_hash_in_the_place_of_text_tells_equal_prompts_from_others() -> None:
    def stored(prompt: Any) -> Any:
        row = row_of({"gen_ai.prompt": prompt, "mine": "x"}, options=ContentOptions(hash_content=True))
        return json.loads(row["attributes"])

    assert stored("secret") == {"gen_ai.prompt": "sha256:2bb80d537b1da3e3", "mine": "x"}
    assert stored("secret") == stored("secret") != stored("Secret")
    assert stored([{"role": "user"}])["gen_ai.prompt"].startswith("sha256:")
    assert stored({"a": 1, "b": 2}) == stored({"b": 2, "a": 1})
    assert stored("x" * 100_000) != stored("x" * 100_001), "all of a text is hashed, not its beginning"


def test_messages_in_events_are_hashed_and_their_envelope_kept() -> None:
    events = [make_event("gen_ai.user.message", content="secret", role="user")]
    row = row_of(events=events, options=ContentOptions(hash_content=True))
    [event] = json.loads(row["events"])
    assert event["attributes"] == {"role": "user", "content": "sha256:2bb80d537b1da3e3"}


def test_text_that_is_stored_is_not_hashed() -> None:
    row = row_of({"gen_ai.prompt": "secret"}, options=ContentOptions(store_content=True, hash_content=True))
    assert json.loads(row["attributes"]) == {"gen_ai.prompt": "secret"}


@given(st.text(), st.integers(1, 40))
def test_text_is_cut_on_a_character_boundary_within_the_limit(value: str, limit: int) -> None:
    kept, cut = clip(value, limit)
    assert value.startswith(kept)
    assert len(kept.encode()) <= limit
    assert cut == (len(value.encode()) > limit)
    assert cut or kept == value
    assert not cut or len(value[: len(kept) + 1].encode()) > limit, "no character more would have fitted"


def test_a_long_list_becomes_its_json_text_cut() -> None:
    kept, cut = clip(["x" * 10] * 10, 20)
    assert (kept, cut) == ('["xxxxxxxxxx","xxxxx', True)
    assert clip(["x"], 20) == (["x"], False)


@pytest.mark.parametrize("where", ["attribute", "name", "event", "resource", "status"])
def test_a_cut_value_is_flagged_on_its_span(where: str) -> None:
    long = "é" * MAX_VALUE_BYTES
    row = {
        "attribute": lambda: row_of({"stack": long}),
        "name": lambda: row_of(name=long),
        "event": lambda: row_of(events=[make_event("exception", exception__stacktrace=long)]),
        "resource": lambda: row_of(resource={"process.command_line": long}),
        "status": lambda: row_of(status={"code": 2, "message": long}),
    }[where]()
    assert row["quality"] == "truncated"
    assert len(str(row).encode()) < 2 * MAX_VALUE_BYTES
    assert row_of({"stack": "short"})["quality"] is None
