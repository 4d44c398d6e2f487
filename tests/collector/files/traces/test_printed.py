"""Spans as an SDK prints them, and bare attributes: one model request once, with its TTFT and tokens."""

import json
from pathlib import Path
from typing import Any

import pytest

from collector.files import FileKind, sniff
from store.errors import UsageError
from store.tables import INFERENCE_OPERATIONS
from tests.collector.files.traces.taking import AT, attributes, take, take_file

LLM = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4", "llm.token_count.prompt": 97}


def printed(**fields: Any) -> dict[str, Any]:
    return {
        "name": "chat",
        "spanContext": {"traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7"},
        "startTime": [1_796_040_000, 250_000_000],
        "endTime": [1_796_040_001, 0],
        "attributes": {},
        **fields,
    }


def vercel(shared: Path, name: str) -> Path:
    return shared / "data" / "genai_spans" / f"openinference-vercel__ai-{name}.json"


def test_a_stream_of_the_vercel_sdk_has_its_stated_first_chunk_finish_and_model(shared: Path) -> None:
    imported, [row] = take_file(vercel(shared, "streamText-doStream"))
    assert imported.kind is FileKind.SDK_SPANS
    assert (row["operation"], row["provider"], row["request_model"]) == ("chat", "openai", "gpt-4o-mini")
    assert row["ttft_s"] * 1000 == pytest.approx(426.85, abs=0.005)
    assert row["e2e_s"] * 1000 == pytest.approx(5385.00, abs=0.005)
    assert (row["input_tokens"], row["output_tokens"], row["ttft_source"]) == (15, 112, "client")
    assert row["duration_s"] == 5.386307375
    assert [event["name"] for event in json.loads(row["events"])] == ["ai.stream.firstChunk", "ai.stream.finish"]


@pytest.mark.parametrize(
    ("name", "operation", "tokens"),
    [
        ("streamText", None, []),
        ("streamText-doStream", "chat", [(15, 112)]),
        ("generateText", None, []),
        ("generateText-doGenerate", "chat", [(14, 20), (50, 9)]),
        ("embed", None, []),
        ("embed-doEmbed", "embeddings", [(10, None)]),
    ],
)
def test_only_the_inner_span_of_the_vercel_sdk_counts_tokens(
    shared: Path, name: str, operation: str | None, tokens: list[tuple[int, int | None]]
) -> None:
    _, rows = take_file(vercel(shared, name))
    made = [row for row in rows if row["operation"] in INFERENCE_OPERATIONS]
    assert [(row["input_tokens"], row["output_tokens"]) for row in made] == tokens
    assert {row["operation"] for row in made} == ({operation} if operation else set())


@pytest.mark.parametrize(
    ("name", "operation", "tokens"),
    [
        ("openinference_client_span_input_output_only", "inference", (97, 52)),
        ("openinference_client_span_tool_calls", "inference", (97, 52)),
        ("otel_genai_client_span_tool_calls", "chat", (97, 52)),
        ("otel_genai_deprecated_client_span_tool_calls", "chat", (97, 52)),
        ("otel_genai_tool_execution_span", "execute_tool", (None, None)),
    ],
)
def test_bare_attributes_are_a_span_at_the_stated_time(
    shared: Path, name: str, operation: str, tokens: tuple[int | None, int | None]
) -> None:
    path = shared / "data" / "genai_spans" / f"openinference-genai__{name}.json"
    with pytest.raises(UsageError, match="attributes of a span without its time") as caught:
        take_file(path)
    assert "--time" in caught.value.hint
    _, [row] = take_file(path, at=AT)
    assert (row["operation"], (row["input_tokens"], row["output_tokens"])) == (operation, tokens)
    assert (row["ts"], row["duration_s"], row["quality"]) == (AT.replace(tzinfo=None), None, "no_time")
    if tokens[0]:
        assert (row["model"], row["provider"]) == ("gpt-4-0613", "openai")
        assert (row["temperature"], row["top_p"], row["max_tokens"]) == (0.5, 0.9, 200)
    assert "Paris" not in str(row)


