"""OTLP trace bodies to a `Batch` of spans and token arrivals, from protobuf and from JSON.

Not kept: trace state, flags, schema URLs, scope versions, and the sender's own counts of dropped attributes.
"""

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp import jsontypes
from collector.otlp.arrivals import REASONS
from collector.otlp.attribute import prepare_all
from collector.otlp.content import DEFAULT_CONTENT, ContentOptions
from collector.otlp.dialects import SPAN_INDEX
from collector.otlp.jsontypes import attributes_of, id_of, int_of
from collector.otlp.repair import REPLACEMENT, repair_json, repair_protobuf
from collector.otlp.rows import SpanRows, WireSpan, origin_of
from collector.otlp.wire import SpanReader, groups, resource_of, scope_of
from store.batch import Batch
from store.errors import SourceError

_BAD = REPLACEMENT.encode()
_KINDS = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))
}
_STATUSES = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_UNSET = jsontypes.Status()
_REQUEST = msgspec.json.Decoder(jsontypes.Request)


def rejected(batch: Batch) -> int:
    """Spans of a body that were refused; `batch.drops` says why, and what of token arrivals was left out."""
    return sum(n for reason, n in batch.drops.items() if reason not in REASONS)


def decode_protobuf(body: bytes, options: ContentOptions = DEFAULT_CONTENT) -> Batch:
    """Decode an ExportTraceServiceRequest; invalid UTF-8 is replaced and flagged on the span.

    Raises SourceError for a body that is no such message.
    """
    checked, repaired = _checked(body)
    rows, reader = SpanRows(options), SpanReader(options)
    for group in groups(checked):
        bad = repaired and (_BAD in group.resource or _BAD in group.scope)
        origin = origin_of(resource_of(group.resource), scope_of(group.scope), options, repaired=bad)
        for raw in group.spans:
            rows.add(origin, reader.read(raw, repaired=repaired and _BAD in raw))
    return rows.batch()


def decode_json(body: bytes, options: ContentOptions = DEFAULT_CONTENT) -> Batch:
    """Decode an OTLP/JSON body; invalid UTF-8 and lone surrogates are replaced and flagged on the span.

    Raises SourceError for a body that is no JSON, not of OTLP's shape, in snake_case, or of metrics or logs.
    """
    request, repaired = _parse_json(body)
    rows = SpanRows(options)
    try:
        for group in request.resource_spans or ():
            _add_json(rows, group, repaired=repaired)
    except RecursionError:
        raise _malformed("JSON", "attributes nest too deeply") from None
    return rows.batch()


def _malformed(form: str, why: object) -> SourceError:
    return SourceError(
        f"not an OTLP trace request in {form}: {why}", "see what the sender exports and how it encodes it"
    )


def _checked(body: bytes) -> tuple[bytes, bool]:
    """Return a body as protobuf writes it anew, and whether its text had to be repaired."""
    try:
        return _rewritten(body), False
    except DecodeError:
        pass
    try:
        return _rewritten(repair_protobuf(body, ExportTraceServiceRequest.DESCRIPTOR)), True
    except DecodeError as error:
        raise _malformed("protobuf", error) from None


def _rewritten(body: bytes) -> bytes:
    request = ExportTraceServiceRequest.FromString(body)
    request.DiscardUnknownFields()
    return request.SerializeToString()


def _parse_json(body: bytes) -> tuple[jsontypes.Request, bool]:
    """Return the request and whether its text had to be repaired."""
    repaired = False
    try:
        try:
            request = _REQUEST.decode(body)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            body, repaired = repair_json(body), True
            request = _REQUEST.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _malformed("JSON", error) from None
    _check_shape(request, body)
    return request, repaired


def _check_shape(request: jsontypes.Request, body: bytes) -> None:
    """Refuse a body that would pass as holding no span because its spans are under another name."""
    keys = msgspec.json.decode(body, type=dict[str, msgspec.Raw]) if request.resource_spans is None else {}
    if any(group.misspelt is not None for group in request.resource_spans or ()):
        keys = {"scope_spans": msgspec.Raw()}
    found = next((key for key in keys if key != "resourceSpans"), None)
    if found is not None:
        hint = (
            "OTLP/JSON writes resourceSpans and scopeSpans, not snake_case"
            if "_" in found
            else "it has no resourceSpans"
        )
        raise _malformed("JSON", f"found {found!r}; {hint}")


def _add_json(rows: SpanRows, group: jsontypes.ResourceSpans, *, repaired: bool) -> None:
    bad = repaired and _BAD in msgspec.json.encode(group.resource)
    resource = attributes_of(group.resource.attributes if group.resource else None)
    for part in group.scope_spans or ():
        scope = (part.scope.name if part.scope else None) or ""
        origin = origin_of(resource, scope, rows.options, repaired=bad or (repaired and REPLACEMENT in scope))
        for span in part.spans or ():
            rows.add(origin, _json_span(span, rows.options, repaired=repaired))


def _json_span(span: jsontypes.Span, options: ContentOptions, *, repaired: bool) -> WireSpan:
    status = span.status or _UNSET
    return WireSpan(
        trace_id=id_of(span.trace_id),
        span_id=id_of(span.span_id),
        parent_span_id=id_of(span.parent_span_id),
        name=span.name,
        kind=int_of(span.kind, _KINDS),
        start_ns=int_of(span.start_time_unix_nano),
        end_ns=int_of(span.end_time_unix_nano),
        status=int_of(status.code, _STATUSES),
        status_message=status.message or "",
        attributes=prepare_all(attributes_of(span.attributes), options, SPAN_INDEX),
        events=[(e.name, int_of(e.time_unix_nano), attributes_of(e.attributes)) for e in span.events or ()],
        links=[(id_of(k.trace_id), id_of(k.span_id), attributes_of(k.attributes)) for k in span.links or ()],
        repaired=repaired and _BAD in msgspec.json.encode(span),
    )
