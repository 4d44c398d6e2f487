"""`Usage`: the tokens of one request, the same for all providers: cached ones within input, reasoning within output."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

CACHED_ABOVE_PROMPT = "cached>prompt"
REASONING_ABOVE_OUTPUT = "reasoning>output"
TOTAL_DIFFERS = "total_differs"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a request; None where the provider does not say.

    `input_tokens` counts the whole prompt, cached and cache-written tokens included; `output_tokens` counts reasoning.
    `batch` is an attribute of the request, never guessed from a name. `quality` holds what had to be put right.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    batch: bool = False
    quality: tuple[str, ...] = ()


def read_usage(payload: Mapping[str, Any], provider: str | None = None, *, batch: bool = False) -> Usage:
    """Read the usage object of a response.

    Anthropic and Bedrock count cached tokens beside the prompt, the others within it. `provider` ('anthropic',
    'openai', …) decides; without it the field names do, which each API has of its own. Values that contradict each
    other are clamped and named in `quality`.
    """
    flat = _flat(payload)
    prompt, output = _first(flat, _PROMPT), _first(flat, _OUTPUT)
    cached, written, reasoning = _first(flat, _CACHED), _first(flat, _WRITTEN), _first(flat, _REASONING)
    total = _first(flat, _TOTAL)
    if prompt is None and output is None and total is not None:
        prompt = total  # an embedding: nothing but a prompt
    if prompt is not None and _cached_beside(flat, provider):
        prompt += (cached or 0) + (written or 0)
    if output is not None and reasoning and _reasoning_beside(flat, prompt, output, total):
        output += reasoning
    return _clamped(Usage(prompt, output, cached, written, reasoning, batch), total)


def latest_usage(payloads: Iterable[Mapping[str, Any]], provider: str | None = None) -> Usage | None:
    """Return the usage of a stream whose events repeat a running total: the largest of each count, never their sum.

    Anthropic states the prompt in the first event and the output in the last one. None where no event has usage.
    """
    merged: dict[str, Any] = {}
    for payload in payloads:
        for name, value in _flat(payload).items():
            merged[name] = max(merged.get(name, 0), value)
    return read_usage(merged, provider) if merged else None


_PROMPT = ("prompt_tokens", "input_tokens", "inputTokens", "promptTokenCount", "tokens.input_tokens",
           "billed_units.input_tokens", "prompt_eval_count", "input_token_count")  # fmt: skip
_OUTPUT = ("completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount", "tokens.output_tokens",
           "billed_units.output_tokens", "eval_count", "generated_token_count")  # fmt: skip
_CACHED = ("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "cache_read_input_tokens",
           "prompt_token_details.cached_tokens", "prompt_cache_hit_tokens", "cacheReadInputTokens",
           "cacheReadInputTokenCount", "cachedContentTokenCount", "cached_tokens")  # fmt: skip
_WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount",
            "prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens")  # fmt: skip
_REASONING = ("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
              "reasoning_tokens", "thoughtsTokenCount")  # fmt: skip
_TOTAL = ("total_tokens", "totalTokens", "totalTokenCount")
_BESIDE = frozenset({
    "cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount",
    "cacheWriteInputTokens", "cacheWriteInputTokenCount",
})  # fmt: skip
_BESIDE_PROVIDERS = ("anthropic", "bedrock")
_WITHIN_PROVIDERS = ("openai", "azure", "deepseek", "gemini", "google", "groq", "mistral", "cohere", "x_ai", "xai")


def _flat(payload: Mapping[str, Any], prefix: str = "") -> dict[str, int]:
    flat: dict[str, int] = {}
    for name, value in payload.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**63:
            flat[prefix + name] = round(value)
    return flat


def _first(flat: Mapping[str, int], names: Iterable[str]) -> int | None:
    return next((flat[name] for name in names if name in flat), None)


def _cached_beside(flat: Mapping[str, int], provider: str | None) -> bool:
    """Tell whether cached tokens are counted beside the prompt. Names of OpenAI's own shape outrule the provider."""
    if "prompt_tokens" in flat or any(name.startswith(("prompt_tokens_d", "input_tokens_d")) for name in flat):
        return False
    name = (provider or "").lower()
    if any(word in name for word in _BESIDE_PROVIDERS):
        return True
    return not _BESIDE.isdisjoint(flat) and not any(word in name for word in _WITHIN_PROVIDERS)


def _reasoning_beside(flat: Mapping[str, int], prompt: int | None, output: int, total: int | None) -> bool:
    """Tell whether reasoning is counted beside the output: where its field stands beside it and the total agrees."""
    if "thoughtsTokenCount" in flat:
        return True
    if "reasoning_tokens" not in flat:
        return False
    return total is None or total != (prompt or 0) + output


def _clamped(usage: Usage, total: int | None) -> Usage:
    prompt, output = usage.input_tokens, usage.output_tokens
    cached, written, reasoning = usage.cached_input_tokens, usage.cache_write_tokens, usage.reasoning_tokens
    quality: list[str] = []
    if prompt is not None and (cached or 0) + (written or 0) > prompt:
        quality.append(CACHED_ABOVE_PROMPT)
        cached = None if cached is None else min(cached, prompt)
        written = None if written is None else min(written, prompt - (cached or 0))
    if output is not None and reasoning is not None and reasoning > output:
        quality.append(REASONING_ABOVE_OUTPUT)
        reasoning = output
    if total is not None and prompt is not None and output is not None and total != prompt + output:
        quality.append(TOTAL_DIFFERS)
    return Usage(prompt, output, cached, written, reasoning, usage.batch, tuple(quality))
