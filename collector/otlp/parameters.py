"""Parameters of a request that a dialect keeps as one JSON text: those that have a column, and nothing else of it.

OpenInference's `llm.invocation_parameters` may hold instructions, tools and answers to imitate beside them: what people
wrote stays out.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from collector.otlp.values import count, flag, real

COLUMN = "parameters"
"""Stands for all these columns until the row is made."""
_READ: Mapping[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "max_tokens": (count, ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens", "maxOutputTokens")),
    "temperature": (real, ("temperature",)),
    "top_p": (real, ("top_p", "topP")),
    "choices": (count, ("n", "candidate_count", "candidateCount")),
    "stream": (flag, ("stream", "is_stream", "streaming")),
}


def parameters_of(value: Any) -> dict[str, Any] | None:
    """Return columns of `spans` from an object or its JSON text; None where it states none of them."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    if not isinstance(value, dict):
        return None
    stated = {
        name: next((value[k] for k in keys if value.get(k) is not None), None) for name, (_, keys) in _READ.items()
    }
    found = {name: _READ[name][0](one) for name, one in stated.items() if one is not None}
    return {name: one for name, one in found.items() if one is not None} or None
