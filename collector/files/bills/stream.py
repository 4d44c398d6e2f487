"""Recorded event streams (SSE) of chat answers: one request each, its usage the last running total, never their sum."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from collector.files.bills.requests import ids, other_labels, spans, token_fields
from collector.files.content import Content
from collector.files.intake import Decoded
from collector.files.options import ImportOptions
from collector.files.refusals import Refusal, counts
from collector.prices import latest_usage
from store.batch import Batch
from store.errors import UsageError

_EVENT = re.compile(r'\A(event:.*\n|id:.*\n|:.*\n|\s)*data:\s*\{[^\n]*"(choices|message|delta|usage|response)"')
_DONE = "[DONE]"
Event = dict[str, Any]


def is_stream(head: str) -> bool:
    """Tell whether a text is an event stream of a chat API."""
    return _EVENT.match(head.replace("\r\n", "\n")) is not None


def decode_stream(content: Content, options: ImportOptions, source: str) -> Decoded:
    """Turn the streams of a file into requests. One that nothing ends was cancelled, and is charged all the same.

    Raises UsageError where neither the events nor `options.at` say when it was.
    """
    streams: dict[str, list[Event]] = {}
    refused: dict[str, Refusal] = {}
    ended: set[str] = set()
    current = ""
    for line, data in _data(content.text()):
        if data == _DONE:
            ended.add(current)
            continue
        try:
            event = json.loads(data)
        except json.JSONDecodeError:
            known = refused.get("broken event", Refusal(0, f"{content.path}:{line}"))
            refused["broken event"] = Refusal(known.count + 1, known.first)
            continue
        if isinstance(event, dict):
            current = _id(event) or current
            streams.setdefault(current, []).append(event)
    rows = [_span(name, events, name in ended, options, content) for name, events in streams.items()]
    batch = Batch(source, {"spans": spans(rows, options.labels)} if rows else {}, counts(refused))
    return batch, refused, (f"{len(rows)} streams, {sum(r['finish_reason'] == 'cancelled' for r in rows)} cancelled",)


def _data(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("data:"):
            yield number, line[5:].strip()


def _id(event: Event) -> str | None:
    inner = event.get("message") or event.get("response")
    found = event.get("id") or (inner.get("id") if isinstance(inner, dict) else None)
    return found if isinstance(found, str) else None


def _span(name: str, events: list[Event], done: bool, options: ImportOptions, content: Content) -> dict[str, Any]:
    usage = latest_usage(part["usage"] for part in _parts(events) if isinstance(part.get("usage"), dict))
    tokens = token_fields(usage) if usage else {}
    finish = _finish(events) or (None if done else "cancelled")
    ts, timed = _time(events, options, content)
    doubts = [tokens.pop("quality", None), None if timed else "no_time"]
    model = next((part["model"] for part in _parts(events) if isinstance(part.get("model"), str)), None)
    labels = other_labels(options.labels)
    return {
        **ids(name, "" if name else content.text(), json.dumps(options.labels, sort_keys=True)),
        "ts": ts,
        "name": "chat",
        "kind": "client",
        "operation": "chat",
        "service": content.stem,
        "model": model,
        "response_model": model,
        "stream": True,
        "finish_reason": finish,
        "request_id": name or None,
        **tokens,
        "quality": ",".join(word for word in doubts if word) or None,
        "attributes": json.dumps({"stream_events": len(events), **labels}),
    }


def _parts(events: list[Event]) -> Iterator[Event]:
    """Events, and the message or response inside them where an API nests it."""
    for event in events:
        yield event
        for name in ("message", "response"):
            if isinstance(event.get(name), dict):
                yield event[name]


def _finish(events: list[Event]) -> str | None:
    """Return the last reason an event gives for the end."""
    reasons: list[str | None] = []
    for event in events:
        delta = event.get("delta")
        choices = event.get("choices")
        reasons += [choice.get("finish_reason") for choice in choices or () if isinstance(choice, dict)]
        reasons += [delta.get("stop_reason")] if isinstance(delta, dict) else []
        reasons += ["stop"] if event.get("type") in ("message_stop", "response.completed") and not any(reasons) else []
    return next((reason for reason in reversed(reasons) if reason), None)


def _time(events: list[Event], options: ImportOptions, content: Content) -> tuple[datetime, bool]:
    created = next((p[k] for p in _parts(events) for k in ("created", "created_at") if _is_number(p.get(k))), None)
    if created is not None and 0 < created < 1e11:
        return datetime.fromtimestamp(float(created), UTC).replace(tzinfo=None), True
    if options.at is None:
        raise UsageError(f"{content.path}: no event says when it was", "give the time with --time")
    return options.at.astimezone(UTC).replace(tzinfo=None) + timedelta(0), False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
