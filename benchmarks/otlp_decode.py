"""Decode OTLP spans: infractl (to a conforming frame) beside walking the official Python protobuf classes.

Run `python benchmarks/otlp_decode.py [SPANS…]`; it prints a markdown table. CPU time of one thread, best of several
interleaved runs. The peers are what one writes without thinking: every attribute of every span through `WhichOneof` and
`getattr` into a dictionary, and `MessageToDict`; both end in a list of dictionaries, not in columns.
"""

import json
import platform
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import google.protobuf
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.decode import decode_json, decode_protobuf

RUNS = 9


def attributes(i: int) -> dict[str, Any]:
    """Return fifteen attributes, as an instrumented client sets them."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
        "gen_ai.usage.input_tokens": 100 + i * 7919 % 4000,
        "gen_ai.usage.output_tokens": i * 31 % 700,
        "gen_ai.response.time_to_first_chunk": 0.1 + i * 1e-5,
        "gen_ai.request.temperature": 0.7,
        "gen_ai.request.max_tokens": 512,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.id": f"chatcmpl-{i:024}",
        "server.address": "api.openai.com",
        "server.port": 443,
        "http.response.status_code": 200,
        "tenant": f"team-{i % 20}",
    }


def any_value(value: Any) -> AnyValue:
    """Wrap a Python value."""
    match value:
        case list():
            wrapped = AnyValue()
            wrapped.array_value.values.extend(any_value(item) for item in value)
            return wrapped
        case str():
            return AnyValue(string_value=value)
        case int():
            return AnyValue(int_value=value)
        case _:
            return AnyValue(double_value=value)


def request(spans: int) -> ExportTraceServiceRequest:
    """Return a request of that many spans of one resource; ids, times and a third of the values differ."""
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    resource = {"service.name": "gateway", "cloud.region": "eu-west-1", "host.name": "node-1"}
    group.resource.attributes.extend(KeyValue(key=k, value=any_value(v)) for k, v in resource.items())
    part = group.scope_spans.add()
    for i in range(spans):
        span = part.spans.add(trace_id=(i + 1).to_bytes(16, "big"), span_id=(i + 1).to_bytes(8, "big"))
        span.name, span.kind, span.parent_span_id = "chat gpt-4o-mini", 3, (i + 7).to_bytes(8, "big")
        span.start_time_unix_nano = 1_796_000_000_000_000_000 + i * 10**6
        span.end_time_unix_nano = span.start_time_unix_nano + 10**9 + i
        span.attributes.extend(KeyValue(key=k, value=any_value(v)) for k, v in attributes(i).items())
    return made


def walk(body: bytes) -> list[dict[str, Any]]:
    """Read a request through the official classes."""
    rows: list[dict[str, Any]] = []
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        resource = _values(group.resource.attributes)
        for part in group.scope_spans:
            rows += [_row(span) | {"scope": part.scope.name, "resource": resource} for span in part.spans]
    return rows


def _row(span: Span) -> dict[str, Any]:
    return {
        "trace_id": span.trace_id.hex(),
        "span_id": span.span_id.hex(),
        "parent_span_id": span.parent_span_id.hex(),
        "name": span.name,
        "kind": span.kind,
        "start": span.start_time_unix_nano,
        "end": span.end_time_unix_nano,
        "status": span.status.code,
        "attributes": _values(span.attributes),
    }


def _values(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return None if kind is None else getattr(value, kind)


def as_json(made: ExportTraceServiceRequest) -> bytes:
    """Return a request as OTLP/JSON."""
    document = MessageToDict(made)
    for group in document["resourceSpans"]:
        for part in group["scopeSpans"]:
            for span, original in zip(part["spans"], made.resource_spans[0].scope_spans[0].spans, strict=True):
                ids = original.trace_id, original.span_id, original.parent_span_id
                span["traceId"], span["spanId"], span["parentSpanId"] = (raw.hex() for raw in ids)
    return json.dumps(document).encode()


def best_us(calls: dict[str, Callable[[], object]], spans: int) -> dict[str, float]:
    """Return µs of CPU a span of each call, the best of interleaved runs."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(RUNS):
        for name, call in calls.items():
            begun = time.thread_time()
            call()
            best[name] = min(best[name], (time.thread_time() - begun) / spans * 1e6)
    return best


def run(sizes: list[int]) -> None:
    """Print spans per second and core for each size of request."""
    print(f"Python {platform.python_version()}, protobuf {google.protobuf.__version__}; spans/s on one core.\n")
    columns = ("infractl, to a frame", "walk of the classes", "MessageToDict", "infractl, JSON")
    print(f"| spans in a request | bytes a span | {' | '.join(columns)} |")
    print("|---|---|---|---|---|---|")
    for spans in sizes:
        made = request(spans)
        body, text = made.SerializeToString(), as_json(made)
        calls: dict[str, Callable[[], object]] = {
            "ours": lambda body=body: decode_protobuf(body),  # type: ignore[misc]
            "walk": lambda body=body: walk(body),  # type: ignore[misc]
            "dict": lambda body=body: MessageToDict(ExportTraceServiceRequest.FromString(body)),  # type: ignore[misc]
            "json": lambda text=text: decode_json(text),  # type: ignore[misc]
        }
        times = best_us(calls, spans)
        cells = [f"{1e6 / us:,.0f}" for us in times.values()]
        print(f"| {spans:,} | {len(body) // spans} | {' | '.join(cells)} |")


if __name__ == "__main__":
    run([int(word) for word in sys.argv[1:]] or [1, 64, 512, 2048])
