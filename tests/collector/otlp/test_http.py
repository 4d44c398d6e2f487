"""OTLP/HTTP: a real exporter into a real store, and every answer a sender can get."""

import asyncio
import gzip
import json
from concurrent.futures import Future
from typing import Any

import cramjam
import httpx
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from starlette.applications import Starlette

from collector.otlp import signals
from collector.otlp.content import ContentOptions
from collector.otlp.decode import decode_protobuf
from collector.otlp.http import create_app
from collector.otlp.receiver import ReceiverCounts, Submit
from collector.otlp.signals import JSON, PROTOBUF
from collector.push.bodies import Limits
from store.batch import Batch, Receipt
from store.database import Database
from store.errors import BusyError, StoreError
from tests.collector.otlp.builders import make_request, make_span
from tests.collector.otlp.conftest import Served

BODY = make_request(make_span(name="one")).SerializeToString()
FULL = "the queue is full"


def post(
    app: Starlette, body: bytes, content_type: str | None = PROTOBUF, path: str = "/v1/traces", **headers: str
) -> httpx.Response:
    """Send one request to the app without a socket."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if content_type is not None:
        named["content-type"] = content_type

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post(path, content=body, headers=named)

    return asyncio.run(send())


def counts_of(app: Starlette) -> ReceiverCounts:
    counts = app.state.counts
    assert isinstance(counts, ReceiverCounts)
    return counts


def failing(error: Exception, *, late: bool = False) -> Submit:
    def submit(_: Batch) -> "Future[Receipt]":
        if not late:
            raise error
        future: Future[Receipt] = Future()
        future.set_exception(error)
        return future

    return submit


def never(_: Batch) -> "Future[Receipt]":
    raise AssertionError("nothing is to be stored")


@pytest.mark.parametrize("compression", [Compression.Gzip, Compression.NoCompression])
def test_the_sdk_exports_into_the_store(database: Database, submit: Submit, compression: Compression) -> None:
    app = create_app(submit)
    with Served(app) as url:
        exporter = OTLPSpanExporter(f"{url}/v1/traces", compression=compression)
        provider = TracerProvider(resource=Resource({"service.name": "gw", "cloud.region": "eu-west-1"}))
        provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = provider.get_tracer("client-lib")
        with tracer.start_as_current_span("turn"), tracer.start_as_current_span("chat m") as span:
            span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 12, "mine": "x"})
            span.set_attribute("gen_ai.input.messages", "secret")
            span.add_event("first_token")
            span.record_exception(TimeoutError("slow"))
        provider.shutdown()
    rows = {row["name"]: row for row in database.table("spans").iter_rows(named=True)}
    chat, turn = rows["chat m"], rows["turn"]
    assert set(rows) == {"turn", "chat m"}
    assert (chat["trace_id"], chat["parent_span_id"]) == (turn["trace_id"], turn["span_id"])
    assert (chat["service"], chat["cloud_region"], chat["scope"]) == ("gw", "eu-west-1", "client-lib")
    assert (chat["operation"], chat["input_tokens"], turn["operation"]) == ("chat", 12, None)
    assert 0 <= chat["ttft_s"] <= chat["e2e_s"] == chat["duration_s"]
    assert json.loads(chat["attributes"]) == {"mine": "x"}
    assert [event["name"] for event in json.loads(chat["events"])] == ["first_token", "exception"]
    assert counts_of(app).requests == {("http", "traces", "stored"): 1}
    assert counts_of(app).rows == {("http", "traces"): 2}


def test_the_sdk_retries_while_the_queue_is_full_and_nothing_is_lost_or_doubled(
    database: Database, submit: Submit
) -> None:
    refusals = iter([True, False])

    def busy_once(batch: Batch) -> "Future[Receipt]":
        if next(refusals):
            raise BusyError(FULL, retry_after_s=0.1)
        return submit(batch)

    app = create_app(busy_once)
    provider = TracerProvider()
    with provider.get_tracer("t").start_as_current_span("s") as span:
        pass
    with Served(app) as url:
        result = OTLPSpanExporter(f"{url}/v1/traces").export([span])  # type: ignore[list-item]
    assert result is SpanExportResult.SUCCESS
    assert database.counts()["spans"] == 1
    assert counts_of(app).requests == {("http", "traces", "busy"): 1, ("http", "traces", "stored"): 1}


def test_one_span_has_the_same_row_over_every_encoding(database: Database, submit: Submit) -> None:
    app = create_app(submit)
    as_json = json.dumps(
        {
            "resourceSpans": [
                {
                    "resource": {},
                    "scopeSpans": [
                        {
                            "scope": {"name": "test"},
                            "spans": [
                                {
                                    "traceId": "0" * 31 + "1",
                                    "spanId": "0" * 15 + "2",
                                    "name": "one",
                                    "startTimeUnixNano": "1796000000000000000",
                                    "endTimeUnixNano": "1796000001000000000",
                                }
                            ],
                        }
                    ],
                }
            ]
        }
    ).encode()
    answers = [
        post(app, BODY),
        post(app, gzip.compress(BODY), content_encoding="gzip"),
        post(app, bytes(cramjam.zstd.compress(BODY)), content_encoding="zstd"),
        post(app, as_json, "application/json; charset=utf-8"),
        post(app, gzip.compress(as_json), JSON, content_encoding="GZIP"),
    ]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert database.counts()["spans"] == 1


@pytest.mark.parametrize(("form", "empty"), [(PROTOBUF, b""), (JSON, b"{}")])
def test_an_empty_request_is_answered_in_its_encoding_without_a_commit(form: str, empty: bytes) -> None:
    answer = post(create_app(never), empty, form)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, form, empty)


def test_refused_spans_are_told_as_partial_success(database: Database, submit: Submit) -> None:
    app = create_app(submit)
    bad = make_span(trace_id=b"short")
    answer = post(app, make_request(make_span(), bad, bad).SerializeToString())
    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, partial.rejected_spans) == (200, 2)
    assert "invalid_trace_id: 2" in partial.error_message
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "q83v"}]}]}]}).encode()
    assert post(app, body, JSON).json()["partialSuccess"]["rejectedSpans"] == "1"
    assert database.counts()["spans"] == 1
    assert database.table("ingest_drops")["rows"].sum() == 3
    assert counts_of(app).refused_rows == {("traces", "invalid_trace_id"): 3}
    assert counts_of(app).requests == {("http", "traces", "partial"): 2}


@pytest.mark.parametrize(
    ("submit", "reason", "retry_after"),
    [
        (failing(BusyError(FULL, retry_after_s=1.5)), "busy", "2"),
        (failing(StoreError("disk full")), "store_error", "5"),
        (failing(StoreError("disk full"), late=True), "store_error", "5"),
    ],
)
def test_a_full_queue_or_a_failed_store_is_503_with_retry_after(submit: Submit, reason: str, retry_after: str) -> None:
    app = create_app(submit)
    answer = post(app, BODY)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, retry_after)
    status, info = Status.FromString(answer.content), RetryInfo()
    assert status.code == 14
    assert status.details[0].Unpack(info)
    assert 0 < info.retry_delay.ToTimedelta().total_seconds() <= int(retry_after)
    assert counts_of(app).requests == {("http", "traces", reason): 1}


@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        ({"body": b"\xff\xff"}, 400, "malformed"),
        ({"body": b'{"resourceSpans":[{', "content_type": JSON}, 400, "malformed"),
        ({"body": BODY, "content_encoding": "gzip"}, 400, "malformed"),
        ({"body": gzip.compress(gzip.compress(BODY)), "content_encoding": "gzip"}, 400, "malformed"),
        ({"body": BODY, "content_type": "text/plain"}, 415, "unsupported_type"),
        ({"body": BODY, "content_type": None}, 415, "unsupported_type"),
        ({"body": BODY, "content_encoding": "br"}, 415, "unsupported_encoding"),
        ({"body": BODY, "content_encoding": "gzip, gzip"}, 415, "unsupported_encoding"),
        ({"body": bytes(2001)}, 413, "too_large"),
        ({"body": gzip.compress(bytes(100_000)), "content_encoding": "gzip"}, 413, "too_large"),
    ],
)
def test_what_no_retry_can_mend_is_a_client_error_with_a_reason(sent: dict[str, Any], status: int, reason: str) -> None:
    app = create_app(never, limits=Limits(max_body_bytes=2000, max_inflated_bytes=50_000))
    answer = post(app, **sent)
    assert answer.status_code == status
    assert counts_of(app).requests == {("http", "traces", reason): 1}
    form = sent.get("content_type", PROTOBUF)
    message = Status.FromString(answer.content).message if form == PROTOBUF else answer.json()["message"]
    assert message
    assert "retry-after" not in answer.headers


def test_a_body_without_a_declared_length_is_cut_at_the_limit() -> None:
    sent = 0

    async def chunks() -> Any:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield bytes(1000)

    async def send() -> httpx.Response:
        app = create_app(never, limits=Limits(max_body_bytes=5000))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.post("/v1/traces", content=chunks(), headers={"content-type": PROTOBUF})

    assert asyncio.run(send()).status_code == 413
    assert sent < 10


def test_too_many_bodies_at_once_are_asked_to_come_again(submit: Submit) -> None:
    app = create_app(submit, limits=Limits(max_held_bytes=len(BODY)))
    assert post(app, BODY + BODY).status_code == 503
    assert post(app, BODY).status_code == 200, "what was held is given back"


def test_the_answer_waits_for_the_commit() -> None:
    future: Future[Receipt] = Future()
    app = create_app(lambda _: future)

    async def run() -> tuple[bool, int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            sending = asyncio.create_task(client.post("/v1/traces", content=BODY, headers={"content-type": PROTOBUF}))
            done, _ = await asyncio.wait([sending], timeout=0.2)
            future.set_result(Receipt("b", {"spans": 1}, {}))
            return bool(done), (await sending).status_code

    assert asyncio.run(run()) == (False, 200)


def test_decoding_happens_off_the_event_loop(monkeypatch: pytest.MonkeyPatch, submit: Submit) -> None:
    loops: list[bool] = []

    def decode(body: bytes, options: ContentOptions) -> Batch:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        loops.append(True)
        return decode_protobuf(body, options)

    monkeypatch.setattr(signals, "decode_protobuf", decode)
    assert post(create_app(submit), BODY).status_code == 200
    assert loops == [True]


def test_a_request_given_up_does_not_cancel_its_commit() -> None:
    future: Future[Receipt] = Future()
    app = create_app(lambda _: future)

    async def run() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            sending = asyncio.create_task(client.post("/v1/traces", content=BODY, headers={"content-type": PROTOBUF}))
            await asyncio.wait([sending], timeout=0.2)
            sending.cancel()
            await asyncio.wait([sending])

    asyncio.run(run())
    assert not future.cancelled()


def test_other_methods_are_not_allowed(submit: Submit) -> None:
    with Served(create_app(submit)) as url:
        assert httpx.get(f"{url}/v1/traces").status_code == 405
