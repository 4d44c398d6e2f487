"""What of a span's attributes is kept: prompts and completions only when asked for, long values cut.

A prompt is the business of the person who wrote it, and 100 KB of it per span buries the forty numbers that explain a
latency. So conversation text is left out by default, wherever a dialect puts it. A hash in its place tells equal
prompts from different ones; a short text can be guessed from its hash, so that is asked for as well.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

MAX_VALUE_BYTES = 8192
"""Longest attribute value kept, in UTF-8 bytes: a deep stack trace fits, 80 prompts stay under 1 MB."""


@dataclass(frozen=True, slots=True)
class ContentOptions:
    """What to keep: conversation text or not, else its hash or nothing, and how much of one value (UTF-8 bytes)."""

    store_content: bool = False
    max_value_bytes: int = MAX_VALUE_BYTES
    hash_content: bool = False


DEFAULT_CONTENT = ContentOptions()

_CONTENT = re.compile(
    r"""
    gen_ai\.(?:prompt|completion)(?:\.(?:\d.*|chunk.*|content.*))?      # not gen_ai.prompt.name / .version
  | gen_ai\.(?:input|output)\.messages(?:\..*)?
  | gen_ai\.(?:system_instructions|content\.(?:prompt|completion)|event\.content|tool\.definitions)
  | gen_ai\.(?:tool\.call\.(?:arguments|result)|tool\.message|request\.messages|reasoning\.content)
  | gen_ai\.(?:embeddings\.input|retrieval\.(?:query\.text|documents))
  | llm\.(?:prompts|completions|input_messages|output_messages|prompt_template|tools)(?:\..*)?
  | (?:input|output)(?:\.value)?
  | (?:message|document)\.content
  | (?:embedding\.(?:text|vector|embeddings)|retrieval\.documents|reranker\.\w+)(?:\..*)?
  | traceloop\.entity\.(?:input|output)
  | (?:langfuse\.(?:observation|trace)\.(?:input|output)|mlflow\.span(?:Inputs|Outputs))
  | ai\.(?:prompt|values?|embeddings?|toolCall\.(?:args|result))(?:\..*)?
  | ai\.response\.(?:text|object|toolCalls|reasoning|files)
  | gcp\.vertex\.agent\.(?:llm_(?:request|response)|tool_(?:call_args|response)|data)
  | llm\.invocation_parameters|tool\.parameters
    """,
    re.VERBOSE,
)
_SIZED = (str, list, dict)  # a number or boolean is never conversation text
_MESSAGE_EVENT = re.compile(r"(?:gen_ai|llm)\.(?:\w+\.message|choice|content\..*)")
_MESSAGE_FIELDS = frozenset({"index", "role", "finish_reason", "id"})


@lru_cache(maxsize=4096)
def is_content(key: str) -> bool:
    """Tell whether an attribute of that name holds what people or models wrote."""
    return _CONTENT.fullmatch(key) is not None


@lru_cache(maxsize=1024)
def is_message_event(name: str) -> bool:
    """Tell whether an event of that name carries one message of a conversation."""
    return _MESSAGE_EVENT.fullmatch(name) is not None


def clip(value: Any, limit: int) -> tuple[Any, bool]:
    """Return a value of at most `limit` UTF-8 bytes, and whether it was cut.

    Text is cut on a character boundary; a list or map that is too long becomes its JSON text, cut.
    """
    if isinstance(value, str):
        if len(value) * 4 <= limit or len(raw := value.encode()) <= limit:
            return value, False
        return raw[:limit].decode(errors="ignore"), True
    if isinstance(value, list | dict):
        raw = orjson.dumps(value)
        return (value, False) if len(raw) <= limit else (raw[:limit].decode(errors="ignore"), True)
    return value, False


def digest(value: Any) -> str:
    """`sha256:` and 16 hex digits: of text its UTF-8, of a list or map its JSON with sorted keys."""
    raw = value.encode() if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return f"sha256:{hashlib.sha256(raw).hexdigest()[:16]}"


def kept_value(key: str, value: Any, options: ContentOptions) -> tuple[Any, bool] | None:
    """Return an attribute's value as it is stored and whether it was cut; None where it is left out."""
    if not isinstance(value, _SIZED):
        return value, False
    if options.store_content or not is_content(key):
        return clip(value, options.max_value_bytes)
    return (digest(value), False) if options.hash_content else None


def keep(attributes: Mapping[str, Any], options: ContentOptions) -> tuple[dict[str, Any], bool]:
    """Return the attributes to store and whether any value was cut."""
    taken = {key: kept_value(key, value, options) for key, value in attributes.items()}
    kept = {key: found for key, found in taken.items() if found is not None}
    return {key: value for key, (value, _) in kept.items()}, any(cut for _, cut in kept.values())


def keep_of_event(name: str, attributes: Mapping[str, Any], options: ContentOptions) -> tuple[dict[str, Any], bool]:
    """Return the attributes of a span event to store; of a message only its envelope, unless content is kept."""
    if options.store_content or not is_message_event(name):
        return keep(attributes, options)
    kept, cut = keep({k: v for k, v in attributes.items() if _is_envelope(k, v)}, options)
    if options.hash_content:
        kept |= {k: digest(v) for k, v in attributes.items() if not _is_envelope(k, v)}
    return kept, cut


def _is_envelope(key: str, value: Any) -> bool:
    return key in _MESSAGE_FIELDS or key.startswith("gen_ai.") or not isinstance(value, _SIZED)
