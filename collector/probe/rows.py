"""A round as rows: a client span per attempt, a child span per phase, and when the tokens came."""

import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import polars as pl

from collector.probe.attempt import Attempt
from collector.probe.config import Probe
from collector.probe.timeline import Phase
from store.batch import Batch
from store.tables import SPANS, TOKEN_ARRIVALS

SOURCE = "probe"
SCOPE = "infractl.probe"
_ENGINES = ("vllm", "sglang")


def batch_of(probe: Probe, attempts: Sequence[Attempt]) -> Batch:
    """Return the rows of a round. Nothing of a prompt or an answer is in them."""
    spans = [row for attempt in attempts for row in _span_rows(probe, attempt)]
    frames = {SPANS.name: SPANS.conform(pl.DataFrame(spans, infer_schema_length=None))}
    streamed = [_arrivals_row(probe, attempt) for attempt in attempts if attempt.ttft_s is not None]
    if streamed:
        schema = TOKEN_ARRIVALS.schema()
        frames[TOKEN_ARRIVALS.name] = TOKEN_ARRIVALS.conform(pl.DataFrame(streamed, schema=schema))
    return Batch(SOURCE, frames)


def _span_rows(probe: Probe, attempt: Attempt) -> Iterator[dict[str, Any]]:
    shared = _shared(probe, attempt)
    asks_model = probe.target.operation.is_inference
    yield shared | {
        "span_id": attempt.span_id,
        "ts": _naive(attempt),
        "duration_s": attempt.e2e_s,
        "name": _name(probe, attempt),
        "kind": "client",
        "status": "error" if attempt.fault else "unset",
        "status_message": attempt.fault.text if attempt.fault else None,
        "error_code": attempt.fault.code if attempt.fault else None,
        "resend_count": attempt.resend_count,
        "attributes": _json(_attributes(probe, attempt)),
        **(_request(probe, attempt) if asks_model else {}),
    }
    for phase in attempt.timeline.phases:
        yield shared | _phase(attempt, phase)


def _shared(probe: Probe, attempt: Attempt) -> dict[str, Any]:
    return {
        "trace_id": attempt.trace_id,
        "service": probe.config.service,
        "environment": probe.config.environment,
        "host": socket.gethostname(),
        "server_address": probe.target.address,
        "scope": SCOPE,
    }


def _request(probe: Probe, attempt: Attempt) -> dict[str, Any]:
    """Columns of a model request."""
    answer = attempt.answer
    return {
        "operation": probe.target.operation.value,
        "model": answer.model or attempt.model,
        "request_model": attempt.model,
        "response_model": answer.model,
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "cached_input_tokens": answer.cached_input_tokens,
        "reasoning_tokens": answer.reasoning_tokens,
        "ttft_s": attempt.ttft_s,
        "ttft_source": None if attempt.ttft_s is None else "client",
        "tpot_s": attempt.tpot_s if attempt.streamed else None,
        "e2e_s": attempt.e2e_s,
        "stream": probe.config.stream if attempt.streamed is None else attempt.streamed,
        "finish_reason": answer.finish_reason,
        "max_tokens": probe.config.max_tokens,
        "request_id": answer.request_id,
    }


def _attributes(probe: Probe, attempt: Attempt) -> dict[str, Any]:
    """Give what is no column; names are OpenTelemetry's where it has one."""
    timeline = attempt.timeline
    found = {
        "url.full": probe.target.shown_url,
        "http.response.status_code": attempt.status,
        "http.response.body.size": attempt.body_bytes if attempt.status is not None else None,
        "infractl.probe.connection": "new" if timeline.connected else "reused" if timeline.sent_ns else None,
        "infractl.probe.request_sent_s": None if timeline.sent_ns is None else timeline.sent_ns / 1e9,
        "infractl.probe.time_to_first_byte_s": attempt.ttfb_s,
        "infractl.probe.events": len(attempt.counted.arrivals) if attempt.streamed else None,
        "infractl.probe.tokens_basis": attempt.counted.basis if attempt.streamed else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _phase(attempt: Attempt, phase: Phase) -> dict[str, Any]:
    return {
        "span_id": secrets.token_hex(8),
        "parent_span_id": attempt.span_id,
        "ts": _naive(attempt) + timedelta(microseconds=phase.start_ns // 1000),
        "duration_s": phase.seconds,
        "name": phase.name,
        "kind": "internal",
        "status": "error" if phase.failed else "unset",
        "error_code": attempt.fault.code if phase.failed and attempt.fault else None,
        "attributes": _json(phase.attributes),
    }


def _arrivals_row(probe: Probe, attempt: Attempt) -> dict[str, Any]:
    counted = attempt.counted
    return {
        "trace_id": attempt.trace_id,
        "span_id": attempt.span_id,
        "ts": _naive(attempt),
        "service": probe.config.service,
        "measured_by": "client",
        "offsets_us": [arrival.at_ns // 1000 for arrival in counted.arrivals],
        "tokens": None if counted.tokens is None else list(counted.tokens),
    }


def _name(probe: Probe, attempt: Attempt) -> str:
    """Span name as the conventions have it: `chat MODEL`, `GET`, `tcp`."""
    operation = probe.target.operation
    if operation.is_inference:
        return f"{operation.value} {attempt.model}" if attempt.model else operation.value
    return "GET" if probe.target.scheme.startswith("http") else "tcp"


def _naive(attempt: Attempt) -> datetime:
    return attempt.at.replace(tzinfo=None)


def _json(attributes: Mapping[str, Any]) -> str | None:
    return msgspec.json.encode(attributes).decode() if attributes else None
