"""The request of a model probe: prompt, body, headers."""

import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from collector.probe.config import Probe
from collector.probe.target import PORTS, Operation
from collector.prometheus.credentials import secret_header, url_secret

WORDS = (
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state",
    "family", "group", "country", "problem", "hand", "part", "place", "case", "week", "company", "system", "question",
    "work", "number", "night", "point", "home", "water", "room", "mother", "area", "money", "story", "fact", "month",
    "right", "study", "book", "eye", "job", "word", "business", "issue", "side", "kind", "head", "house", "service",
)  # fmt: skip
"""Common words: one token each in most vocabularies."""

_CHUNK_COUNTERS = ("vllm", "sglang")
"""Engines (by owned_by of their models) that can state token counts with every chunk."""


def body_of(probe: Probe, model: str, owner: str | None) -> bytes:
    """Return the JSON of one request."""
    config = probe.config
    prompt = config.prompt
    if config.prompt_tokens is not None:
        prompt = " ".join(secrets.choice(WORDS) for _ in range(config.prompt_tokens))
    body: dict[str, Any] = {"model": model, "max_tokens": config.max_tokens, "stream": config.stream}
    if probe.target.operation is Operation.CHAT:
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        body["prompt"] = prompt
    if config.stream and config.usage != "none":
        chunks = config.usage == "chunks" or (config.usage == "auto" and owner in _CHUNK_COUNTERS)
        body["stream_options"] = {"include_usage": True, **({"continuous_usage_stats": True} if chunks else {})}
    body |= config.body
    return msgspec.json.encode({key: value for key, value in body.items() if value is not None})


def headers_of(probe: Probe) -> list[tuple[bytes, bytes]]:
    """Return the headers of every request of a probe; those of the configuration win.

    Raises SourceError for a file with a credential that cannot be read.
    """
    target = probe.target
    usual = PORTS.get(target.scheme) == target.port
    name = f"[{target.host}]" if ":" in target.host else target.host.encode("idna").decode()
    headers = {
        "host": name if usual else f"{name}:{target.port}",
        "user-agent": "infractl",
        "accept": "*/*",
        "accept-encoding": "identity",  # a packer would hold tokens back
    }
    secret = secret_header(probe.config.http) or url_secret(target.parts)
    if secret:
        headers["authorization"] = secret
    if target.operation.is_inference:
        headers["content-type"] = "application/json"
    return _encoded(headers | {key.lower(): value for key, value in probe.config.headers.items()})


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
