"""POST /api/v1/write: every answer a sender can get, and what the store holds after each."""

import asyncio
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import cramjam
import httpx
import pytest
from starlette.applications import Starlette

from collector.otlp.receiver import ReceiverCounts, Submit
from collector.push.bodies import Limits
from collector.remote_write.receiver import PATH, create_routes
from store.batch import Batch, Receipt
from store.database import Database
from store.errors import BusyError, StoreError
from tests.collector.remote_write.builders import START_MS, packed, request_2, write_request

UP = {"__name__": "up", "job": "j", "instance": "i:1"}
ONE = packed(write_request((UP, [(1.0, START_MS)])))
SECOND = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
HEADERS = {"content-type": "application/x-protobuf", "content-encoding": "snappy"}
WRITTEN = "x-prometheus-remote-write-{}-written"


def app(submit: Submit, counts: ReceiverCounts | None = None, limits: Limits | None = None) -> Starlette:
    at = datetime.fromtimestamp(START_MS / 1000, UTC)
    return Starlette(routes=create_routes(submit, counts, limits or Limits(), lambda: at))


def post(to: Starlette, body: bytes, **headers: str) -> httpx.Response:
    named = HEADERS | {name.replace("_", "-"): value for name, value in headers.items()}

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(to), base_url="http://test") as client:
            return await client.post(PATH, content=body, headers={n: v for n, v in named.items() if v})

    return asyncio.run(send())


def never(_: Batch) -> "Future[Receipt]":
    raise AssertionError("nothing is to be stored")


def failing(error: Exception, *, late: bool = False) -> Submit:
    def submit(_: Batch) -> "Future[Receipt]":
        if not late:
            raise error
        future: Future[Receipt] = Future()
        future.set_exception(error)
        return future

    return submit


def test_a_request_is_stored_once_however_often_it_comes(database: Database, submit: Submit) -> None:
    counts = ReceiverCounts()
    to = app(submit, counts)
    answers = [
        post(to, ONE),
        post(to, ONE),
        post(to, ONE, content_type="application/x-protobuf; proto=prometheus.WriteRequest"),
    ]
    assert [answer.status_code for answer in answers] == [204, 204, 204]
    assert {answer.content for answer in answers} == {b""}
    assert database.table("metric_samples").rows() == [(database.table("metric_series")["series_id"][0], *sample())]
    assert counts.requests == {("remote_write", "metrics", "stored"): 3}


def sample() -> tuple[Any, ...]:
    return datetime.fromtimestamp(START_MS / 1000, UTC).replace(tzinfo=None), 1.0


def test_protocol_2_is_told_what_was_written(submit: Submit) -> None:
    request = request_2((UP, [(1.0, START_MS), (2.0, START_MS + 1)]), (UP | {"__name__": "lat"}, []))
    request.timeseries[1].histograms.add(count_int=1, sum=1, timestamp=START_MS)
    request.timeseries[0].exemplars.add(value=1, timestamp=START_MS)
    answer = post(app(submit), packed(request), content_type=SECOND)
    assert answer.status_code == 204
    told = [answer.headers[WRITTEN.format(what)] for what in ("samples", "histograms", "exemplars")]
    assert told == ["2", "1", "0"]


@pytest.mark.parametrize(("content_type", "build"), [(HEADERS["content-type"], write_request), (SECOND, request_2)])
def test_a_partial_write_is_a_400_with_reasons_and_the_rest_is_stored(
    database: Database, submit: Submit, content_type: str, build: Any
) -> None:
    counts = ReceiverCounts()
    body = packed(build((UP, [(1.0, START_MS)]), ({"job": "x"}, [(1.0, START_MS)]), (UP, [(1.0, 5)])))
    answer = post(app(submit, counts), body, content_type=content_type)
    assert answer.status_code == 400
    assert "no_name: 1" in answer.text
    assert "time_out_of_range: 1" in answer.text
    assert answer.headers[WRITTEN.format("samples")] == "1"
    assert database.counts()["metric_samples"] == 1
    assert dict(database.table("ingest_drops").select("reason", "rows").iter_rows()) == {
        "no_name": 1,
        "time_out_of_range": 1,
    }
    assert counts.requests == {("remote_write", "metrics", "partial"): 1}


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "application/json"},
        {"content_type": ""},
        {"content_type": "application/x-protobuf;proto=io.prometheus.write.v3.Request"},
        {"content_encoding": "gzip"},
        {"content_encoding": "zstd", "content_type": SECOND},
    ],
)
def test_what_is_not_read_is_a_415(headers: dict[str, str]) -> None:
    assert post(app(never), ONE, **headers).status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not snappy at all",
        bytes(cramjam.snappy.compress(b"framed")),
        bytes(cramjam.snappy.compress_raw(b"\xff\xff no protobuf")),
        ONE[:-3],
    ],
)
def test_a_broken_body_is_a_400_that_says_why(body: bytes) -> None:
    counts = ReceiverCounts()
    answer = post(app(never, counts), body)
    assert answer.status_code == 400
    assert "snappy" in answer.text or "WriteRequest" in answer.text
    assert counts.requests == {("remote_write", "metrics", "malformed"): 1}


def test_a_body_that_would_inflate_too_far_is_a_413_before_anything_is_inflated() -> None:
    bomb = b"\x80\x80\x80\x80\x04" + b"\x00" * 20  # a block that claims a gibibyte
    assert post(app(never), bomb).status_code == 413
    assert post(app(never, limits=Limits(max_body_bytes=10)), ONE).status_code == 413
    assert post(app(never, limits=Limits(max_inflated_bytes=20)), ONE).status_code == 413


@pytest.mark.parametrize(
    ("submit_", "outcome", "retry"),
    [
        (failing(BusyError("full", 2.0)), "busy", "2"),
        (failing(StoreError("disk full")), "store_error", "5"),
        (failing(StoreError("disk full"), late=True), "store_error", "5"),
    ],
)
def test_a_full_queue_or_a_failed_store_is_a_503_to_be_tried_again(submit_: Submit, outcome: str, retry: str) -> None:
    counts = ReceiverCounts()
    answer = post(app(submit_, counts), ONE)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, retry)
    assert counts.requests == {("remote_write", "metrics", outcome): 1}


def test_after_a_failed_commit_the_series_row_comes_with_the_next_try(database: Database, submit: Submit) -> None:
    tries = iter([failing(StoreError("disk full"), late=True), submit])

    def second_time(batch: Batch) -> "Future[Receipt]":
        return next(tries)(batch)

    to = app(second_time)
    assert [post(to, ONE).status_code for _ in range(2)] == [503, 204]
    assert database.table("metric_series")["name"].to_list() == ["up"]


def test_a_request_of_metadata_only_is_taken(submit: Submit) -> None:
    counts = ReceiverCounts()
    assert post(app(submit, counts), packed(write_request(types={"up": 2}))).status_code == 204
    assert counts.requests == {("remote_write", "metrics", "empty"): 1}


def test_other_methods_are_not_allowed() -> None:
    async def get() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app(never)), base_url="http://test") as client:
            return await client.get(PATH)

    assert asyncio.run(get()).status_code == 405