def test_kind_parent_resource_scope_events_and_links_of_the_sdk(tmp_path: Path) -> None:
    document = printed(
        kind=2,
        parentSpanContext={"spanId": "00f067aa0ba902b6"},
        status={"code": 2, "message": "boom"},
        resource={"attributes": {"service.name": "gateway"}},
        instrumentationScope={"name": "ai"},
        events=[{"name": "first_token", "time": [1_796_040_000, 500_000_000], "attributes": {"n": 1}}],
        links=[{"context": {"traceId": "b" * 32, "spanId": "a" * 16}, "attributes": {"why": "retry"}}],
        attributes={"gen_ai.operation.name": "chat"},
    )
    _, [row] = take(tmp_path, [document])
    assert (row["kind"], row["parent_span_id"], row["status"]) == ("client", "00f067aa0ba902b6", "error")
    assert (row["service"], row["scope"], row["ttft_s"], row["duration_s"]) == ("gateway", "ai", 0.25, 0.75)
    assert json.loads(row["events"])[0]["attributes"] == {"n": 1}
    assert json.loads(row["links"]) == [
        {"trace_id": "b" * 32, "span_id": "a" * 16, "attributes": {"why": "retry"}},
    ]  # fmt: skip


def test_an_older_sdk_names_the_parent_by_its_id(tmp_path: Path) -> None:
    _, [row] = take(tmp_path, [printed(parentSpanId="00f067aa0ba902b6")])
    assert row["parent_span_id"] == "00f067aa0ba902b6"


def test_one_bad_span_loses_no_other_and_is_named(tmp_path: Path) -> None:
    bad = [printed(startTime=[1]), printed(spanContext={}), "no span", printed(startTime=None)]
    imported, rows = take(tmp_path, [printed(), *bad, printed(endTime=None)])
    assert [row["quality"] for row in rows] == [None, "open_end"]
    assert {why: (r.count, r.first.rpartition(" ")[2]) for why, r in imported.refused.items()} == {
        "invalid_time": (1, "2"), "invalid_trace_id": (1, "3"), "no JSON object": (1, "4"),
        "missing_start_time": (1, "5"),
    }  # fmt: skip


def test_values_of_any_depth_and_size_lose_no_span(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(90):
        deep = [deep]
    _, [row] = take(tmp_path, [printed(attributes={"deep": deep, "huge": 2**70, "none": None, "map": {"a": [1, 2.5]}})])
    assert attributes(row)["map"] == {"a": [1, 2.5]}
    assert attributes(row)["huge"] == 2.0**70


def test_equal_attributes_twice_are_two_spans_and_the_file_again_is_none_more(tmp_path: Path) -> None:
    (_, first), (_, again) = (take(tmp_path, [LLM, LLM], at=AT) for _ in range(2))
    assert len({row["span_id"] for row in first}) == 2
    assert [row["span_id"] for row in first] == [row["span_id"] for row in again]
    assert (first[1]["ts"] - first[0]["ts"]).microseconds == 1


def test_a_table_with_a_column_of_times_is_a_request_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"timestamp": 1_796_040_000, "ttft": 0.5, **LLM}) + "\n")
    assert sniff(path) is FileKind.REQUESTS


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '[{"messages": "gen_ai.operation.name"}]', '{"openinference.span.kind": 1}']
)
def test_other_json_is_not_taken_for_attributes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    assert sniff(path, None) is FileKind.SERIES


def test_token_arrivals_of_a_stream_are_kept_under_the_label_of_its_service(tmp_path: Path) -> None:
    events = [
        {"name": "gen_ai.content.completion.chunk", "time": [1_796_040_000, at * 1_000_000], "attributes": {}}
        for at in (300, 400, 500)
    ]
    document = printed(attributes={"gen_ai.operation.name": "chat"}, events=events)
    imported, [row] = take(tmp_path, [document], labels={"service": "mine"})
    [arrivals] = imported.batches[0].frames["token_arrivals"].to_dicts()
    assert (arrivals["span_id"], arrivals["service"]) == (row["span_id"], "mine")
    assert arrivals["offsets_us"] == [50_000, 150_000, 250_000]
    assert row["ttft_s"] == pytest.approx(0.05)
