"""Langfuse's export: the requests of recorded frameworks with their tokens, each once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collector.files import FileKind
from collector.otlp.content import ContentOptions
from store.database import Database
from store.errors import SourceError
from store.tables import INFERENCE_OPERATIONS
from tests.collector.files.traces.taking import Row, attributes, take, take_file

START, END = "2026-11-30T12:00:00.000Z", "2026-11-30T12:00:02.500Z"


def observation(**fields: Any) -> dict[str, Any]:
    return {
        "id": "00f067aa0ba902b7",
        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
        "type": "GENERATION",
        "startTime": START,
        "endTime": END,
        "name": "llm",
        "parentObservationId": None,
        "completionStartTime": None,
        "metadata": {},
        "level": "DEFAULT",
        "model": "gpt-4o",
        "usageDetails": {"input": 10, "output": 5, "total": 15},
        **fields,
    }


def export(*observations: dict[str, Any], **trace: Any) -> dict[str, Any]:
    return {
        "trace": {"id": "4bf92f3577b34da6a3ce929d0e0e4736", "name": "t", **trace},
        "observations": list(observations),
    }


def one(folder: Path, document: object, **options: Any) -> Row:
    _, [row] = take(folder, document, **options)
    return row


def requests(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["operation"] in INFERENCE_OPERATIONS]


@pytest.mark.parametrize(
    ("name", "spans", "models", "tokens", "cost_usd"),
    [
        ("agno-2025-06-11", 6, {"gpt-4o-mini"}, [(163, 20), (663, 225)], 0.0002709),
        ("google-adk-2025-08-28", 5, {"gemini-2.0-flash"}, [(28, 3), (39, 6)], 1.03e-05),
        ("google-vertex-tools-langchain-2025-09-19", 1, {"gemini-2.5-flash"}, [(1200, 15)], 0.00011),
        ("koog-2025-08-26", 11, {"gpt-4o"}, [(47, 106), (168, 19)], 0.0017875),
        ("langgraph-2025-08-22", 9, {"gpt-4o-2024-08-06"}, [(60, 15), (108, 51)], None),
        ("llamaindex-2025-06-05", 2, {"gpt-4o"}, [(13, 81)], 0.0008425),
        ("microsoft-agent-2025-10-14", 4, {"gpt-4o"}, [(25, 70), (631, 35)], 0.00269),
        ("openai-agents-2025-09-30", 5, {"gpt-4.1-2025-04-14"}, [(55, 15), (85, 29)], 0.000632),
        ("openai-assistants-2024-05-29", 4, {"gpt-4"}, [(49, 40)], 0.00387),
    ],
)
def test_recorded_frameworks_give_each_model_request_once(
    shared: Path, name: str, spans: int, models: set[str], tokens: list[tuple[int, int]], cost_usd: float | None
) -> None:
    imported, rows = take_file(shared / "data" / "genai_spans" / f"langfuse_{name}.json")
    assert (imported.kind, imported.refused, len(rows)) == (FileKind.LANGFUSE, {}, spans)
    made = requests(rows)
    assert sorted((row["input_tokens"], row["output_tokens"]) for row in made) == tokens
    assert {row["model"] for row in made} == models
    if cost_usd is not None:
        assert sum(row["cost_usd"] for row in made) == pytest.approx(cost_usd, abs=1e-8)


def test_times_are_those_that_langfuse_recorded(shared: Path) -> None:
    """`latency` is in ms in one export and in seconds in the other; the two times say it in both."""
    for name, latency_s in (("llamaindex-2025-06-05", 2.776), ("google-vertex-tools-langchain-2025-09-19", 1.874)):
        _, rows = take_file(shared / "data" / "genai_spans" / f"langfuse_{name}.json")
        [row] = requests(rows)
        assert (row["duration_s"], row["e2e_s"]) == (latency_s, latency_s)


def test_children_stay_below_their_parents_also_where_ids_are_no_hex(shared: Path) -> None:
    for path in sorted((shared / "data" / "genai_spans").glob("langfuse_*.json")):
        _, rows = take_file(path)
        ids = {row["span_id"] for row in rows}
        assert {row["parent_span_id"] for row in rows if row["parent_span_id"]} <= ids
        assert len({row["trace_id"] for row in rows}) == 1


def test_no_prompt_leaves_the_file_unless_it_is_asked_for(shared: Path) -> None:
    said = {"openai-agents-2025-09-30": "You are a helpful agent", "google-adk-2025-08-28": "Always greet using"}
    for name, words in said.items():
        path = shared / "data" / "genai_spans" / f"langfuse_{name}.json"
        assert words in path.read_text()
        assert words not in json.dumps(take_file(path)[1], default=str)
        kept = take_file(path, content=ContentOptions(store_content=True, max_value_bytes=100_000))[1]
        assert words in json.dumps(kept, default=str)


def texts(value: object) -> Iterator[str]:
    """Sentences anywhere in a value, and in the JSON that a text of it holds."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except json.JSONDecodeError:
            inner = None
        if isinstance(inner, dict | list):
            yield from texts(inner)
        elif value.count(" ") > 2:
            yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(item)


