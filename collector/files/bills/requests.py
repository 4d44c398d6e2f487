"""Requests that recorded API calls and streams are, as rows of `spans`."""

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import polars as pl

from collector.prices import Usage
from store.columns import Kind
from store.tables import SPANS

_PROVIDERS = {
    "openai.azure.com": "azure.ai.openai", "api.openai.com": "openai", "anthropic.com": "anthropic",
    "api.cohere.com": "cohere", "api.cohere.ai": "cohere", "mistral.ai": "mistral_ai", "groq.com": "groq",
    "deepseek.com": "deepseek", "generativelanguage.googleapis.com": "gcp.gemini", "x.ai": "x_ai",
    "aiplatform.googleapis.com": "gcp.vertex_ai", "perplexity.ai": "perplexity", "ml.cloud.ibm.com": "ibm.watsonx.ai",
    "together.xyz": "together", "fireworks.ai": "fireworks", "openrouter.ai": "openrouter",
}  # fmt: skip
_BEDROCK = "bedrock-runtime"
_OPERATIONS = (
    (r"/embed(dings)?$", "embeddings"),
    (r"/rerank$", "rerank"),
    (r":(stream)?generateContent$", "generate_content"),
    (r"/chat/completions$|/v1/responses$|/v1/messages$|/v[12]/chat$|/api/chat$|/converse(-stream)?$", "chat"),
    (r"/completions?$|/api/generate$|/v1/generate$|/generation/text(_stream)?$|/complete$", "text_completion"),
    (r"/model/[^/]+/invoke(-with-response-stream)?$", "inference"),
)


def provider_of(host: str | None) -> str | None:
    """Return the provider whose API a host is, by its OpenTelemetry name; None for an unknown host."""
    name = (host or "").lower().partition(":")[0]
    if name.startswith(_BEDROCK):
        return "aws.bedrock"
    return next((known for domain, known in _PROVIDERS.items() if f".{name}".endswith(f".{domain}")), None)


def operation_of(method: str | None, path: str | None) -> str | None:
    """Return the operation of a model request; None for a call that is none (a list of files, a poll, …)."""
    if (method or "").upper() != "POST" or path is None:
        return None
    plain = path.partition("?")[0]
    return next((name for pattern, name in _OPERATIONS if re.search(pattern, plain, re.IGNORECASE)), None)


def token_fields(usage: Usage) -> dict[str, Any]:
    """Return the tokens of a request as columns of `spans`, doubts under `quality`."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "quality": ",".join(usage.quality) or None,
    }


def ids(*parts: str) -> dict[str, str]:
    """Return trace and span id made of what identifies a request."""
    made = blake2b("\x1f".join(parts).encode(errors="surrogatepass"), digest_size=24).hexdigest()
    return {"trace_id": made[:32], "span_id": made[32:]}


def spans(rows: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> pl.DataFrame:
    """Return rows as a frame of `spans`; labels that are columns of text set them."""
    given = {c.name: labels[c.name] for c in SPANS.columns if c.kind is Kind.TEXT and c.name in labels}
    types = SPANS.schema()
    complete = [{**row, **given} for row in rows]
    names = dict.fromkeys(name for row in complete for name in row)
    frame = pl.DataFrame(complete, schema={name: types[name] for name in names})
    return SPANS.conform(frame)


def other_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that are no column of `spans`."""
    return {name: text for name, text in labels.items() if SPANS.column(name) is None}
