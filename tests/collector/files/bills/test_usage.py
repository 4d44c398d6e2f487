"""Usage and cost reports of LLM providers, spend logs of gateways, event streams."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from collector.files.bills.requests import operation_of, provider_of
from collector.files.options import FileKind, ImportOptions
from store.errors import SourceError, UsageError
from tests.collector.files.bills.bills import costs, imported, spans

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def anthropic(*results: dict[str, Any]) -> dict[str, Any]:
    bucket = {"starting_at": "2026-11-01T00:00:00Z", "ending_at": "2026-11-02T00:00:00Z", "results": list(results)}
    return {"data": [bucket], "has_more": False, "next_page": None}


def openai(kind: str, *results: dict[str, Any]) -> dict[str, Any]:
    rows = [{"object": f"organization.{kind}.result", **result} for result in results]
    bucket = {"object": "bucket", "start_time": 1793491200, "end_time": 1793577600, "results": rows}
    return {"object": "page", "data": [bucket], "has_more": False}


def test_costs_of_anthropic_are_stated_in_cents(tmp_path: Path) -> None:
    page = anthropic({"amount": "123.45", "currency": "USD", "model": "claude", "token_type": "output_tokens"})
    found = imported(tmp_path, json.dumps(page), name="cost.json")
    line = costs(found).row(0, named=True)
    assert found.kind is FileKind.LLM_USAGE
    assert (line["billed_cost"], line["currency"], line["tokens_kind"]) == (Decimal("1.2345"), "USD", "output")
    assert (line["source"], line["ts"]) == ("anthropic_costs", datetime(2026, 11, 1))


def test_usage_of_anthropic_counts_both_lives_of_a_cache_write(tmp_path: Path) -> None:
    result = {
        "uncached_input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 50, "model": "claude",
        "cache_creation": {"ephemeral_1h_input_tokens": 30, "ephemeral_5m_input_tokens": 20},
        "server_tool_use": {"web_search_requests": 2}, "workspace_id": "w", "api_key_id": "k", "service_tier": "batch",
    }  # fmt: skip
    lines = costs(imported(tmp_path, json.dumps(anthropic(result)), name="usage.json"))
    tokens = dict(zip(lines["tokens_kind"], lines["quantity"], strict=True))
    assert tokens == {"input": 100, "cached_input": 900, "cache_write": 50, "output": 50, None: 2}
    assert set(lines["tenant"]) == {"k"}
    assert all('"service_tier": "batch"' in tags for tags in lines["tags"])


def test_older_usage_pages_of_openai_state_no_uncached_part(tmp_path: Path) -> None:
    page = openai("usage.completions", {"input_tokens": 100, "input_cached_tokens": 60, "output_tokens": 5})
    lines = costs(imported(tmp_path, json.dumps(page), name="usage.json"))
    assert dict(zip(lines["tokens_kind"], lines["quantity"], strict=True)) == {
        "input": 40, "cached_input": 60, "output": 5,
    }  # fmt: skip


def test_the_open_bucket_is_restated_by_the_next_report(tmp_path: Path) -> None:
    reports = [
        costs(
            imported(tmp_path, json.dumps(openai("costs", {"amount": {"value": v, "currency": "usd"}})), name="c.json")
        )
        for v in (0.5, "0.75")
    ]
    assert reports[0]["line_id"].to_list() == reports[1]["line_id"].to_list()
    assert [frame["billed_cost"][0] for frame in reports] == [0.5, 0.75]


def test_groups_are_lines_of_their_own(tmp_path: Path) -> None:
    amount = {"amount": {"value": 1, "currency": "usd"}}
    page = openai("costs", amount | {"line_item": "gpt-4o, input"}, amount | {"project_id": "p"}, amount)
    lines = costs(imported(tmp_path, json.dumps(page), name="c.json"))
    assert lines["line_id"].n_unique() == 3
    assert lines["model"].to_list() == ["gpt-4o", None, None]


def test_pages_one_a_line_are_read_and_a_broken_bucket_is_counted(tmp_path: Path) -> None:
    good, bad = (openai("costs", {"amount": {"value": v, "currency": "usd"}}) for v in (1, "much"))
    found = imported(tmp_path, f"{json.dumps(good)}\n{json.dumps(bad)}\n", name="c.jsonl")
    assert costs(found).height == 1
    assert found.refused["unreadable bucket"].count == 1


def test_a_report_cut_short_is_no_report(tmp_path: Path) -> None:
    text = json.dumps(openai("costs", {"amount": {"value": 1, "currency": "usd"}}), indent=1)
    with pytest.raises(SourceError, match=r"c.json:\d+: broken JSON"):
        imported(tmp_path, text[:-20], name="c.json")


LITELLM: dict[str, Any] = {
    "request_id": "chatcmpl-1", "call_type": "acompletion", "api_key": "hash", "spend": 0.00125, "total_tokens": 120,
    "prompt_tokens": 100, "completion_tokens": 20, "startTime": "2026-11-30T10:00:00.000Z",
    "endTime": "2026-11-30T10:00:02.500Z", "completionStartTime": "2026-11-30T10:00:00.400Z", "model": "gpt-4o",
    "custom_llm_provider": "openai", "team_id": "search", "status": "success", "request_tags": [],
    "messages": [{"role": "user", "content": "a secret"}], "response": {"choices": [{"text": "another secret"}]},
}  # fmt: skip


def test_a_spend_log_is_requests_and_their_charges(tmp_path: Path) -> None:
    failed = LITELLM | {
        "request_id": "chatcmpl-2", "status": "failure", "spend": 0, "completionStartTime": LITELLM["endTime"],
        "metadata": {"error_information": {"error_code": "429"}},
    }  # fmt: skip
    found = imported(tmp_path, json.dumps([LITELLM, failed]), name="spend.json")
    rows, lines = spans(found), costs(found)
    first, second = rows.rows(named=True)
    assert found.kind is FileKind.LLM_USAGE
    assert (first["operation"], first["e2e_s"], first["ttft_s"], first["cost_usd"]) == ("chat", 2.5, 0.4, 0.00125)
    assert (second["error_code"], second["ttft_s"]) == ("HTTP_429", None)
    assert lines.select("billed_cost", "currency", "tenant", "requests").row(0) == (
        Decimal("0.00125"),
        "USD",
        "search",
        1,
    )
    assert "secret" not in "".join(text or "" for text in (*rows["attributes"], *lines["tags"]))


def test_a_spend_log_again_is_the_same_rows(tmp_path: Path) -> None:
    one, two = (imported(tmp_path, json.dumps([LITELLM]), name=f"{name}.json") for name in ("a", "b"))
    assert spans(one)["span_id"].to_list() == spans(two)["span_id"].to_list()
    assert costs(one)["line_id"].to_list() == costs(two)["line_id"].to_list()


def stream(*events: dict[str, Any], done: bool = True) -> str:
    lines = [f"data: {json.dumps(event)}" for event in events]
    return "\n\n".join([*lines, *(["data: [DONE]"] if done else [])]) + "\n"


def test_a_stream_of_anthropic_is_one_request(tmp_path: Path) -> None:
    start = {
        "id": "msg_1",
        "model": "claude",
        "usage": {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 1},
    }
    text = stream(
        {"type": "message_start", "message": start},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 42}},
        {"type": "message_stop"},
        done=False,
    )
    row = spans(imported(tmp_path, text, ImportOptions(at=NOON), name="a.sse")).row(0, named=True)
    assert (row["input_tokens"], row["output_tokens"], row["finish_reason"]) == (100, 42, "end_turn")
    assert (row["model"], row["request_id"], row["quality"]) == ("claude", "msg_1", "no_time")


def test_streams_of_one_file_are_told_by_their_ids_and_dated_by_their_events(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        {"id": name, "created": 1796000000, "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": number}}
        for name in ("x", "y")
        for number in (1, 2)
    ]
    rows = spans(imported(tmp_path, stream(*events), name="a.sse"))
    assert rows["request_id"].to_list() == ["x", "y"]
    assert rows["output_tokens"].to_list() == [2, 2]
    assert rows["finish_reason"].to_list() == ["cancelled", None]
    assert set(rows["ts"]) == {datetime(2026, 11, 30, 0, 53, 20)}


def test_a_stream_without_a_time_asks_for_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no event says when"):
        imported(tmp_path, stream({"id": "x", "choices": [], "usage": {"prompt_tokens": 1}}), name="a.sse")


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("api.openai.com", "openai"), ("acme.openai.azure.com", "azure.ai.openai"), ("api.x.ai", "x_ai"),
        ("api.cloud.llamaindex.ai", None), ("bedrock-runtime.us-east-1.amazonaws.com", "aws.bedrock"), (None, None),
    ],
)  # fmt: skip
def test_a_host_is_known_by_its_whole_domain(host: str | None, provider: str | None) -> None:
    assert provider_of(host) == provider


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("POST", "/v1/chat/completions", "chat"), ("post", "/v1/embeddings?x=1", "embeddings"),
        ("GET", "/v1/threads/t/runs/r", None), ("POST", "/v1/threads/t/messages", None),
        ("POST", "/model/anthropic.claude-v2/invoke", "inference"), (None, None, None),
    ],
)  # fmt: skip
def test_an_operation_is_told_by_the_path(method: str | None, path: str | None, operation: str | None) -> None:
    assert operation_of(method, path) == operation
