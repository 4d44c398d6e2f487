"""Spans as an SDK prints them (OpenTelemetry JS and Python, and what is built on them), and bare attributes of one.

Bare attributes of one span, as instrumentations keep them in their tests and logs, state neither ids nor times: the
time is the one of --time, and the ids are a hash of the content.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from collector.files.content import Content, Format
from collector.files.dialects import time_column
from collector.files.options import ImportOptions
from collector.files.traces.console import console_span, is_console_span
from collector.files.traces.documents import read_documents
from collector.files.traces.spans import SPAN_BYTES, TRACE_BYTES, Event, Link, Span, SpanFile, Taken, as_text, hex_id
from collector.otlp.values import whole
from store.errors import SourceError, UsageError

_SPAN = re.compile(r'"spanContext"\s*:'), re.compile(r'"startTime"\s*:\s*\[')
_CONSOLE = re.compile(r'"context"\s*:\s*\{\s*"trace_id"\s*:\s*"0x')
_NAMED = ("openinference.span.kind", "gen_ai.operation.name", "ai.operationId")
_ATTRIBUTES = re.compile(rf'^\s*[\[{{][^\0]*"(?:{"|".join(map(re.escape, _NAMED))})"\s*:')
_CLIENT = 3
_NANO = 10**9


def is_printed(content: Content) -> bool:
    """Tell printed spans by their context and clock, bare attributes by the name of an operation among their keys.

    A table of requests that happens to have such a column has a column of times too.
    """
    if content.format is not Format.JSON:
        return False
    if all(key.search(content.head) for key in _SPAN) or _CONSOLE.search(content.head):
        return True
    if not _ATTRIBUTES.match(content.head):
        return False
    try:
        items = [item for _, document in read_documents(content) for item in _items(document)]
    except (SourceError, ValueError, RecursionError):
        return False
    return bool(items) and all(isinstance(item, dict) and _is_attributes(item) for item in items)


def read_printed(content: Content, options: ImportOptions, source: str) -> Taken:
    """Return the batch of a file, what was refused, and remarks.

    Raises UsageError where spans state no time and --time does not.
    """
    file = SpanFile(options)
    documents = [(where, item) for where, document in read_documents(content) for item in _items(document)]
    for number, (where, item) in enumerate(documents, 1):
        place = f"{where} span {number}"
        if not isinstance(item, dict):
            file.refuse("no JSON object", place)
        elif "spanContext" in item:
            _add_span(file, item, place)
        elif is_console_span(item):
            resource, found = console_span(item, _map(item.get("attributes")))
            file.add((resource, ""), found, place)
        elif _operation(item):
            _add_attributes(file, item, place, number)
        else:
            file.refuse("neither a span nor the attributes of one", place)
    return file.taken(source)


def _items(document: Any) -> list[Any]:
    return document if isinstance(document, list) else [document]


def _is_attributes(item: Mapping[str, Any]) -> bool:
    return _operation(item) is not None and time_column(item) is None


def _operation(item: Mapping[str, Any]) -> str | None:
    return next((item[key] for key in _NAMED if isinstance(item.get(key), str)), None)


def _add_span(file: SpanFile, span: Mapping[str, Any], where: str) -> None:
    """Take a span of the SDK's own form: times are [seconds, nanoseconds], kinds count from internal."""
    context, status = _map(span.get("spanContext")), _map(span.get("status"))
    parent = _map(span.get("parentSpanContext")).get("spanId") or span.get("parentSpanId")
    kind = whole(span.get("kind"))
    found = Span(
        trace_id=hex_id(context.get("traceId"), TRACE_BYTES),
        span_id=hex_id(context.get("spanId"), SPAN_BYTES),
        parent_span_id=hex_id(parent, SPAN_BYTES),
        name=str(span.get("name") or ""),
        kind=0 if kind is None else kind + 1,
        start_ns=_time_ns(span.get("startTime")),
        end_ns=_time_ns(span.get("endTime")),
        status=whole(status.get("code")) or 0,
        status_message=str(status.get("message") or ""),
        attributes=_map(span.get("attributes")),
        events=[_event(event) for event in _list(span.get("events"))],
        links=[_link(link) for link in _list(span.get("links"))],
    )
    scope = _map(span.get("instrumentationScope") or span.get("instrumentationLibrary"))
    resource = _map(_map(span.get("resource")).get("attributes"))
    file.add((resource, str(scope.get("name") or "")), found, where)


def _add_attributes(file: SpanFile, attributes: Mapping[str, Any], where: str, number: int) -> None:
    """Take the attributes of a span that is otherwise unknown."""
    if file.options.at is None:
        raise UsageError(f"{where}: attributes of a span without its time", "say when it was with --time")
    content = f"{number}\n{as_text(dict(file.options.labels))}\n{as_text(attributes)}"
    digest = blake2b(content.encode(), digest_size=TRACE_BYTES + SPAN_BYTES).hexdigest()
    operation = _operation(attributes) or ""
    found = Span(
        trace_id=digest[: 2 * TRACE_BYTES],
        span_id=digest[2 * TRACE_BYTES :],
        parent_span_id="",
        name=operation,
        kind=_CLIENT if operation in ("chat", "LLM") else 0,
        start_ns=_unix_ns(file.options.at) + (number - 1) * 1000,
        end_ns=0,
        attributes=attributes,
    )
    file.add(({}, ""), found, where, timed=False)


def _event(event: Any) -> Event:
    event = _map(event)
    return Event(str(event.get("name") or ""), max(_time_ns(event.get("time")), 0), _map(event.get("attributes")))


def _link(link: Any) -> Link:
    context = _map(_map(link).get("context"))
    ids = hex_id(context.get("traceId"), TRACE_BYTES), hex_id(context.get("spanId"), SPAN_BYTES)
    return Link(*ids, _map(_map(link).get("attributes")))


def _time_ns(value: Any) -> int:
    """Unix ns of [seconds, nanoseconds]; 0 where there is none, -1 where it is unreadable."""
    if value is None:
        return 0
    parts = [whole(part) for part in value] if isinstance(value, list) and len(value) == 2 else [None]
    if None in parts:
        return -1
    seconds, nanos = parts
    return (seconds or 0) * _NANO + (nanos or 0)


def _unix_ns(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1_000_000) * 1000


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
