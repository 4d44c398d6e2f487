"""Recorded calls of LLM APIs: one object a call, with its status, usage and headers as JSON text."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from collector.files.bills.requests import ids, operation_of, other_labels, provider_of, spans, token_fields
from collector.files.content import Content
from collector.files.documents import read_documents
from collector.files.intake import Decoded
from collector.files.options import ImportOptions
from collector.files.refusals import Refusal, counts
from collector.otlp.failures import http_error
from collector.prices import read_usage
from store.batch import Batch

_NEEDS = ('"usage_json"', '"headers_json"', '"status"', '"host"')
_PROCESSING = ("openai-processing-ms", "x-amzn-bedrock-invocation-latency", "x-envoy-upstream-service-time")
_US = timedelta(microseconds=1)
Row = dict[str, Any]


def is_calls(head: str) -> bool:
    """Tell whether a text is a record of API calls."""
    return all(name in head for name in _NEEDS)


def decode_calls(content: Content, options: ImportOptions, source: str) -> Decoded:
    """Turn calls into spans: model requests with their tokens, other calls without an operation.

    A call starts at its Date header less the time the provider says it took, which is to the second ('server_date');
    without that header `options.at` is its time, else it is refused.
    """
    frame, _, lines = read_documents(content)
    rows: list[Row] = []
    refused: dict[str, Refusal] = {}
    for number, call in enumerate(frame.iter_rows(named=True)):
        row = _span(call, number, options, content.stem)
        if row is None:
            reason = "no time (no Date header; --time gives one)"
            where = f"{content.path}:{lines[number]}" if lines else f"{content.path} row {number + 1}"
            known = refused.get(reason, Refusal(0, where))
            refused[reason] = Refusal(known.count + 1, known.first)
        else:
            rows.append(row)
    batch = Batch(source, {"spans": spans(rows, options.labels)} if rows else {}, counts(refused))
    requests = sum(row["operation"] is not None for row in rows)
    return batch, refused, (f"{requests} model requests, {len(rows) - requests} other calls",)


def _span(call: Row, number: int, options: ImportOptions, stem: str) -> Row | None:
    headers = _object(call.get("headers_json"))
    took_s, end = _took_s(headers), _date(headers)
    dated = end is not None
    if end is None:
        if options.at is None:
            return None
        end = options.at.astimezone(UTC).replace(tzinfo=None) + number * _US
    operation = operation_of(call.get("method"), call.get("path"))
    tokens = _tokens(call, operation)
    doubts = [tokens.pop("quality", None), "server_date" if dated else "no_time"]
    error = http_error(call.get("status"))
    whole_s = None if call.get("stream") else took_s  # of a stream it is the time to the first event
    labels = ",".join(f"{name}={text}" for name, text in sorted(options.labels.items()))
    return {
        **ids(json.dumps(call, sort_keys=True, default=str), str(number), labels),
        "ts": end - timedelta(seconds=took_s or 0),
        "duration_s": whole_s,
        "e2e_s": whole_s if operation else None,
        "name": operation or f"{str(call.get('method') or '').upper()} {call.get('path')}",
        "kind": "client",
        "status": "error" if error else "ok",
        "error_code": error,
        "status_message": call.get("error_type"),
        "service": call.get("instrumentation") or stem,
        "operation": operation,
        "provider": provider_of(call.get("host")),
        "model": call.get("model_served") or call.get("model_requested"),
        "request_model": call.get("model_requested"),
        "response_model": call.get("model_served"),
        "stream": call.get("stream"),
        "server_address": call.get("host"),
        **tokens,
        "quality": ",".join(word for word in doubts if word) or None,
        "attributes": _attributes(call, headers, options),
    }


def _tokens(call: Row, operation: str | None) -> Row:
    """Return the tokens of a model request; a poll that repeats the usage of a run has none."""
    usage = _object(call.get("usage_json"))
    return token_fields(read_usage(usage, provider_of(call.get("host")))) if usage and operation else {}


def _attributes(call: Row, headers: Mapping[str, Any], options: ImportOptions) -> str:
    kept: Row = {
        "http.request.method": (call.get("method") or "").upper() or None,
        "url.path": call.get("path"),
        "http.response.status_code": call.get("status"),
        "stream_events": call.get("n_stream_events"),
        "usage": _object(call.get("usage_json")) or None,
        **{f"http.response.header.{name}": value for name, value in headers.items()},
        **other_labels(options.labels),
    }
    return orjson.dumps({name: value for name, value in kept.items() if value is not None}).decode()


def _object(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _took_s(headers: Mapping[str, Any]) -> float | None:
    for name in _PROCESSING:
        try:
            took_ms = float(headers[name])
        except (KeyError, TypeError, ValueError):
            continue
        if 0 <= took_ms < 1e9:
            return took_ms / 1000
    return None


def _date(headers: Mapping[str, Any]) -> datetime | None:
    try:
        moment = parsedate_to_datetime(str(headers["date"]))
    except (KeyError, ValueError):
        return None
    return (moment.astimezone(UTC) if moment.tzinfo else moment).replace(tzinfo=None)
