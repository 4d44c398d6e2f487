"""Bodies to batches: both encodings, refused spans, doubtful times, broken bodies."""

import json
from base64 import b64decode
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector.otlp.content import ContentOptions
from collector.otlp.decode import decode_json, decode_protobuf, rejected
from collector.otlp.dialects import SPAN_INDEX
from store.batch import Batch
from store.errors import SourceError
from store.tables import SPANS, TOKEN_ARRIVALS
from tests.collector.otlp.builders import (
    SPAN_ID,
    START_NS,
    TRACE_ID,
    make_event,
    make_request,
    make_span,
    pairs,
    row_of,
)

NAMES = st.sampled_from([*SPAN_INDEX, "server.address", "server.port", "url.full", "my.key", "gen_ai.prompt", ""])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=20),
    st.binary(max_size=9), st.sampled_from(["chat", "429", "12", "0.5", '["stop"]', "true"]),
)  # fmt: skip
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3))
ATTRIBUTES = st.dictionaries(NAMES, VALUES, max_size=6)
TIMES = st.one_of(st.just(0), st.integers(START_NS - 10**15, START_NS + 10**15), st.integers(0, 2**64 - 1))
IDS = st.binary(min_size=16, max_size=16) | st.sampled_from([b"", bytes(16), b"short"])
SPAN_IDS = st.binary(min_size=8, max_size=8) | st.sampled_from([b"", bytes(8), b"x"])


@st.composite
def spans(draw: st.DrawFn) -> Span:
    span = Span(
        trace_id=draw(IDS),
        span_id=draw(SPAN_IDS),
        parent_span_id=draw(SPAN_IDS),
        name=draw(st.text(max_size=10)),
        kind=draw(st.integers(0, 5)),
        start_time_unix_nano=draw(TIMES),
        end_time_unix_nano=draw(TIMES),
        attributes=pairs(draw(ATTRIBUTES)),
        status=Status(code=draw(st.integers(0, 2)), message=draw(st.text(max_size=5))),
    )
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(["exception", "first_token", "gen_ai.choice", "gen_ai.content.chunk"]))
        span.events.append(Span.Event(name=name, time_unix_nano=draw(TIMES), attributes=pairs(draw(ATTRIBUTES))))
    for _ in range(draw(st.integers(0, 1))):
        span.links.append(Span.Link(trace_id=draw(IDS), span_id=draw(SPAN_IDS), attributes=pairs(draw(ATTRIBUTES))))
    return span


def as_json(request: ExportTraceServiceRequest) -> bytes:
    """Write OTLP/JSON by protobuf's own writer, its base64 ids made hex as OTLP asks."""

    def hex_ids(value: Any) -> Any:
        if isinstance(value, list):
            return [hex_ids(item) for item in value]
        if not isinstance(value, dict):
            return value
        ids = ("traceId", "spanId", "parentSpanId")
        return {k: b64decode(v).hex() if k in ids else hex_ids(v) for k, v in value.items()}

    return json.dumps(hex_ids(MessageToDict(request, use_integers_for_enums=False))).encode()


def frame(batch: Batch) -> pl.DataFrame:
    return batch.frames.get("spans", pl.DataFrame(schema=SPANS.schema()))


def arrivals(batch: Batch) -> pl.DataFrame:
    return batch.frames.get("token_arrivals", pl.DataFrame(schema=TOKEN_ARRIVALS.schema()))


@settings(max_examples=150, deadline=None)
@given(st.lists(spans(), max_size=3), ATTRIBUTES, st.booleans())
def test_protobuf_and_json_of_the_same_spans_give_the_same_rows(
    made: list[Span], resource: dict[str, Any], store_content: bool
) -> None:
    request = make_request(*made, resource=resource)
    options = ContentOptions(store_content=store_content, max_value_bytes=12)
    one, two = decode_protobuf(request.SerializeToString(), options), decode_json(as_json(request), options)
    assert frame(one).equals(frame(two))
    assert one.drops == two.drops
    assert arrivals(one).equals(arrivals(two))
    assert frame(one).height + rejected(one) == len(made), "every span is stored or counted"


