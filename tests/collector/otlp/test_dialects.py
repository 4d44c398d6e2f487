"""The reader table and what it makes of each dialect's spans."""

import json
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector.otlp.dialects import RESOURCE_INDEX, RESOURCE_NAMES, SPAN_INDEX, SPAN_NAMES
from store.tables import SPANS
from tests.collector.otlp.builders import make_event, row_of


def test_every_column_of_the_reader_tables_is_a_stored_column() -> None:
    assert {*SPAN_NAMES, *RESOURCE_NAMES} <= set(SPANS.names)


def test_no_attribute_name_feeds_two_columns() -> None:
    for table in (SPAN_NAMES, RESOURCE_NAMES):
        names = [name for column in table.values() for name, _ in column]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(("column", "name"), [(c, name) for c, names in SPAN_NAMES.items() for name, _ in names])
def test_every_name_of_the_table_fills_its_column_over_the_wire(column: str, name: str) -> None:
    special = {
        "rpc.grpc.status_code": "14",
        "rpc.response.status_code": "14",
        "langfuse.observation.cost_details": '{"total": 7}',
    }
    value = special.get(name, {"error_code": "503", "stream": "true"}.get(column, "7"))
    row = row_of({name: value})
    assert row[column] is not None
    assert row[column] == SPAN_INDEX[name][2](value)
    assert name not in (row["attributes"] or "")


RESOURCE_CASES = [(c, name) for c, names in RESOURCE_NAMES.items() for name, _ in names]


@pytest.mark.parametrize(("column", "name"), RESOURCE_CASES)
def test_every_name_of_the_resource_table_fills_its_column_of_a_request(column: str, name: str) -> None:
    row = row_of({"gen_ai.operation.name": "chat"}, resource={name: "x"})
    assert (row[column], row["resource"]) == ("x", None)
    other = row_of(resource={name: "x"})
    assert other[column] == (None if column in ("provider", "model") else "x"), "a span that is no request has no model"


def test_resource_attributes_fill_columns_and_the_rest_is_kept() -> None:
    resource = {
        "service.name": "gw", "service.version": "2", "deployment.environment": "prod", "host.name": "n1",
        "k8s.cluster.name": "c1", "cloud.provider": "aws", "cloud.region": "eu-west-1",
        "cloud.availability_zone": "eu-west-1a", "team": "search",
    }  # fmt: skip
    row = row_of(resource=resource)
    stated = [row[c] for c in RESOURCE_NAMES if c not in ("provider", "model")]
    assert stated == ["gw", "2", "prod", "n1", "c1", "aws", "eu-west-1", "eu-west-1a"]
    assert json.loads(row["resource"]) == {"team": "search"}
    assert set(RESOURCE_INDEX) >= set(resource) - {"team"}


def expect(row: dict[str, Any], **columns: Any) -> None:
    assert {name: row[name] for name in columns} == columns


def test_a_vllm_span_is_a_request_of_an_engine() -> None:
    attributes = {
        "gen_ai.latency.time_to_first_token": 0.35, "gen_ai.latency.e2e": 2.0, "gen_ai.latency.time_in_queue": 0.05,
        "gen_ai.latency.time_in_model_prefill": 0.3, "gen_ai.latency.time_in_model_decode": 1.65,
        "gen_ai.latency.time_in_model_inference": 1.95, "gen_ai.usage.prompt_tokens": 1200,
        "gen_ai.usage.completion_tokens": 76, "gen_ai.request.id": "r1", "gen_ai.request.n": 1,
        "gen_ai.request.max_tokens": 80, "gen_ai.request.top_p": 0.9, "gen_ai.request.temperature": 0.5,
    }  # fmt: skip
    row = row_of(attributes, name="llm_request", kind=Span.SPAN_KIND_SERVER, scope="vllm.tracing.otel")
    expect(
        row, operation="inference", provider="vllm", model=None, input_tokens=1200, output_tokens=76, ttft_s=0.35,
        ttft_source="server", queue_s=0.05, prefill_s=0.3, decode_s=1.65, inference_s=1.95, e2e_s=2.0, request_id="r1",
        choices=1, max_tokens=80, top_p=0.9, temperature=0.5, attributes=None,
    )  # fmt: skip
    assert row["tpot_s"] == pytest.approx((2.0 - 0.35) / 75)


def test_a_vllm_start_up_span_is_no_request() -> None:
    code = {"code.function": "load_model", "code.namespace": "vllm", "code.lineno": 12}
    row = row_of(code, name="Load model", scope="vllm.tracing.otel")
    expect(row, operation=None, provider=None, e2e_s=None, ttft_s=None, tpot_s=None, duration_s=1.0)
    assert json.loads(row["attributes"]) == code


