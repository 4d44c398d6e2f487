"""The reader table: which attribute names mean which column of `spans`, best first, over all dialects.

Sources: OpenTelemetry GenAI conventions (both generations), vLLM, SGLang, Traceloop, OpenInference, OpenLIT, Vercel AI,
LiteLLM, Langfuse. Adding a dialect is adding names here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from collector.otlp.arrivals import ARRIVAL_NAMES
from collector.otlp.failures import error_type, grpc_error, http_error
from collector.otlp.parameters import COLUMN, parameters_of
from collector.otlp.values import (
    count,
    finish_reason,
    flag,
    milliseconds,
    provider,
    real,
    seconds,
    span_kind,
    text,
    total_cost,
    vercel_operation,
)

Converter = Callable[[Any], Any]
Names = tuple[tuple[str, Converter], ...]


def _as(read: Converter, *names: str) -> Names:
    return tuple((name, read) for name in names)


SPAN_NAMES: dict[str, Names] = {
    "operation": _as(text, "gen_ai.operation.name")
    + _as(span_kind, "llm.request.type", "openinference.span.kind", "traceloop.span.kind")
    + _as(vercel_operation, "ai.operationId"),
    "provider": _as(
        provider,
        "gen_ai.provider.name",
        "gen_ai.system",
        "llm.provider",
        "llm.system",
        "gen_ai.request.provider",
        "gen_ai.llm.provider",
        "ai.model.provider",
    ),
    "response_model": _as(text, "gen_ai.response.model", "llm.response.model_name", "ai.response.model"),
    "request_model": _as(text, "gen_ai.request.model", "llm.request.model_name", "ai.model.id"),
    "model": _as(text, "llm.model_name"),  # OpenInference does not say whether asked for or answered
    "input_tokens": _as(
        count,
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
        "ai.usage.tokens",  # of an embedding
    ),
    "output_tokens": _as(
        count,
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
    ),
    "cached_input_tokens": _as(
        count,
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.cached_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
    ),
    "cache_write_tokens": _as(
        count,
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning_tokens": _as(
        count,
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "llm.usage.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
    ),
    "ttft_s": _as(
        seconds,
        "gen_ai.response.time_to_first_chunk",
        "gen_ai.server.time_to_first_token",
        "gen_ai.latency.time_to_first_token",
    )
    + _as(milliseconds, "ai.response.msToFirstChunk"),
    "tpot_s": _as(seconds, "gen_ai.server.time_per_output_token"),
    "queue_s": _as(seconds, "gen_ai.latency.time_in_queue"),
    "prefill_s": _as(seconds, "gen_ai.latency.time_in_model_prefill"),
    "decode_s": _as(seconds, "gen_ai.latency.time_in_model_decode"),
    "inference_s": _as(seconds, "gen_ai.latency.time_in_model_inference"),
    "e2e_s": _as(seconds, "gen_ai.latency.e2e") + _as(milliseconds, "ai.response.msToFinish"),
    "stream": _as(
        flag,
        "gen_ai.request.stream",
        "gen_ai.is_streaming",
        "llm.is_streaming",
        "gen_ai.stream.mode",
        "gen_ai.request.is_stream",
    ),
    "finish_reason": _as(
        finish_reason,
        "gen_ai.response.finish_reasons",
        "gen_ai.response.finish_reason",
        "llm.finish_reason",
        "ai.response.finishReason",
    ),
    "max_tokens": _as(count, "gen_ai.request.max_tokens"),
    "temperature": _as(real, "gen_ai.request.temperature"),
    "top_p": _as(real, "gen_ai.request.top_p"),
    "choices": _as(count, "gen_ai.request.choice.count", "gen_ai.request.n"),
    "request_id": _as(text, "gen_ai.request.id", "gen_ai.response.id", "rid", "ai.response.id"),
    "error_code": _as(error_type, "error.type")
    + _as(http_error, "http.response.status_code", "http.status_code")
    + _as(grpc_error, "rpc.grpc.status_code", "rpc.response.status_code"),
    "cost_usd": _as(seconds, "gen_ai.usage.cost", "llm.cost.total", "gen_ai.token.cost.total")
    + _as(total_cost, "langfuse.observation.cost_details"),
    "resend_count": _as(count, "http.request.resend_count", "x-litellm-attempted-retries"),
}
"""Column of `spans` -> (attribute name, converter), best first; the first that converts fills the column."""

RESOURCE_NAMES: dict[str, Names] = {
    "service": _as(text, "service.name"),
    "service_version": _as(text, "service.version"),
    "environment": _as(text, "deployment.environment.name", "deployment.environment"),
    "host": _as(text, "host.name", "k8s.node.name"),
    "cluster": _as(text, "k8s.cluster.name"),
    "cloud_provider": _as(text, "cloud.provider"),
    "cloud_region": _as(
        text,
        "cloud.region",
        "k8s.node.label.topology.kubernetes.io/region",
        "k8s.node.label.failure-domain.beta.kubernetes.io/region",
    ),
    "cloud_zone": _as(
        text,
        "cloud.availability_zone",
        "k8s.node.label.topology.kubernetes.io/zone",
        "k8s.node.label.failure-domain.beta.kubernetes.io/zone",
    ),
    "provider": _as(provider, "gen_ai.provider.name", "gen_ai.system", "k8s.pod.label.llm-d.ai/engine-type"),
    "model": _as(
        text, "gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "k8s.pod.label.llm-d.ai/model"
    ),
}
"""The same of resource attributes. provider and model fill what a request's own span does not say."""

CLIENT_TTFT = frozenset({"gen_ai.response.time_to_first_chunk", "ai.response.msToFirstChunk"})
"""Names whose time to first token was measured by the caller; the other names are the server's."""

PREFILL_FROM_DISPATCH = frozenset({"sglang"})
"""Engines whose prefill_s begins at dispatch, so that the queue is in it; vLLM's begins when scheduled."""

ENGINES = ("vllm", "sglang")
"""Engines that name themselves in the instrumentation scope or in `module`, and nowhere else on the span."""

Index = dict[str, tuple[str, int, Converter]]


def index(table: Mapping[str, Names]) -> Index:
    """Turn a reader table round: attribute name -> (column, rank, converter)."""
    return {name: (column, rank, read) for column, names in table.items() for rank, (name, read) in enumerate(names)}


PARAMETER_NAMES: dict[str, Names] = {COLUMN: _as(parameters_of, "llm.invocation_parameters")}
"""Attributes that are several columns; their own text is left out with conversations."""

SPAN_INDEX = index({**SPAN_NAMES, **ARRIVAL_NAMES, **PARAMETER_NAMES})
RESOURCE_INDEX = index(RESOURCE_NAMES)
