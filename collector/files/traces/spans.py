"""Spans of one file while they are read, as OTLP/JSON: the receivers' own decoder then gives the rows."""

import json
from binascii import unhexlify
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson
import polars as pl

from collector.files.labels import label_requests
from collector.files.options import ImportOptions
from collector.files.refusals import Refusal
from collector.otlp.decode import decode_json
from store.batch import Batch
from store.tables import INFERENCE_OPERATIONS, SPANS

TRACE_BYTES, SPAN_BYTES = 16, 8
Taken = tuple[Batch, Mapping[str, Refusal], tuple[str, ...]]
_DEEPEST = 40  # lists and maps within each other; beyond it they are kept as text
_MAX_NS = 2**63


class Event(NamedTuple):
    """Something that happened during a span."""

    name: str
    at_ns: int
    attributes: Mapping[str, Any]


class Link(NamedTuple):
    """Another span that a span refers to."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, Any]


class Span(NamedTuple):
    """One span: ids as hex (empty: none), times as Unix ns (0: not stated, -1: unreadable), numbers as in OTLP."""

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    kind: int = 0
    status: int = 0
    status_message: str = ""
    events: Sequence[Event] = ()
    links: Sequence[Link] = ()


def hex_id(text: Any, size: int) -> str:
    """Return an id of `size` bytes: hex (dashes and missing zeros allowed) as it is, any other text by its hash.

    Equal texts give equal ids, so that parents and children of one export stay joined. Empty for no text.
    """
    if not isinstance(text, str) or not text.strip():
        return ""
    plain = text.strip().replace("-", "").lower().zfill(2 * size)
    try:
        if len(unhexlify(plain)) == size:
            return plain
    except ValueError:
        pass
    return blake2b(text.encode(errors="surrogatepass"), digest_size=size).hexdigest()


def is_hex_id(text: Any, size: int) -> bool:
    """Tell whether `hex_id` keeps the digits of an id."""
    return isinstance(text, str) and hex_id(text, size) == text.strip().replace("-", "").lower().zfill(2 * size)


def as_text(value: Any) -> str:
    """Return a value as JSON with sorted keys."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    except RecursionError:
        return "nested too deep"


@dataclass(slots=True)
class SpanFile:
    """Collects the spans of one file; one that is refused loses no other."""

    options: ImportOptions
    refused: dict[str, Refusal] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _groups: list[dict[str, Any]] = field(default_factory=list)
    _origin: tuple[Mapping[str, Any], str] | None = None
    _no_request: set[tuple[str, str]] = field(default_factory=set)
    _untimed: set[tuple[str, str]] = field(default_factory=set)

    def add(
        self,
        origin: tuple[Mapping[str, Any], str],
        span: Span,
        where: str,
        *,
        request: bool = True,
        timed: bool = True,
    ) -> None:
        """Take a span, or count why not; `origin` is its resource and scope.

        Not `request`: the source says that it is no model request, whatever attributes it has. Not `timed`: its time is
        the one that was stated for the whole file.
        """
        reason = _refusal(span)
        if reason is not None:
            self.refuse(reason, where)
            return
        identity = (span.trace_id, span.span_id)
        if not request:
            self._no_request.add(identity)
        if not timed:
            self._untimed.add(identity)
        if origin != self._origin:
            self._origin = (resource, scope) = origin
            part = {"scope": {"name": scope}, "spans": []}
            self._groups.append({"resource": {"attributes": _pairs(resource)}, "scopeSpans": [part]})
        self._groups[-1]["scopeSpans"][0]["spans"].append(_otlp(span))

    def refuse(self, reason: str, where: str) -> None:
        """Count what is not stored."""
        known = self.refused.get(reason)
        self.refused[reason] = Refusal(known.count + 1, known.first) if known else Refusal(1, where)

    def taken(self, source: str) -> Taken:
        """Return the batch, what was refused, and remarks."""
        batch = decode_json(orjson.dumps({"resourceSpans": self._groups}), self.options.content)
        frames = dict(batch.frames)
        if SPANS.name in frames:
            frames[SPANS.name] = self._said(frames[SPANS.name])
            frames = label_requests(frames, self.options.labels)
            self.notes += nameless(frames[SPANS.name])
        drops = {**batch.drops, **{reason: refusal.count for reason, refusal in self.refused.items()}}
        return Batch(source, frames, drops), self.refused, tuple(dict.fromkeys(self.notes))

    def _said(self, spans: pl.DataFrame) -> pl.DataFrame:
        """Lay over the rows what the source says and attributes cannot."""
        ids = list(zip(spans["trace_id"], spans["span_id"], strict=True))
        no_request = pl.Series([identity in self._no_request for identity in ids], dtype=pl.Boolean)
        untimed = pl.Series([identity in self._untimed for identity in ids], dtype=pl.Boolean)
        operation = spans["operation"].set(no_request & spans["operation"].is_in(INFERENCE_OPERATIONS), None)
        quality = spans["quality"].str.replace("open_end", "no_time", literal=True)
        return spans.with_columns(operation, quality.zip_with(untimed, spans["quality"]).alias("quality"))


def nameless(spans: pl.DataFrame) -> tuple[str, ...]:
    """Remark where spans do not say which service they are of."""
    count = spans["service"].null_count()
    return (f"{count} spans name no service (--label service=NAME)",) if count else ()


def _refusal(span: Span) -> str | None:
    """Why a span cannot be stored, by the reasons of the receivers; None when it can."""
    if not span.trace_id.strip("0"):
        return "invalid_trace_id"
    if not span.span_id.strip("0"):
        return "invalid_span_id"
    if span.start_ns == 0:
        return "missing_start_time"
    return None if 0 < span.start_ns < _MAX_NS and span.end_ns >= 0 else "invalid_time"


def _otlp(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "status": {"code": span.status, "message": span.status_message},
        "attributes": _pairs(span.attributes),
        "events": [
            {"name": e.name, "timeUnixNano": str(e.at_ns), "attributes": _pairs(e.attributes)} for e in span.events
        ],
        "links": [{"traceId": k.trace_id, "spanId": k.span_id, "attributes": _pairs(k.attributes)} for k in span.links],
    }


def _pairs(attributes: Mapping[str, Any], depth: int = 0) -> list[dict[str, Any]]:
    return [{"key": str(key), "value": _value(value, depth)} for key, value in attributes.items()]


def _value(value: Any, depth: int) -> dict[str, Any]:
    """Return a value as OTLP/JSON writes it; a missing one is empty."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list() | dict() if depth > _DEEPEST:
            return {"stringValue": as_text(value)}
        case list():
            return {"arrayValue": {"values": [_value(item, depth + 1) for item in value]}}
        case dict():
            return {"kvlistValue": {"values": _pairs(value, depth + 1)}}
    return {}
