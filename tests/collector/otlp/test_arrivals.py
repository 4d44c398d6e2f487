"""Token arrivals from span events and from arrays of times."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.arrivals import ARRIVAL_NAMES, CHUNK_EVENTS, FIRST_EVENTS, OUT_OF_ORDER
from collector.otlp.decode import decode_protobuf, rejected
from collector.otlp.receiver import ReceiverCounts
from store.batch import Batch
from store.database import Database
from store.tables import TOKEN_ARRIVALS
from tests.collector.otlp.builders import SPAN_ID, START_NS, TRACE_ID, make_event, make_request, make_span

CHAT = {"gen_ai.operation.name": "chat"}
MS = 1_000_000


def batch_of(attributes: dict[str, Any], *events: Span.Event, kind: int = 3) -> Batch:
    span = make_span(attributes, events=events, kind=kind)
    return decode_protobuf(make_request(span, resource={"service.name": "gw"}).SerializeToString())


def arrived(batch: Batch) -> tuple[list[int], list[int] | None] | None:
    frame = batch.frames.get("token_arrivals")
    if frame is None:
        return None
    row = frame.row(0, named=True)
    return row["offsets_us"], row["tokens"]


@pytest.mark.parametrize("name", sorted(CHUNK_EVENTS))
def test_every_chunk_event_is_one_arrival_and_no_longer_an_event(name: str) -> None:
    events = [make_event(name, at * MS) for at in (200, 225, 250)]
    batch = batch_of(CHAT, *events, make_event("exception", 300 * MS))
    row = batch.frames["token_arrivals"].row(0, named=True)
    span = batch.frames["spans"].row(0, named=True)
    assert {name: value for name, value in row.items() if value is not None} == {
        "trace_id": TRACE_ID.hex(), "span_id": SPAN_ID.hex(), "ts": span["ts"], "service": "gw",
        "measured_by": "client", "offsets_us": [200_000, 225_000, 250_000],
    }  # fmt: skip
    assert [event["name"] for event in json.loads(span["events"])] == ["exception"]
    assert (span["ttft_s"], span["ttft_source"]) == (pytest.approx(0.2), "client")
    assert (batch.drops, batch.frames["token_arrivals"].schema) == ({}, TOKEN_ARRIVALS.schema())


@pytest.mark.parametrize("name", sorted(FIRST_EVENTS))
def test_a_mark_of_the_first_token_alone_is_a_ttft_and_no_arrival(name: str) -> None:
    batch = batch_of(CHAT, make_event(name, 200 * MS))
    assert arrived(batch) is None
    assert batch.frames["spans"]["ttft_s"].item() == pytest.approx(0.2)
    assert json.loads(batch.frames["spans"]["events"].item())[0]["name"] == name


def test_the_first_token_is_not_counted_twice_beside_its_chunk() -> None:
    events = [make_event("first_token", 200 * MS), make_event("gen_ai.content.chunk", 200 * MS)]
    assert arrived(batch_of(CHAT, *events)) == ([200_000], None)


def test_tokens_of_an_event_are_read_and_a_chunk_of_none_is_no_token() -> None:
    counts = [(400, 0), (500, 1), (620, 4), (740, 4), (860, 3)]  # the first one only says "assistant"
    events = [make_event("gen_ai.content.chunk", at * MS, tokens=n) for at, n in counts]
    batch = batch_of(CHAT, *events)
    assert arrived(batch) == ([500_000, 620_000, 740_000, 860_000], [1, 4, 4, 3])
    assert batch.frames["spans"]["ttft_s"].item() == pytest.approx(0.5)


def test_late_events_are_put_in_order_and_those_before_the_start_left_out_both_counted() -> None:
    events = [make_event("gen_ai.content.chunk", at * MS) for at in (200, 190, 260, -5)]
    batch = batch_of(CHAT, *events)
    assert arrived(batch) == ([190_000, 200_000, 260_000], None)
    assert batch.drops == {"token_out_of_order": 1, "token_before_start": 1}
    assert rejected(batch) == 0, "no span was refused"
    counts = ReceiverCounts()
    counts.taken("http", batch)
    assert counts.requests == {("http", "traces", "stored"): 1}


def test_chunks_of_a_span_that_is_no_request_stay_events() -> None:
    batch = batch_of({"gen_ai.operation.name": "invoke_agent"}, make_event("gen_ai.content.chunk", MS))
    assert arrived(batch) is None
    assert "gen_ai.content.chunk" in batch.frames["spans"]["events"].item()


@pytest.mark.parametrize("name", [name for name, _ in ARRIVAL_NAMES["arrivals"]])
def test_every_name_of_an_array_is_read_in_its_unit(name: str) -> None:
    nanos = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[name.rpartition("_")[2]]
    start = 0 if "offsets_" in name else START_NS
    batch = batch_of({name: [(start + after * 10**9) // nanos for after in (1, 2)]}, kind=2)
    row = batch.frames["token_arrivals"].row(0, named=True)
    assert (row["offsets_us"], row["tokens"], row["measured_by"]) == ([1_000_000, 2_000_000], None, "server")
    span = batch.frames["spans"].row(0, named=True)
    assert (span["operation"], span["ttft_s"], span["attributes"]) == ("inference", 1.0, None)


def test_fractions_of_a_second_and_json_text_are_read() -> None:
    assert arrived(batch_of({"gen_ai.token.offsets_s": [0.25, 0.5]})) == ([250_000, 500_000], None)
    assert arrived(batch_of({"gen_ai.token.offsets_ms": "[1.5, 2]"})) == ([1500, 2000], None)


def test_an_array_of_ten_thousand_tokens_is_kept_whole() -> None:
    batch = batch_of(CHAT | {"infractl.token.offsets_us": list(range(10_000))})
    assert arrived(batch) == (list(range(10_000)), None)
    assert batch.frames["spans"]["quality"].item() is None


def test_counts_beside_an_array_are_read_where_they_match() -> None:
    times: dict[str, Any] = {"infractl.chunk.offsets_us": [5, 10]}
    assert arrived(batch_of(times | {"infractl.chunk.counts": [1, 3]})) == ([5, 10], [1, 3])
    batch = batch_of(times | {"infractl.chunk.counts": [1]})
    assert (arrived(batch), batch.drops) == (([5, 10], None), {"token_counts_do_not_match": 1})


@pytest.mark.parametrize("value", [[], ["x"], [True], [float("nan")], [2**62], "soon", 5, "[1,"])
def test_what_is_no_array_of_times_stays_an_attribute(value: Any) -> None:
    batch = batch_of(CHAT | {"infractl.token.offsets_us": value})
    assert arrived(batch) is None
    assert "infractl.token.offsets_us" in batch.frames["spans"]["attributes"].item()


@settings(deadline=None)
@given(st.lists(st.integers(-1000, 10**9), min_size=1), st.data())
def test_arrivals_are_sorted_and_every_one_is_kept_or_counted(offsets: list[int], data: st.DataObject) -> None:
    tokens = data.draw(st.lists(st.integers(0, 3), min_size=len(offsets), max_size=len(offsets)))
    batch = batch_of({"infractl.token.offsets_us": offsets, "infractl.token.counts": tokens})
    kept, carried = arrived(batch) or ([], None)
    assert kept == sorted(kept)
    assert all(at >= 0 for at in kept)
    early = batch.drops.get("token_before_start", 0)
    assert len(kept) + early + tokens.count(0) == len(offsets)
    after = [at for at, n in zip(offsets, tokens, strict=True) if n and at >= 0]
    assert (OUT_OF_ORDER in batch.drops) == (after != sorted(after))
    assert sum(carried or [1] * len(kept)) == sum(n for at, n in zip(offsets, tokens, strict=True) if at >= 0)


def test_arrivals_sent_twice_are_stored_once(database: Database) -> None:
    batches = [batch_of({"infractl.token.offsets_us": [1, 2]}) for _ in range(2)]
    database.append(batches)
    assert database.table("token_arrivals")["offsets_us"].to_list() == [[1, 2]]