def test_no_sentence_of_any_input_or_output_is_stored_but_for_what_a_tool_says_of_itself(shared: Path) -> None:
    for path in sorted((shared / "data" / "genai_spans").glob("langfuse_*.json")):
        document = json.loads(path.read_text())
        every = [document["trace"], *document["observations"]]
        said = {text for one in every for key in ("input", "output") for text in texts(one.get(key))}
        stored = " ".join(text for row in take_file(path)[1] for text in row.values() if isinstance(text, str))
        known = {text for text in said if json.dumps(text, ensure_ascii=False)[1:-1] in stored}
        assert said
        assert known <= {"Use this function to search DuckDuckGo for a query."}


def test_a_generation_around_another_one_is_no_request(tmp_path: Path) -> None:
    outer, inner = observation(), observation(id="1" * 16, parentObservationId="00f067aa0ba902b7")
    _, rows = take(tmp_path, export(outer, inner))
    assert [(row["operation"], row["input_tokens"]) for row in rows] == [(None, 10), ("inference", 10)]


def test_a_generation_below_a_tool_of_a_generation_is_a_request_of_its_own(tmp_path: Path) -> None:
    outer = observation()
    tool = observation(id="1" * 16, type="TOOL", parentObservationId="00f067aa0ba902b7", usageDetails={}, model=None)
    inner = observation(id="2" * 16, parentObservationId="1" * 16)
    _, rows = take(tmp_path, export(outer, tool, inner))
    assert [row["operation"] for row in rows] == ["inference", "execute_tool", "inference"]


def test_a_span_that_langfuse_calls_no_generation_is_no_request_whatever_it_states(tmp_path: Path) -> None:
    metadata = {"attributes": {"gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": "7"}}
    row = one(tmp_path, export(observation(type="SPAN", metadata=metadata, usageDetails={})))
    assert (row["operation"], row["kind"]) == (None, "internal")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input": 100, "output": 9, "total": 109, "input_cache_read": 80}, (100, 9, 80, None)),
        ({"input": 20, "output": 9, "total": 109, "input_cached_tokens": 80}, (100, 9, 80, None)),
        ({"input": 20, "output": 2, "total": 109, "input_cache_read": 80, "output_reasoning": 7}, (100, 9, 80, 7)),
        ({"input": 13, "output": 81, "total": 94, "completion_details.reasoning": 3}, (13, 81, None, 3)),
    ],
)
def test_details_count_once_whether_they_stand_inside_or_beside(
    tmp_path: Path, usage: dict[str, int], expected: tuple[int | None, ...]
) -> None:
    row = one(tmp_path, export(observation(usageDetails=usage)))
    assert tuple(row[f"{n}_tokens"] for n in ("input", "output", "cached_input", "reasoning")) == expected


@pytest.mark.parametrize(
    "usage",
    [
        {"usage": {"input": 10, "output": 5, "unit": "TOKENS"}}, {"inputUsage": 10, "outputUsage": 5},
        {"promptTokens": 10, "completionTokens": 5, "totalTokens": 15},
    ],
)  # fmt: skip
def test_usage_is_read_in_the_forms_of_all_versions(tmp_path: Path, usage: dict[str, Any]) -> None:
    row = one(tmp_path, export(observation(**{"usageDetails": None, **usage})))
    assert (row["input_tokens"], row["output_tokens"]) == (10, 5)


def test_usage_of_zero_in_all_kinds_is_none_that_was_sent(tmp_path: Path) -> None:
    row = one(tmp_path, export(observation(usageDetails={"input": 0, "output": 0, "total": 0}, totalCost=0)))
    assert (row["input_tokens"], row["output_tokens"], row["cost_usd"]) == (None, None, None)


