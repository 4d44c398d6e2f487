"""An answer of an OpenAI-compatible endpoint: when its tokens came and what it says of itself. Its text is not kept."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from collector.probe.faults import Fault, FaultError, http_fault

DONE = b"[DONE]"
_HTTP_CODES = range(400, 600)
_BAD = Fault("BAD_ANSWER", "the answer is no chat or text completion", "is that an OpenAI-compatible endpoint?")


@dataclass(slots=True)
class Arrival:
    """An event that carried a part of the answer: ns after the start, characters, tokens where the event says so."""

    at_ns: int
    chars: int
    tokens: int | None = None


@dataclass(slots=True)
class Answer:
    """What has been said so far; None where nothing was. `closing` is the last event where it carried no text."""

    arrivals: list[Arrival] = field(default_factory=list)
    closing: Arrival | None = None
    done_ns: int | None = None
    request_id: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    shows_reasoning: bool = False

    def take(self, event: bytes, at_ns: int) -> None:
        """Read one event of a stream, or the body of an answer that is none. Raises FaultError for an error in it."""
        if event.strip() == DONE:
            self.done_ns = at_ns
            return
        message = _message(event)
        self.request_id = _text(message.get("id")) or self.request_id
        self.model = _text(message.get("model")) or self.model
        before = self.output_tokens or 0
        counted = self._take_usage(message.get("usage"))
        choices = [choice for choice in message["choices"] or [] if isinstance(choice, Mapping)]
        if not choices:
            return
        chars = sum(self._take_choice(choice) for choice in choices)
        tokens = max((self.output_tokens or 0) - before, 0) if counted else None
        arrival = Arrival(at_ns, chars, tokens)
        counts = not self.arrivals or self.arrivals[-1].tokens is not None  # a sum at the end only is no count of it
        if chars or (tokens and counts):
            self.arrivals.append(arrival)
        elif any(choice.get("finish_reason") for choice in choices):
            self.closing = arrival

    @property
    def complete(self) -> bool:
        """Whether the answer says that it has ended."""
        return self.done_ns is not None or self.finish_reason is not None

    def _take_usage(self, usage: Any) -> bool:
        """Take the counts; tell whether the generated tokens are among them."""
        if not isinstance(usage, Mapping):
            return False
        cached = _inner(usage, "prompt_tokens_details", "cached_tokens")
        reasoning = _inner(usage, "completion_tokens_details", "reasoning_tokens")
        self.cached_input_tokens = self.cached_input_tokens if cached is None else cached
        self.reasoning_tokens = self.reasoning_tokens if reasoning is None else reasoning
        read, generated = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        self.input_tokens = self.input_tokens if read is None else read
        self.output_tokens = self.output_tokens if generated is None else generated
        return generated is not None

    def _take_choice(self, choice: Mapping[str, Any]) -> int:
        """Take the finish reason; return how many characters were generated."""
        self.finish_reason = _text(choice.get("finish_reason")) or self.finish_reason
        part = choice.get("delta") or choice.get("message") or choice
        if not isinstance(part, Mapping):
            return 0
        thought = len(_text(part.get("reasoning_content")) or _text(part.get("reasoning")) or "")
        self.shows_reasoning = self.shows_reasoning or thought > 0
        said = sum(len(_text(part.get(key)) or "") for key in ("content", "text", "refusal"))
        return thought + said + sum(len(text) for text in _called(part))


def _message(event: bytes) -> Mapping[str, Any]:
    """Decode one event. Raises FaultError for what is no JSON object, or is an error."""
    try:
        message = msgspec.json.decode(event)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise FaultError(_BAD) from None
    if not isinstance(message, Mapping):
        raise FaultError(_BAD)
    error = message.get("error")
    if error:
        code = error.get("code") if isinstance(error, Mapping) else None
        fault = http_fault(code) if isinstance(code, int) and code in _HTTP_CODES else None
        raise FaultError(fault or Fault("ERROR_IN_ANSWER", "the answer is an error", "see the server's own log"))
    if not isinstance(message.get("choices", ""), list | None):
        raise FaultError(_BAD)
    return message


def _called(part: Mapping[str, Any]) -> Iterator[str]:
    """Texts of tool calls: names and arguments."""
    calls = part.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield from (text for key in ("name", "arguments") if (text := _text(function.get(key))))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _inner(usage: Mapping[str, Any], key: str, name: str) -> int | None:
    details = usage.get(key)
    return _count(details.get(name)) if isinstance(details, Mapping) else None
