"""Jaeger's JSON (its API, "Download JSON" of its UI, `jaeger-query` dumps) → rows of `spans`.

Jaeger keeps OpenTelemetry's kind, status, scope and links as tags and references; they are put back where they came
from (opentelemetry.io, "OpenTelemetry to Jaeger transformation"). Not kept, as from OTLP: trace state, scope version.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from collector.files.content import Content
from collector.files.options import ImportOptions
from collector.files.traces.documents import read_documents
from collector.files.traces.spans import SPAN_BYTES, TRACE_BYTES, Event, Link, Span, SpanFile, Taken, hex_id
from collector.otlp.values import flag, real, whole
from store.errors import SourceError

_KEYS = (
    re.compile(r'"traceID"\s*:'),
    re.compile(r'"spans"\s*:'),
    re.compile(r'"(?:operationName|process(?:ID|es))"\s*:'),
)
_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUSES = {"OK": 1, "ERROR": 2}
_SCOPES = ("otel.scope.name", "otel.library.name")
_DROPPED = frozenset({"otel.scope.version", "otel.library.version", "w3c.tracestate", "internal.span.format"})
_NO_SERVICE = "OTLPResourceNoServiceName"  # what Jaeger calls a service that has no name


def is_jaeger(head: str) -> bool:
    """Tell Jaeger's JSON by keys that no other tool spells like that."""
    return all(key.search(head) for key in _KEYS)


def read_jaeger(content: Content, options: ImportOptions, source: str) -> Taken:
    """Return the batch of a file, what was refused, and remarks: Jaeger's own warnings and errors are among them.

    Raises SourceError for JSON that holds no trace.
    """
    file = SpanFile(options)
    found = False
    for where, document in read_documents(content):
        file.notes += _errors(document)
        for number, trace in enumerate(_traces(document), 1):
            found = True
            _add_trace(file, trace, f"{where} trace {number}")
    if not found:
        raise SourceError(f"{content.path}: no trace of Jaeger", "it needs objects with traceID, spans and processes")
    return file.taken(source)


def _traces(document: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the traces of an answer ({"data": [...]}), a list of traces, or the one trace."""
    if isinstance(document, dict) and isinstance(document.get("data"), list | dict):
        yield from _traces(document["data"])
    elif isinstance(document, list):
        yield from (trace for trace in document if isinstance(trace, dict) and isinstance(trace.get("spans"), list))
    elif isinstance(document, dict) and isinstance(document.get("spans"), list):
        yield document


def _errors(document: Any) -> list[str]:
    errors = document.get("errors") if isinstance(document, dict) else None
    messages = [error.get("msg") if isinstance(error, dict) else error for error in _list(errors)]
    return [f"Jaeger reports an error: {message}" for message in messages if message]


def _add_trace(file: SpanFile, trace: Mapping[str, Any], where: str) -> None:
    processes = _map(trace.get("processes"))
    file.notes += [f"Jaeger warns: {warning}" for warning in _list(trace.get("warnings"))]
    for number, span in enumerate(trace["spans"], 1):
        place = f"{where} span {number}"
        if not isinstance(span, dict):
            file.refuse("no JSON object", place)
            continue
        _add_span(file, _map(span.get("process") or processes.get(str(span.get("processID")))), span, place)


def _add_span(file: SpanFile, process: Mapping[str, Any], span: Mapping[str, Any], where: str) -> None:
    tags = _tags(span.get("tags"))
    scope = next((str(name) for key in _SCOPES if (name := tags.pop(key, None)) is not None), "")
    for key in _SCOPES:
        tags.pop(key, None)
    warnings = [str(warning) for warning in _list(span.get("warnings"))]
    if warnings:
        tags["jaeger.warnings"] = warnings
        file.notes += [f"Jaeger warns: {warning}" for warning in warnings]
    kind = _KINDS.get(str(tags.pop("span.kind", "")).lower(), 0)
    status, message = _status(tags)
    parent, links = _references(span)
    start_us, length_us = whole(span.get("startTime")), whole(span.get("duration"))
    start_ns = -1 if start_us is None else start_us * 1000
    found = Span(
        trace_id=hex_id(span.get("traceID"), TRACE_BYTES),
        span_id=hex_id(span.get("spanID"), SPAN_BYTES),
        parent_span_id=parent,
        name=str(span.get("operationName") or ""),
        kind=kind,
        start_ns=start_ns,
        end_ns=0 if length_us is None else max(start_ns + length_us * 1000, 0),
        status=status,
        status_message=message,
        attributes={key: value for key, value in tags.items() if key not in _DROPPED},
        events=[_event(log) for log in _list(span.get("logs")) if isinstance(log, dict)],
        links=links,
    )
    file.add((_resource(process), scope), found, where)


def _resource(process: Mapping[str, Any]) -> dict[str, Any]:
    resource = _tags(process.get("tags"))
    if "hostname" in resource:  # what Jaeger's own clients wrote
        resource.setdefault("host.name", resource.pop("hostname"))
    name = process.get("serviceName")
    return resource | ({"service.name": name} if name and name != _NO_SERVICE else {})


def _status(tags: dict[str, Any]) -> tuple[int, str]:
    """Take the status out of the tags; `error` alone is how OpenTracing says that a span failed."""
    code, message = tags.pop("otel.status_code", None), tags.pop("otel.status_description", None)
    failed = flag(tags["error"]) if "error" in tags else None
    if failed is not None:
        tags.pop("error")
    return _STATUSES.get(str(code).upper(), 2 if failed else 0), str(message or "")


def _references(span: Mapping[str, Any]) -> tuple[str, list[Link]]:
    """Return the parent (the first CHILD_OF within the trace) and the links.

    Jaeger writes a link of OpenTelemetry as FOLLOWS_FROM; a further parent becomes a link that says so.
    """
    parent = hex_id(span.get("parentSpanID"), SPAN_BYTES)
    links: list[Link] = []
    for reference in _list(span.get("references")):
        if not isinstance(reference, dict):
            continue
        trace, to = (hex_id(reference.get(k), n) for k, n in (("traceID", TRACE_BYTES), ("spanID", SPAN_BYTES)))
        child = reference.get("refType") == "CHILD_OF"
        if child and not parent and trace == hex_id(span.get("traceID"), TRACE_BYTES):
            parent = to
        elif to != parent or not child:
            links.append(Link(trace, to, {"opentracing.ref_type": "child_of"} if child else {}))
    return parent, links


def _event(log: Mapping[str, Any]) -> Event:
    fields = _tags(log.get("fields"))
    name = fields.pop("event", None) or "log"
    at_us = whole(log.get("timestamp"))
    return Event(str(name), 0 if at_us is None else at_us * 1000, fields)


def _tags(tags: Any) -> dict[str, Any]:
    """Key-value pairs as plain values of their stated type; one that is not of its type stays as it is."""
    return {
        str(tag["key"]): _value(str(tag.get("type", "")).lower(), tag.get("value"))
        for tag in _list(tags)
        if isinstance(tag, dict) and "key" in tag
    }


def _value(kind: str, value: Any) -> Any:
    read = {"bool": flag, "int64": whole, "float64": real}.get(kind)
    converted = read(value) if read else None
    return value if converted is None else converted


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