@settings(deadline=None)
@given(spans())
def test_no_number_in_a_row_is_nan_or_infinite(made: Span) -> None:
    rows = frame(decode_protobuf(make_request(made).SerializeToString()))
    floats = rows.select(pl.col(pl.Float64)).unpivot()["value"].drop_nulls()
    assert floats.is_finite().all()


def test_a_frame_conforms_to_the_table() -> None:
    batch = decode_protobuf(make_request(make_span()).SerializeToString())
    assert batch.source == "otlp"
    assert batch.frames["spans"].schema == SPANS.schema()


def test_an_empty_request_is_an_empty_batch() -> None:
    for batch in (decode_protobuf(b""), decode_json(b"{}"), decode_json(b'{"resourceSpans": []}')):
        assert (batch.rows, batch.frames, batch.drops) == (0, {}, {})


def test_identity_times_and_links_are_kept() -> None:
    link = Span.Link(trace_id=TRACE_ID, span_id=SPAN_ID, attributes=pairs({"k": 1}))
    row = row_of(
        {"x": [1, {"y": b"\x00"}]}, kind=3, parent_span_id=SPAN_ID, events=[make_event("e", 7, a=1)], links=[link]
    )
    assert (row["trace_id"], row["span_id"], row["parent_span_id"]) == ("0" * 31 + "1", "0" * 15 + "2", "0" * 15 + "2")
    assert row["ts"] == datetime(1970, 1, 1) + timedelta(microseconds=START_NS // 1000)
    assert (row["duration_s"], row["kind"], row["status"], row["scope"], row["quality"]) == (
        1.0,
        "client",
        "unset",
        "test",
        None,
    )
    assert json.loads(row["attributes"]) == {"x": [1, {"y": "AA=="}]}
    assert json.loads(row["events"]) == [{"name": "e", "ts_unix_nano": START_NS + 7, "attributes": {"a": 1}}]
    assert json.loads(row["links"]) == [{"trace_id": "0" * 31 + "1", "span_id": "0" * 15 + "2", "attributes": {"k": 1}}]


@pytest.mark.parametrize(
    ("end_ns", "duration_s", "quality"),
    [
        (START_NS + 1, 1e-9, None),
        (START_NS, 0.0, None),
        (START_NS - 191_000, None, "clock_skew"),
        (0, None, "open_end"),
        (2**64 - 1, None, "open_end"),
        (START_NS + 86_400 * 10**9, 86_400.0, None),
        (START_NS + 86_400 * 10**9 + 1, pytest.approx(86_400.0), "long"),
    ],
)
def test_doubtful_ends_are_flagged(end_ns: int, duration_s: float | None, quality: str | None) -> None:
    row = row_of(end_time_unix_nano=end_ns)
    assert (row["duration_s"], row["quality"]) == (duration_s, quality)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"trace_id": b""}, "invalid_trace_id"),
        ({"trace_id": bytes(16)}, "invalid_trace_id"),
        ({"trace_id": bytes(23) + b"\x01"}, "invalid_trace_id"),
        ({"span_id": bytes(8)}, "invalid_span_id"),
        ({"span_id": b"\x01" * 7}, "invalid_span_id"),
        ({"parent_span_id": b"\x01"}, "invalid_parent_span_id"),
        ({"start_time_unix_nano": 0}, "missing_start_time"),
        ({"start_time_unix_nano": 2**63}, "invalid_time"),
    ],
)
def test_a_span_that_cannot_be_stored_is_counted_and_the_others_kept(fields: dict[str, Any], reason: str) -> None:
    batch = decode_protobuf(make_request(make_span(**fields), make_span()).SerializeToString())
    assert (batch.rows, batch.drops, rejected(batch)) == (1, {reason: 1}, 1)


def json_body(**fields: Any) -> bytes:
    span = {"traceId": TRACE_ID.hex(), "spanId": SPAN_ID.hex(), "startTimeUnixNano": str(START_NS)} | fields
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def json_row(**fields: Any) -> dict[str, Any]:
    return decode_json(json_body(**fields)).frames["spans"].row(0, named=True)