def test_an_sglang_root_span_is_read_with_its_json_finish_reason() -> None:
    attributes = {
        "rid": "abc", "module": "sglang::request", "gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.cached_tokens": 4,
        "gen_ai.usage.completion_tokens": 2, "gen_ai.response.model": "qwen",
        "gen_ai.response.finish_reasons": '[{"type": "length"}]', "gen_ai.latency.time_to_first_token": 0.1,
    }  # fmt: skip
    row = row_of(attributes, name=" Req abc")
    expect(
        row, operation="inference", provider="sglang", model="qwen", response_model="qwen", cached_input_tokens=4,
        finish_reason="length", request_id="abc", ttft_source="server",
    )  # fmt: skip
    expect(row_of({"module": "sglang::request"}, name="decode_forward"), operation=None, provider=None)


def test_both_generations_of_the_conventions_are_read() -> None:
    new = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "a",
        "gen_ai.response.model": "b", "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 2, "gen_ai.usage.cache_write.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 1, "gen_ai.response.time_to_first_chunk": 0.2,
        "gen_ai.request.stream": True, "gen_ai.request.choice.count": 2, "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.id": "x",
    }  # fmt: skip
    old = {
        "gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "a",
        "gen_ai.response.model": "b", "gen_ai.usage.prompt_tokens": "9", "gen_ai.usage.completion_tokens": "3",
        "gen_ai.usage.cache_read_input_tokens": 2, "gen_ai.usage.cache_creation.input_tokens": 1,
        "gen_ai.usage.reasoning_tokens": 1, "gen_ai.response.time_to_first_chunk": "0.2", "llm.is_streaming": "true",
        "gen_ai.request.n": 2, "gen_ai.response.finish_reason": "stop", "gen_ai.request.id": "x",
    }  # fmt: skip
    assert row_of(new) == row_of(old)
    expect(row_of(new), model="b", request_model="a", response_model="b", ttft_source="client", stream=True, e2e_s=1.0)


def test_openinference_spans_count_once() -> None:
    usage = {"llm.token_count.prompt": 97, "llm.token_count.completion": 52, "llm.model_name": "gpt-4-0613"}
    llm = row_of({"openinference.span.kind": "LLM", "llm.provider": "openai", "llm.cost.total": 0.01, **usage})
    expect(llm, operation="inference", model="gpt-4-0613", request_model=None, input_tokens=97, cost_usd=0.01)
    chain = row_of({"openinference.span.kind": "CHAIN", **usage})
    expect(chain, operation="chain", e2e_s=None)


@pytest.mark.parametrize(
    ("attributes", "operation"),
    [
        ({"llm.request.type": "completion"}, "text_completion"),
        ({"llm.request.type": "unknown", "gen_ai.usage.input_tokens": 1}, "inference"),
        ({"traceloop.span.kind": "workflow", "gen_ai.usage.input_tokens": 1}, "invoke_workflow"),
        ({"openinference.span.kind": "AGENT"}, "invoke_agent"),
        ({"gen_ai.operation.name": "execute_tool"}, "execute_tool"),
        ({"gen_ai.request.model": "m"}, "inference"),  # refused before any token: still a request
        ({"http.status_code": 200}, None),
    ],
)
def test_operations(attributes: dict[str, Any], operation: str | None) -> None:
    assert row_of(attributes)["operation"] == operation


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"error.type": "429"}, "HTTP_429"),
        ({"error.type": "_OTHER", "http.response.status_code": 503}, "HTTP_503"),
        ({"http.status_code": "429"}, "HTTP_429"),
        ({"http.status_code": 200}, None),
        ({"rpc.grpc.status_code": 14}, "GRPC_UNAVAILABLE"),
    ],
)
def test_error_codes_come_from_attributes(attributes: dict[str, Any], code: str | None) -> None:
    assert row_of(attributes)["error_code"] == code


def test_an_error_without_attributes_is_named_by_its_last_exception() -> None:
    failed = Status(code=Status.STATUS_CODE_ERROR, message="boom")
    events = [
        make_event("exception", exception__type="a.FirstError"),
        make_event("exception", exception__type="LastError"),
    ]
    expect(row_of(status=failed, events=events), error_code="LastError", status="error", status_message="boom")
    assert row_of(status=failed)["error_code"] == "_OTHER"
    assert row_of(events=events)["error_code"] is None, "an exception that was handled is no error"
