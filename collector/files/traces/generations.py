"""What a trace tool says of one model request, as attributes of OpenTelemetry: usage, cost, model, parameters, TTFT."""

from collections.abc import Mapping
from typing import Any

from collector.otlp.parameters import parameters_of
from collector.otlp.values import count, seconds

_CACHED = (
    "input_cache_read", "input_cached_tokens", "cache_read_input_tokens", "prompt_details.cache_read",
    "prompt_tokens_details.cached_tokens",
)  # fmt: skip
_CACHE_WRITTEN = ("input_cache_creation", "cache_creation_input_tokens", "prompt_details.cache_write")
_REASONING = (
    "output_reasoning", "output_reasoning_tokens", "completion_details.reasoning",
    "completion_tokens_details.reasoning_tokens",
)  # fmt: skip
_PARAMETERS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "choices": "gen_ai.request.choice.count",
    "stream": "gen_ai.request.stream",
}
"""Column of `spans` → the attribute that fills it."""
_LANGCHAIN = {"google_vertexai": "gcp.vertex_ai", "google_genai": "gcp.gemini", "amazon_bedrock": "aws.bedrock"}
_TTFT = "gen_ai.response.time_to_first_chunk"
Observation = Mapping[str, Any]


def generation_attributes(
    one: Observation, stated: Mapping[str, Any], start_ns: int, end_ns: int, first_ns: int
) -> dict[str, Any]:
    """Return what Langfuse says of a generation beyond its attributes `stated`, and the usage as Langfuse has it."""
    found = {**usage_attributes(one), **parameter_attributes(one.get("modelParameters"))}
    model = one.get("model")
    if model and model != "unknown":
        found["llm.model_name"] = model
    provider = stated.get("langfuse.metadata.ls_provider")
    if isinstance(provider, str):
        found["llm.provider"] = _LANGCHAIN.get(provider, provider)
    if (cost := _cost(one)) is not None:
        found["gen_ai.usage.cost"] = cost
    if (ttft_s := _ttft_s(one, start_ns, end_ns, first_ns)) is not None:
        found[_TTFT] = ttft_s
    usage = {key for key in found if key.startswith("gen_ai.usage.")}
    return {key: value for key, value in found.items() if key in usage or stated.get(key) is None}


def usage_attributes(one: Observation) -> dict[str, int]:
    """Return the tokens of a generation, cached ones and reasoning included in input and output.

    Langfuse keeps details inside `input` or beside it, as the instrumentation sent them; `total` tells which.
    """
    usage = {k: v for k, value in _usage(one).items() if (v := count(value)) is not None}
    tokens = [_first(usage, names) for names in (("input",), ("output",), _CACHED, _CACHE_WRITTEN, _REASONING)]
    given, made, cached, written, reasoning = tokens
    beside_in = sum(usage[k] for k in usage if k.startswith(("input_", "cache_")))
    beside_out = sum(usage[k] for k in usage if k.startswith("output_"))
    if given is not None and made is not None and usage.get("total") == given + made + beside_in + beside_out:
        given, made = given + beside_in, made + beside_out
    named = {
        "input_tokens": given,
        "output_tokens": made,
        "cache_read.input_tokens": cached,
        "cache_write.input_tokens": written,
        "reasoning_tokens": reasoning,
    }
    return {f"gen_ai.usage.{name}": value for name, value in named.items() if value is not None}


def _usage(one: Observation) -> Mapping[str, Any]:
    """Return usage by kind, from the form of any version of Langfuse; all of it zero means that none was sent."""
    forms = (one.get("usageDetails"), one.get("usage"), _numbered(one, "Usage"), _numbered(one, "Tokens"))
    return next((form for form in forms if isinstance(form, dict) and any(map(count, form.values()))), {})


def _numbered(one: Observation, ending: str) -> dict[str, Any]:
    names = {"input": ("input", "prompt"), "output": ("output", "completion"), "total": ("total",)}
    return {kind: _first(one, tuple(f"{n}{ending}" for n in of)) for kind, of in names.items()}


def parameter_attributes(parameters: Any) -> dict[str, Any]:
    """Return the parameters of a request that have a column, from an object or its JSON text."""
    return {_PARAMETERS[column]: value for column, value in (parameters_of(parameters) or {}).items()}


def _cost(one: Observation) -> float | None:
    """Cost in USD. Langfuse says 0 where it knows no price, which is no cost of zero."""
    details = one.get("costDetails")
    stated = details.get("total") if isinstance(details, dict) else None
    return next(
        (cost for c in (stated, one.get("totalCost"), one.get("calculatedTotalCost")) if (cost := seconds(c))), None
    )


def _ttft_s(one: Observation, start_ns: int, end_ns: int, first_ns: int) -> float | None:
    """Time to first token in seconds.

    `timeToFirstToken` is in seconds or in milliseconds, as `latency` is: which, the latency of the same row tells.
    """
    if 0 < start_ns <= first_ns:
        return (first_ns - start_ns) / 1e9
    ttft, latency = seconds(one.get("timeToFirstToken")), seconds(one.get("latency"))
    if ttft is None or not latency or end_ns <= start_ns:
        return None
    return ttft / 1000 if latency / ((end_ns - start_ns) / 1e9) > 30 else ttft  # 1000 or 1, but for rounding


def _first(of: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((of[name] for name in names if of.get(name) is not None), None)
