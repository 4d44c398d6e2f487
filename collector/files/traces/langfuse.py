"""Langfuse's export of traces (JSON of its UI and API) → rows of `spans`, one an observation.

What an instrumentation sent to Langfuse stands in `metadata`; what Langfuse made of it (usage, cost, model) fills what
the instrumentation left unsaid. Input and output are conversation text and stay in the file.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import polars as pl

from collector.files.content import Content
from collector.files.options import ImportOptions
from collector.files.times import Clock, read_times
from collector.files.traces.documents import read_documents
from collector.files.traces.generations import generation_attributes
from collector.files.traces.spans import SPAN_BYTES, TRACE_BYTES, Span, SpanFile, Taken, hex_id, is_hex_id
from store.errors import SourceError
from store.tables import INFERENCE_OPERATIONS

_OWN_KEYS = (b'"parentObservationId"', b'"completionStartTime"')
_REQUESTS = ("GENERATION", "EMBEDDING")
_OPERATIONS = {"EMBEDDING": "embeddings", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
_INTERNAL, _CLIENT = 1, 3
_OPERATION = "gen_ai.operation.name"
Observation = Mapping[str, Any]


def is_langfuse(body: bytes) -> bool:
    """Tell an export of Langfuse by keys that only its observations have, anywhere: prompts may stand before them."""
    return b'"traceId"' in body and any(key in body for key in _OWN_KEYS)


def read_langfuse(content: Content, options: ImportOptions, source: str) -> Taken:
    """Return the batch of a file, what was refused, and remarks.

    A generation around another one (an agent framework above a client) repeats its tokens, so that only the inner one
    is a model request. Raises SourceError for JSON that holds no observation.
    """
    file = SpanFile(options)
    found: list[tuple[str, Observation, Mapping[str, Any]]] = []
    for where, document in read_documents(content):
        for number, (one, trace) in enumerate(_observations(document), 1):
            if isinstance(one, dict):
                found.append((f"{where} observation {number}", one, trace))
            else:
                file.refuse("no JSON object", f"{where} observation {number}")
    if not found:
        raise SourceError(f"{content.path}: no observation of Langfuse", "export the trace with its observations")
    moments = {key: _moments(found, key, options) for key in ("startTime", "endTime", "completionStartTime")}
    wrappers = {str(one.get("parentObservationId")) for _, one, _ in found if _kind(one) in _REQUESTS}
    for at, (where, one, trace) in enumerate(found):
        start, end, first = (moments[key][at] for key in moments)
        _add(file, one, trace, (start, end, first), str(one.get("id")) in wrappers, where)
    return file.taken(source)


def _observations(document: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield the observations with their trace: of one trace, of a list of either, or of an answer of the API."""
    if isinstance(document, list):
        for item in document:
            yield from _observations(item)
    elif isinstance(document, dict):
        listed = document.get("observations")
        if isinstance(listed, list):
            yield from ((one, _map(document.get("trace") or document)) for one in listed)
        elif isinstance(document.get("data"), list):
            yield from _observations(document["data"])
        elif "traceId" in document:
            yield document, {}


def _moments(found: list[tuple[str, Observation, Mapping[str, Any]]], key: str, options: ImportOptions) -> list[int]:
    """Return times as Unix ns: 0 where missing, -1 where unreadable."""
    texts = [one.get(key) for _, one, _ in found]
    stated = pl.Series(key, [None if text is None else str(text) for text in texts], pl.String)
    ts = read_times(stated, Clock(zone=options.time_zone, start=options.start)).ts.cast(pl.Int64)
    return [0 if text is None else -1 if us is None else us * 1000 for text, us in zip(texts, ts, strict=True)]


def _add(
    file: SpanFile, one: Observation, trace: Mapping[str, Any], moments: tuple[int, int, int], wraps: bool, where: str
) -> None:
    start_ns, end_ns, first_ns = moments
    metadata = _object(one.get("metadata"))
    kind = _kind(one)
    attributes = _attributes(one, trace, metadata, kind)
    if kind in _REQUESTS:
        attributes |= generation_attributes(one, attributes, start_ns, end_ns, first_ns)
    failed = one.get("level") == "ERROR"
    span = Span(
        trace_id=hex_id(one.get("traceId"), TRACE_BYTES),
        span_id=hex_id(one.get("id"), SPAN_BYTES),
        parent_span_id=hex_id(one.get("parentObservationId"), SPAN_BYTES),
        name=str(one.get("name") or ""),
        kind=_CLIENT if kind in _REQUESTS else _INTERNAL,
        start_ns=start_ns,
        end_ns=end_ns,
        status=2 if failed else 0,
        status_message=str(one.get("statusMessage") or ""),
        attributes=attributes,
    )
    scope = str(_map(metadata.get("scope")).get("name") or "")
    request = kind in _REQUESTS and not wraps  # of a wrapper the child is the request
    file.add((_resource(metadata, one, trace), scope), span, where, request=request)


def _kind(one: Observation) -> str:
    return str(one.get("type") or "SPAN").upper()


def _attributes(one: Observation, trace: Mapping[str, Any], metadata: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return what was sent to Langfuse as attributes, and what it says of session, user and the observation."""
    stated = dict(_object(metadata.get("attributes")))
    apart = ("attributes", "resourceAttributes", "scope")
    stated |= {f"langfuse.metadata.{key}": value for key, value in metadata.items() if key not in apart}
    if kind in _OPERATIONS:
        stated.setdefault(_OPERATION, _OPERATIONS[kind])
    elif kind == "GENERATION" and stated.get(_OPERATION) not in INFERENCE_OPERATIONS:
        stated[_OPERATION] = "inference"
    said = {
        "langfuse.observation.type": kind.lower(),
        "langfuse.observation.id": None if is_hex_id(one.get("id"), SPAN_BYTES) else one.get("id"),
        "langfuse.trace.id": None if is_hex_id(one.get("traceId"), TRACE_BYTES) else one.get("traceId"),
        "langfuse.trace.name": trace.get("name"),
        "session.id": trace.get("sessionId"),
        "user.id": trace.get("userId"),
    }
    return {key: value for key, value in said.items() if value} | stated


def _resource(metadata: Mapping[str, Any], one: Observation, trace: Mapping[str, Any]) -> dict[str, Any]:
    """Resource as it was sent, without the name of an unnamed service; with the environment of Langfuse, where set."""
    resource = dict(_object(metadata.get("resourceAttributes")))
    if str(resource.get("service.name", "")).startswith("unknown_service"):
        del resource["service.name"]
    environment = one.get("environment") or trace.get("environment")
    if environment and environment != "default":
        resource.setdefault("deployment.environment.name", environment)
    return resource


def _object(value: Any) -> Mapping[str, Any]:
    """Return an object, also from its JSON text."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return {}
    return _map(value)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