@pytest.mark.parametrize(
    ("fields", "ttft_s"),
    [
        ({"completionStartTime": "2026-11-30T12:00:00.400Z"}, 0.4),
        ({"timeToFirstToken": 400, "latency": 2500}, 0.4),
        ({"timeToFirstToken": 0.4, "latency": 2.5}, 0.4),
        ({"timeToFirstToken": 0.4}, None),
        ({"completionStartTime": "2026-11-30T11:59:59.000Z"}, None),
    ],
)
def test_the_first_token_is_timed_where_langfuse_states_it(
    tmp_path: Path, fields: dict[str, Any], ttft_s: float | None
) -> None:
    row = one(tmp_path, export(observation(**fields)))
    assert row["ttft_s"] == ttft_s
    assert row["ttft_source"] == ("client" if ttft_s else None)


def test_parameters_of_the_request_become_columns(tmp_path: Path) -> None:
    parameters = {"temperature": 0, "top_p": 0.9, "max_tokens": "256", "is_stream": True, "system": "Be kind."}
    row = one(tmp_path, export(observation(modelParameters=parameters)))
    assert (row["temperature"], row["top_p"], row["max_tokens"], row["stream"]) == (0.0, 0.9, 256, True)
    assert "Be kind." not in str(row)
    assert one(tmp_path, export(observation(modelParameters={"max_tokens": -1})))["max_tokens"] is None


def test_a_failed_observation_is_an_error(tmp_path: Path) -> None:
    row = one(tmp_path, export(observation(level="ERROR", statusMessage="rate limited")))
    assert (row["status"], row["status_message"], row["error_code"]) == ("error", "rate limited", "_OTHER")


def test_what_is_known_of_session_user_environment_and_foreign_ids_is_kept(tmp_path: Path) -> None:
    foreign = observation(id="obs-1", traceId="trace-1", environment="prod")
    row = one(tmp_path, export(foreign, sessionId="s1", userId="u1"))
    assert row["environment"] == "prod"
    assert attributes(row) == {
        "langfuse.observation.type": "generation", "langfuse.observation.id": "obs-1", "langfuse.trace.id": "trace-1",
        "langfuse.trace.name": "t", "session.id": "s1", "user.id": "u1",
    }  # fmt: skip


@pytest.mark.parametrize("form", ["answer", "list", "embedded", "bare", "lines"])
def test_every_form_of_an_export_is_told_and_read(tmp_path: Path, form: str) -> None:
    documents = {
        "answer": {"data": [observation()], "meta": {}},
        "list": [export(observation())],
        "embedded": {"id": "t", "name": "t", "observations": [observation()]},
        "bare": [observation()],
        "lines": json.dumps(observation()) + "\n",
    }
    imported, rows = take(tmp_path, documents[form])
    assert (imported.kind, len(rows)) == (FileKind.LANGFUSE, 1)


def test_an_export_whose_prompt_fills_the_beginning_of_the_file_is_told(tmp_path: Path) -> None:
    imported, _ = take(tmp_path, export(observation(), input="x" * 100_000))
    assert imported.kind is FileKind.LANGFUSE


def test_a_time_without_a_zone_follows_the_stated_zone(tmp_path: Path) -> None:
    row = one(tmp_path, export(observation(startTime="2026-11-30 13:00:00.000")), time_zone="Europe/Berlin")
    assert row["ts"].hour == 12
    assert row["duration_s"] == 2.5


def test_one_bad_observation_loses_no_other_and_is_named(tmp_path: Path) -> None:
    bad = observation(id="1" * 16, startTime="soon")
    imported, rows = take(
        tmp_path, export(bad, observation(), observation(id=None), observation(id="2" * 16, endTime=None))
    )
    assert [row["quality"] for row in rows] == [None, "open_end"]
    assert {why: (r.count, r.first.rpartition(" ")[2]) for why, r in imported.refused.items()} == {
        "invalid_time": (1, "1"), "invalid_span_id": (1, "3"),
    }  # fmt: skip


def test_a_label_names_the_service(tmp_path: Path) -> None:
    assert one(tmp_path, export(observation()), labels={"service": "agents"})["service"] == "agents"


def test_a_trace_without_observations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no observation of Langfuse"):
        take(tmp_path, export(), kind=FileKind.LANGFUSE)


def test_the_same_export_twice_stores_nothing_twice(shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / "genai_spans" / "langfuse_openai-assistants-2024-05-29.json"
    with Database(tmp_path / "store") as store:
        receipts = [store.append(take_file(path)[0].batches)[0] for _ in range(2)]
    assert [(r.stored.get("spans", 0), r.duplicates.get("spans", 0)) for r in receipts] == [(4, 0), (0, 4)]
