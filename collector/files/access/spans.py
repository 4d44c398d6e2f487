"""Entries of an access log → rows of `spans`."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson
import polars as pl

from collector.files.access.client import Connections, network_of, split_port
from collector.files.access.entry import Entry
from collector.files.identity import derived_ids
from collector.files.options import ImportOptions
from collector.otlp.failures import http_error
from store.columns import Kind
from store.tables import SPANS

_TRACEPARENT = re.compile(r"^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_ROOT = re.compile(r"Root=1-([0-9a-f]{8})-([0-9a-f]{24})(?:;|$)")
_MALFORMED = "malformed request"
_HANDSHAKE = "TLS handshake"
_CONNECTION = "connection"
_FAILED = "Failed:"


def spans_of(entries: Sequence[tuple[Entry, str]], options: ImportOptions, service: str) -> pl.DataFrame:
    """Return a row for each entry, which comes with its line. `service` is the service where nothing else names one.

    Addresses are cut to their network, unless `options.content` keeps content; ids are derived from the cut line, so
    that they give no address away either.
    """
    keep = options.content.store_content
    cut = [_without_client(entry, line) for entry, line in entries]
    connections = Connections(cut[0] if cut else "")
    rows = [_row(entry, options, service, connections, keep=keep) for entry, _ in entries]
    labels = ",".join(f"{name}={text}" for name, text in sorted(options.labels.items()))
    trace, span = derived_ids(pl.Series(cut, dtype=pl.String), labels)
    frame = pl.DataFrame(rows, schema={**{name: SPANS.schema()[name] for name in _COLUMNS}, "ts": pl.Int64()})
    named = [pl.lit(text).alias(name) for name, text in options.labels.items() if is_text(name)]
    return SPANS.conform(
        frame.with_columns(
            pl.col("ts").cast(pl.Datetime("us")),
            trace_id=pl.coalesce("trace_id", trace),
            span_id=span,
            kind=pl.lit("server"),
        ).with_columns(named)
    )


def is_text(name: str) -> bool:
    """Tell whether a label sets a column; others become attributes."""
    column = SPANS.column(name)
    return column is not None and column.kind is Kind.TEXT


_COLUMNS = (
    "trace_id", "parent_span_id", "ts", "duration_s", "name", "status", "status_message", "service", "error_code",
    "request_id", "server_address", "attributes",
)  # fmt: skip


def _row(entry: Entry, options: ImportOptions, service: str, connections: Connections, *, keep: bool) -> dict[str, Any]:
    trace, parent = _trace(entry)
    error = http_error(entry.status) or _unanswered(entry) or _refused(entry)
    extra = {name: text for name, text in options.labels.items() if not is_text(name)}
    attributes = {**entry.attributes, **_http(entry, keep=keep), **_client(entry, connections, keep=keep), **extra}
    if trace is None and entry.amazon_trace:
        attributes["aws.trace_header"] = entry.amazon_trace
    most = options.content.max_value_bytes // 4
    short = {name: text[:most] if isinstance(text, str) else text for name, text in attributes.items()}
    return {
        "trace_id": trace,
        "parent_span_id": parent,
        "ts": _start_us(entry),
        "duration_s": entry.duration_s,
        "name": _name(entry)[:most],
        "status": "error" if error else "unset" if entry.status is None and entry.handshake is None else "ok",
        "status_message": entry.failure,
        "service": entry.service or service,
        "error_code": error,
        "request_id": entry.request_id,
        "server_address": _last(entry.upstream),
        "attributes": orjson.dumps(short, option=orjson.OPT_SORT_KEYS).decode(),
    }


def _unanswered(entry: Entry) -> str | None:
    """Name the error of a request that got no status: what Envoy's flags say ('DC': the client went away)."""
    flags = entry.attributes.get("envoy.response_flags")
    return None if entry.status is not None or not isinstance(flags, str) else flags.partition(",")[0][:128]


def _refused(entry: Entry) -> str | None:
    """Name the error of a handshake that failed ('ClientCertUntrusted')."""
    said = entry.handshake or ""
    return said.removeprefix(_FAILED)[:128] if said.startswith(_FAILED) else None


def _start_us(entry: Entry) -> int | None:
    """Start of the request; a log that states the end only has it minus the duration."""
    if entry.start_us is not None or entry.end_us is None:
        return entry.start_us
    return entry.end_us - round((entry.duration_s or 0.0) * 1e6)


def _name(entry: Entry) -> str:
    if entry.method is None:
        return _MALFORMED if entry.listener is None else _HANDSHAKE if entry.handshake else _CONNECTION
    return f"{entry.method} {_path(entry)}".strip()


def _path(entry: Entry) -> str:
    """Return the path: the query is cut off, for it may hold keys and what people typed."""
    target = (entry.target or "").partition("?")[0].partition("#")[0]
    if "://" in target and entry.method != "CONNECT":
        try:
            return urlsplit(target).path or "/"
        except ValueError:
            return target
    return target


def _http(entry: Entry, *, keep: bool) -> dict[str, Any]:
    found = {
        "http.request.method": entry.method,
        "url.path": _path(entry) or None,
        "http.response.status_code": entry.status,
        "network.protocol.version": entry.protocol.removeprefix("HTTP/") if entry.protocol else None,
        "upstream.address": entry.upstream,
        "server.port": entry.listener,
        "tls.handshake_s": entry.duration_s if entry.listener is not None else None,
    }
    if keep:
        found["url.query"] = (entry.target or "").partition("?")[2] or None
        found |= {"user.name": entry.user, "http.request.header.referer": entry.referrer, **entry.unknown}
    return {name: value for name, value in found.items() if value is not None}


def _client(entry: Entry, connections: Connections, *, keep: bool) -> dict[str, Any]:
    address, port = split_port(entry.client or "")
    port = entry.client_port or port
    forwarded = (entry.forwarded or "").partition(",")[0].strip()
    found = {"client.network": network_of(split_port(forwarded)[0]) or network_of(address), "connection.id": None}
    if entry.connection:
        found["connection.id"] = entry.connection
    elif address and port and port != "0":
        found["connection.id"] = connections.number(address, port)
    if keep:
        found |= {"client.address": forwarded or address or None, "client.port": port}
    return {name: value for name, value in found.items() if value is not None}


def _without_client(entry: Entry, line: str) -> str:
    for text in (entry.client, entry.forwarded, entry.user):
        if text and len(text) > 2:
            line = line.replace(text, network_of(split_port(text)[0]) or "")
    return line


def _trace(entry: Entry) -> tuple[str | None, str | None]:
    """Trace and parent span: of traceparent, else of an X-Ray id, whose two parts are a W3C trace id."""
    if found := _TRACEPARENT.match(entry.traceparent or ""):
        return found[1], found[2]
    if found := _ROOT.search(entry.amazon_trace or ""):
        return found[1] + found[2], None
    return None, None


def _last(upstream: str | None) -> str | None:
    """Return the upstream that answered: the last of those that were tried."""
    tried = re.split(r",\s*|\s+:\s+", upstream) if upstream else []
    return tried[-1].strip() or None if tried else None
