"""One span as OpenTelemetry's Python SDK prints it (ConsoleSpanExporter, `ReadableSpan.to_json`)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from collector.files.traces.spans import SPAN_BYTES, TRACE_BYTES, Event, Link, Span, hex_id

_KINDS = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_STATUSES = {"OK": 1, "ERROR": 2}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_console_span(item: Mapping[str, Any]) -> bool:
    """Tell such a span by its context, whose ids have a prefix that no other form writes."""
    return str(_map(item.get("context")).get("trace_id", "")).startswith("0x")


def console_span(item: Mapping[str, Any], attributes: Mapping[str, Any]) -> tuple[Mapping[str, Any], Span]:
    """Return the resource and the span, with `attributes` in place of its own; the scope is not printed."""
    trace_id, span_id = _ids(item.get("context"))
    status = _map(item.get("status"))
    span = Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=_id(item.get("parent_id"), SPAN_BYTES),
        name=str(item.get("name") or ""),
        start_ns=_time_ns(item.get("start_time")),
        end_ns=_time_ns(item.get("end_time")),
        attributes=attributes,
        kind=_KINDS.get(str(item.get("kind")).rpartition(".")[2], 0),
        status=_STATUSES.get(str(status.get("status_code")), 0),
        status_message=str(status.get("description") or ""),
        events=[_event(event) for event in _maps(item.get("events"))],
        links=[Link(*_ids(link.get("context")), _map(link.get("attributes"))) for link in _maps(item.get("links"))],
    )
    return _map(_map(item.get("resource")).get("attributes")), span


def _event(event: Mapping[str, Any]) -> Event:
    at_ns = max(_time_ns(event.get("timestamp")), 0)
    return Event(str(event.get("name") or ""), at_ns, _map(event.get("attributes")))


def _ids(context: Any) -> tuple[str, str]:
    return _id(_map(context).get("trace_id"), TRACE_BYTES), _id(_map(context).get("span_id"), SPAN_BYTES)


def _id(text: Any, size: int) -> str:
    return hex_id(text.removeprefix("0x"), size) if isinstance(text, str) else ""


def _time_ns(text: Any) -> int:
    """Unix ns of a time in ISO 8601 (UTC where it names no zone); 0 where there is none, -1 where it is unreadable."""
    if text is None:
        return 0
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return -1
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