def test_json_nulls_enum_names_and_unknown_fields_are_read() -> None:
    row = json_row(
        kind="SPAN_KIND_SERVER", parentSpanId=None, attributes=None, status={"code": "STATUS_CODE_OK"}, new=[1]
    )
    assert (row["kind"], row["status"], row["parent_span_id"]) == ("server", "ok", None)
    assert json_row(kind="NEW_KIND")["kind"] is None


@pytest.mark.parametrize("value", [{"intValue": "1e3"}, {"intValue": str(2**64)}, {"doubleValue": "wide"}])
def test_a_json_number_that_is_none_stays_text(value: dict[str, str]) -> None:
    row = json_row(attributes=[{"key": "k", "value": value}])
    assert json.loads(row["attributes"]) == {"k": next(iter(value.values()))}


def test_json_nan_is_null() -> None:
    row = json_row(attributes=[{"key": "gen_ai.latency.e2e", "value": {"doubleValue": "NaN"}}])
    assert (row["e2e_s"], row["attributes"]) == (None, '{"gen_ai.latency.e2e":null}')


def test_unreadable_json_times_and_ids_are_counted() -> None:
    assert decode_json(json_body(startTimeUnixNano="noon")).drops == {"invalid_time": 1}
    assert decode_json(json_body(endTimeUnixNano="-1")).drops == {"invalid_time": 1}
    assert decode_json(json_body(traceId="q83vEjRWeJCrze8SNFZ4kA==")).drops == {"invalid_trace_id": 1}
    assert decode_json(json_body(traceId="00 " * 16)).drops == {"invalid_trace_id": 1}


def test_text_cut_inside_an_emoji_flags_only_its_own_span() -> None:
    body = json_body(name="cut \ud83d").replace(b'"spans": [', b'"spans": [' + json.dumps(good_span()).encode() + b",")
    rows = decode_json(body).frames["spans"]
    assert rows["name"].to_list() == ["good", "cut \ufffd"]
    assert rows["quality"].to_list() == ["open_end", "open_end,invalid_utf8"]


def good_span() -> dict[str, Any]:
    return {"traceId": TRACE_ID.hex(), "spanId": "0" * 15 + "9", "startTimeUnixNano": START_NS, "name": "good"}


def test_bad_bytes_of_the_resource_flag_all_its_spans() -> None:
    body = make_request(make_span(), make_span(span_id=b"\x01" * 8), resource={"host.name": "BAD"}).SerializeToString()
    rows = decode_protobuf(body.replace(b"BAD", b"\xff\xff\xff")).frames["spans"]
    assert rows["host"].to_list() == ["\ufffd" * 3] * 2
    assert rows["quality"].to_list() == ["invalid_utf8"] * 2


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"abc"', b'{"resourceSpans": 3}',
        b'{"resource_spans": []}', b'{"resourceSpans":[{"scope_spans":[]}]}', b'{"resourceLogs":[]}', b'{"data":[]}',
        b"\x1f\x8b", b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"\xff"',
    ],
)  # fmt: skip
def test_a_body_that_is_no_trace_request_in_json_is_a_source_error(body: bytes) -> None:
    with pytest.raises(SourceError, match="not an OTLP trace request in JSON"):
        decode_json(body)


@pytest.mark.parametrize("body", [b"\xff", b"{}", b"\x0a\x05abc", b"\x0b", b'{"resourceSpans": []}'])
def test_a_body_that_is_no_message_is_a_source_error(body: bytes) -> None:
    with pytest.raises(SourceError, match="not an OTLP trace request in protobuf"):
        decode_protobuf(body)


@pytest.mark.parametrize("levels", [60, 5_000])
def test_attributes_nested_without_end_are_a_source_error(levels: int) -> None:
    value = '{"arrayValue":{"values":[' * levels + '{"intValue":1}' + "]}}" * levels
    body = json_body(attributes=["HERE"]).replace(b'"HERE"', b'{"key":"k","value":' + value.encode() + b"}")
    with pytest.raises(SourceError):
        decode_json(body)
