"""Attribute values as column values: each converter returns None for a value that it does not understand.

Numbers sent as text are read. A value that is not understood stays in the attributes and the next name is tried.
"""

import math
from typing import Any

import orjson

_INT64 = 2**63
_FALSE, _TRUE = ("false", "0", "no"), ("true", "1", "yes")

_PROVIDERS = {
    "amazon-bedrock": "aws.bedrock",
    "anthropic.messages": "anthropic",
    "aws": "aws.bedrock",
    "aws_bedrock": "aws.bedrock",
    "az.ai.inference": "azure.ai.inference",
    "az.ai.openai": "azure.ai.openai",
    "azure": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "openai.chat": "openai",
    "openai.completion": "openai",
    "openai.embedding": "openai",
    "openai.responses": "openai",
    "vertex_ai": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
_WELL_KNOWN = frozenset(
    {
        *("anthropic", "aws.bedrock", "azure.ai.inference", "azure.ai.openai", "cohere", "deepseek", "gcp.gemini"),
        *("gcp.gen_ai", "gcp.vertex_ai", "groq", "ibm.watsonx.ai", "mistral_ai", "moonshot_ai", "openai"),
        *("perplexity", "x_ai"),
    }
)
_OPERATIONS = {
    "agent": "invoke_agent",
    "completion": "text_completion",
    "embedding": "embeddings",
    "llm": "inference",
    "reranker": "rerank",
    "tool": "execute_tool",
    "workflow": "invoke_workflow",
}


def text(value: Any) -> str | None:
    """Text as it is; a number or boolean as text; None for empty text, lists and maps."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def whole(value: Any) -> int | None:
    """Whole number that fits 64 bits, also as text or as a float without a fraction."""
    if type(value) is int:  # nearly always: a body has thousands
        return value if -_INT64 <= value < _INT64 else None
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = real(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_INT64 <= value < _INT64 else None


def count(value: Any) -> int | None:
    """Whole number that is not negative."""
    number = whole(value)
    return number if number is not None and number >= 0 else None


def real(value: Any) -> float | None:
    """Finite number, also as text."""
    if type(value) is float:  # nearly always: a body has thousands
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def seconds(value: Any) -> float | None:
    """Seconds that are not negative."""
    number = real(value)
    return number if number is not None and number >= 0 else None


def milliseconds(value: Any) -> float | None:
    """Milliseconds, not negative, as seconds."""
    number = seconds(value)
    return None if number is None else number / 1000


def flag(value: Any) -> bool | None:
    """Boolean, also as text or 0/1."""
    word = str(value).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def provider(value: Any) -> str | None:
    """Well-known name of a provider; aliases are folded, an unknown name stays as it is."""
    name = text(value)
    if name is None:
        return None
    lower = name.lower()
    return _PROVIDERS.get(lower, lower if lower in _WELL_KNOWN else name)


def span_kind(value: Any) -> str | None:
    """Operation from a dialect's own word for it (`LLM`, `completion`, `workflow`); unknown words in lower case."""
    name = text(value)
    if name is None or name.lower() == "unknown":
        return None
    return _OPERATIONS.get(name.lower(), name.lower())


def vercel_operation(value: Any) -> str | None:
    """Operation from `ai.operationId`: only the inner `.do…` span is a model request, its wrapper repeats the usage."""
    name = text(value)
    if name is None:
        return None
    inner = {"doStream": "chat", "doGenerate": "chat", "doEmbed": "embeddings", "toolCall": "execute_tool"}
    return inner.get(name.rpartition(".")[2].removeprefix("ai."), name)


def finish_reason(value: Any) -> str | None:
    """Distinct reasons joined by commas, from a list, text, or a list or map as JSON text (SGLang)."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        value = _from_json(value)
    items = value if isinstance(value, list) else [value]
    reasons = [text(item.get("type")) if isinstance(item, dict) else text(item) for item in items]
    return ",".join(dict.fromkeys(reason for reason in reasons if reason)) or None


def total_cost(value: Any) -> float | None:
    """`total` of Langfuse's cost details, a map or its JSON text (USD)."""
    if isinstance(value, str):
        value = _from_json(value)
    return seconds(value.get("total")) if isinstance(value, dict) else None


def _from_json(value: str) -> Any:
    """Value of a JSON text; the text itself where it is none."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
