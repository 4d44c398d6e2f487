"""Rows of `spans` and `token_arrivals` from spans off the wire, whichever encoding they came in."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
import polars as pl

from collector.otlp.address import take_server_address
from collector.otlp.arrivals import CHUNK_EVENTS, Arrivals, Event, seen, stated
from collector.otlp.attribute import Attribute, prepare_all, promote
from collector.otlp.content import ContentOptions, clip, keep, keep_of_event
from collector.otlp.dialects import PREFILL_FROM_DISPATCH, RESOURCE_INDEX
from collector.otlp.parameters import COLUMN as PARAMETERS
from collector.otlp.places import place
from collector.otlp.requests import REQUESTS, derive_latency, name_error, name_request
from collector.otlp.stages import queue_from_stages
from store.batch import Batch
from store.tables import SPANS, TOKEN_ARRIVALS

_KINDS = (None, "internal", "server", "client", "producer", "consumer")
_STATUSES = ("unset", "ok", "error")
_ZERO_TRACE, _ZERO_SPAN = bytes(16), bytes(8)
_MAX_NS = 2**63
_LONG_NS = 86_400 * 10**9  # over a day it is nearly always a clock or an SDK gone wrong: kept, and flagged
_SCHEMA = SPANS.schema()
_ONE_NULL = {name: pl.Series(name, [None], kind) for name, kind in _SCHEMA.items()}
_DEFAULTS = ("provider", "model")  # a resource may name them, a span knows better

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
    attributes: Collection[Attribute]
    events: Sequence[Event]
    links: Sequence[Link]
    repaired: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """What all spans of one resource and scope share: column values, those for want of better, doubts about them."""

    columns: dict[str, Any]
    defaults: dict[str, Any]
    cut: bool
    repaired: bool


def origin_of(resource: Mapping[str, Any], scope: str, options: ContentOptions, *, repaired: bool) -> Origin:
    """Resource attributes as columns, the rest of them as JSON."""
    taken = promote(prepare_all(resource, options, RESOURCE_INDEX))
    columns = {"resource": _json(taken.rest), **place(taken.found, taken.rest), "scope": scope or None}
    defaults = {name: columns.pop(name) for name in _DEFAULTS if name in columns}
    return Origin(columns, defaults, taken.cut, repaired)


@dataclass(slots=True)
class SpanRows:
    """Collects the rows of one body and counts the spans refused, by reason."""

    options: ContentOptions
    rows: list[dict[str, Any]] = field(default_factory=list)
    arrivals: list[dict[str, Any]] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)

    def add(self, origin: Origin, span: WireSpan) -> None:
        """Take one span, or count why not."""
        reason = refusal(span)
        if reason is not None:
            self.drops[reason] += 1
            return
        row, arrivals = rows_of(origin, span, self.options)
        self.rows.append(row)
        if arrivals is not None:
            self.drops.update(arrivals.doubts)
            if arrivals.offsets_us:
                self.arrivals.append(_arrivals_row(row, arrivals))

    def batch(self) -> Batch:
        """Return the rows as conforming frames; no frame where there is no row."""
        queue_from_stages(self.rows)
        frames = {SPANS.name: _frame(self.rows)} if self.rows else {}
        if self.arrivals:
            frames[TOKEN_ARRIVALS.name] = _arrivals_frame(self.arrivals)
        return Batch("otlp", frames, dict(self.drops))


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


def rows_of(origin: Origin, span: WireSpan, options: ContentOptions) -> tuple[dict[str, Any], Arrivals | None]:
    """Return the row of a valid span (columns it lacks are absent), and when its tokens arrived."""
    row, sources, rest, cut = promote(span.attributes)
    if PARAMETERS in row:
        row = {**row.pop(PARAMETERS), **row}
        if (text := sources[PARAMETERS].value) is not None:
            rest[sources[PARAMETERS].key] = text
    kind = _KINDS[span.kind] if 0 <= span.kind < len(_KINDS) else None
    status = _STATUSES[span.status] if 0 <= span.status < len(_STATUSES) else None
    duration_s, doubt = _duration(span.start_ns, span.end_ns)
    name_request(row, origin.columns["scope"], rest.get("module"), origin.defaults)
    arrivals, events = _arrivals(row, span)
    derive_latency(row, sources, span.start_ns, duration_s, span.events, arrivals, kind)
    name_error(row, status, span.events)
    name, name_cut = clip(span.name, options.max_value_bytes)
    message, message_cut = clip(span.status_message, options.max_value_bytes)
    told, told_cut = _events(events, options) if events else (None, False)
    links, links_cut = _links(span.links, options) if span.links else (None, False)
    flags = [
        doubt,
        "queue_in_prefill" if "prefill_s" in row and row.get("provider") in PREFILL_FROM_DISPATCH else None,
        "invalid_utf8" if span.repaired or origin.repaired else None,
        "truncated" if cut or name_cut or message_cut or told_cut or links_cut or origin.cut else None,
    ]
    parent = span.parent_span_id
    row |= origin.columns
    row |= {
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
        "quality": ",".join(filter(None, flags)) or None,
        "attributes": _json(rest),
        "events": told,
        "links": links,
    }
    return row, arrivals


def _arrivals(row: dict[str, Any], span: WireSpan) -> tuple[Arrivals | None, Sequence[Event]]:
    """Return the arrivals of a span and its other events; takes what the attributes state out of `row`."""
    given, tokens, paints = (row.pop(name, None) for name in ("arrivals", "arrival_tokens", "paints"))
    if given is not None:
        shown = None if paints is None else sorted(at // 1000 for at in paints.at_ns if at >= 0)
        return stated(given, tokens, span.start_ns)._replace(paints_us=shown), span.events
    if not span.events or row.get("operation") not in REQUESTS:
        return None, span.events
    found = seen(span.events, span.start_ns)
    return found, span.events if found is None else [event for event in span.events if event[0] not in CHUNK_EVENTS]


def _arrivals_row(row: dict[str, Any], arrivals: Arrivals) -> dict[str, Any]:
    shared = {name: row.get(name) for name in ("trace_id", "span_id", "ts", "service")}
    measured_by = "server" if row["kind"] == "server" else "client"
    return {
        **shared,
        "measured_by": measured_by,
        "offsets_us": arrivals.offsets_us,
        "tokens": arrivals.tokens,
        "paints_us": arrivals.paints_us,
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


def _arrivals_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = {**TOKEN_ARRIVALS.schema(), "ts": pl.Int64()}
    return TOKEN_ARRIVALS.conform(pl.DataFrame(rows, schema=schema))


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Every column of the table, made of its own values: `conform` takes three times as long for a few rows."""
    used = set[str]().union(*rows)
    return pl.DataFrame([_column(name, rows) if name in used else _nulls(name, len(rows)) for name in _SCHEMA])


def _column(name: str, rows: list[dict[str, Any]]) -> pl.Series:
    return pl.Series(name, [row.get(name) for row in rows], _SCHEMA[name])


@lru_cache(maxsize=256)
def _nulls(name: str, height: int) -> pl.Series:
    """Senders fill their requests to the same size, and each call into polars waits for other threads."""
    return _ONE_NULL[name].new_from_index(0, height)
