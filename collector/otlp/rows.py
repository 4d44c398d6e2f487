"""Rows of `spans` from spans off the wire, whichever encoding they came in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
import polars as pl

from collector.otlp.address import take_server_address
from collector.otlp.content import ContentOptions, clip, keep, keep_of_event
from collector.otlp.dialects import RESOURCE_INDEX, SPAN_INDEX, promote
from collector.otlp.requests import Event, derive_latency, name_error, name_request
from store.batch import Batch
from store.tables import SPANS

_KINDS = (None, "internal", "server", "client", "producer", "consumer")
_STATUSES = ("unset", "ok", "error")
_ZERO_TRACE, _ZERO_SPAN = bytes(16), bytes(8)
_MAX_NS = 2**63
_LONG_NS = 86_400 * 10**9  # over a day it is nearly always a clock or an SDK gone wrong: kept, and flagged
_SCHEMA = SPANS.schema()

Link = tuple[bytes, bytes, dict[str, Any]]
"""Trace id, span id, attributes."""


class WireSpan(NamedTuple):
    """One span, its values as plain Python; times in Unix ns (0: not set, -1: unreadable), ids as bytes."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    name: str
    kind: int
    start_ns: int
    end_ns: int
    status: int
    status_message: str
    attributes: dict[str, Any]
    events: Sequence[Event]
    links: Sequence[Link]
    repaired: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """What all spans of one resource and scope share: column values, and doubts about them."""

    columns: dict[str, Any]
    scope: str | None
    cut: bool
    repaired: bool


def origin_of(resource: Mapping[str, Any], scope: str, options: ContentOptions, *, repaired: bool) -> Origin:
    """Resource attributes as columns, the rest of them as JSON."""
    kept, cut = keep(resource, options)
    found, _, rest = promote(kept, RESOURCE_INDEX)
    return Origin({**found, "resource": _json(rest), "scope": scope or None}, scope or None, cut, repaired)


@dataclass(slots=True)
class SpanRows:
    """Collects the rows of one body and counts the spans refused, by reason."""

    options: ContentOptions
    rows: list[dict[str, Any]] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)

    def add(self, origin: Origin, span: WireSpan) -> None:
        """Take one span, or count why not."""
        reason = refusal(span)
        if reason is None:
            self.rows.append(row_of(origin, span, self.options))
        else:
            self.drops[reason] += 1

    def batch(self) -> Batch:
        """Return the rows as one conforming frame; no frame where there is no row."""
        return Batch("otlp", {SPANS.name: _frame(self.rows)} if self.rows else {}, dict(self.drops))


def refusal(span: WireSpan) -> str | None:
    """Why a span cannot be stored; None when it can."""
    if len(span.trace_id) != 16 or span.trace_id == _ZERO_TRACE:
        return "invalid_trace_id"
    if len(span.span_id) != 8 or span.span_id == _ZERO_SPAN:
        return "invalid_span_id"
    if len(span.parent_span_id) not in (0, 8):
        return "invalid_parent_span_id"
    if span.start_ns == 0:
        return "missing_start_time"
    return None if 0 < span.start_ns < _MAX_NS and span.end_ns >= 0 else "invalid_time"


def row_of(origin: Origin, span: WireSpan, options: ContentOptions) -> dict[str, Any]:
    """Return the row of a valid span; columns it lacks are absent."""
    attributes, cut = keep(span.attributes, options)
    row, sources, rest = promote(attributes, SPAN_INDEX)
    kind = _KINDS[span.kind] if 0 <= span.kind < len(_KINDS) else None
    status = _STATUSES[span.status] if 0 <= span.status < len(_STATUSES) else None
    duration_s, doubt = _duration(span.start_ns, span.end_ns)
    name_request(row, origin.scope, rest.get("module"))
    derive_latency(row, sources, span.start_ns, duration_s, span.events, kind)
    name_error(row, status, span.events)
    name, name_cut = clip(span.name, options.max_value_bytes)
    message, message_cut = clip(span.status_message, options.max_value_bytes)
    events, events_cut = _events(span.events, options)
    links, links_cut = _links(span.links, options)
    flags = {
        doubt: True,
        "invalid_utf8": span.repaired or origin.repaired,
        "truncated": cut or name_cut or message_cut or events_cut or links_cut or origin.cut,
    }
    parent = span.parent_span_id
    return {
        **row,
        **origin.columns,
        "trace_id": span.trace_id.hex(),
        "span_id": span.span_id.hex(),
        "parent_span_id": parent.hex() if parent and parent != _ZERO_SPAN else None,
        "ts": span.start_ns // 1000,
        "duration_s": duration_s,
        "name": name,
        "kind": kind,
        "status": status,
        "status_message": message or None,
        "server_address": take_server_address(rest, kind),
        "quality": ",".join(flag for flag, holds in flags.items() if flag and holds) or None,
        "attributes": _json(rest),
        "events": events,
        "links": links,
    }


def _duration(start_ns: int, end_ns: int) -> tuple[float | None, str | None]:
    """Seconds, and the doubt about them: a missing or earlier end gives null, never zero or 2^64."""
    if end_ns == 0 or end_ns >= _MAX_NS:
        return None, "open_end"
    if end_ns < start_ns:
        return None, "clock_skew"
    span_ns = end_ns - start_ns
    return span_ns / 1e9, "long" if span_ns > _LONG_NS else None


def _events(events: Sequence[Event], options: ContentOptions) -> tuple[str | None, bool]:
    kept = [(name, at, *keep_of_event(name, attributes, options)) for name, at, attributes in events]
    rows = [{"name": name, "ts_unix_nano": at, "attributes": attributes} for name, at, attributes, _ in kept]
    return _json(rows), any(cut for *_, cut in kept)


def _links(links: Sequence[Link], options: ContentOptions) -> tuple[str | None, bool]:
    kept = [(trace, span, *keep(attributes, options)) for trace, span, attributes in links]
    rows = [{"trace_id": t.hex(), "span_id": s.hex(), "attributes": attributes} for t, s, attributes, _ in kept]
    return _json(rows), any(cut for *_, cut in kept)


def _json(value: Any) -> str | None:
    """JSON text; None for an empty list or map. NaN and infinities become null."""
    return orjson.dumps(value).decode() if value else None


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Columns that any row has, then the table's other columns as nulls."""
    used = dict.fromkeys(name for row in rows for name in row)
    types = {**_SCHEMA, "ts": pl.Int64()}
    series = [pl.Series(name, [row.get(name) for row in rows], dtype=types[name]) for name in used]
    return SPANS.conform(pl.DataFrame(series))
