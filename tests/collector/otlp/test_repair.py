"""Bodies with text that is no Unicode."""

import json

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp.repair import REPLACEMENT, repair_json, repair_protobuf
from tests.collector.otlp.builders import make_event, make_request, make_span

REQUEST = ExportTraceServiceRequest.DESCRIPTOR
MARK = "MARKMARK"
VALUES = {"a": MARK, "list": [MARK, {"deep": MARK}], "n": 3, "f": 1.5, "raw": b"\xff\xfe"}


@given(st.binary(min_size=len(MARK), max_size=len(MARK)))
def test_every_text_is_repaired_and_nothing_else_changes(raw: bytes) -> None:
    span = make_span(VALUES, name=MARK, events=[make_event(MARK)])
    broken = make_request(span, resource={"r": MARK}, scope=MARK).SerializeToString().replace(MARK.encode(), raw)
    text = raw.decode(errors="replace")
    values = {"a": text, "list": [text, {"deep": text}], "n": 3, "f": 1.5, "raw": b"\xff\xfe"}
    span = make_span(values, name=text, events=[make_event(text)])
    whole = make_request(span, resource={"r": text}, scope=text)
    assert ExportTraceServiceRequest.FromString(repair_protobuf(broken, REQUEST)) == whole


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_refused_or_stay_parsable(raw: bytes) -> None:
    try:
        repaired = repair_protobuf(raw, REQUEST)
    except DecodeError:
        with pytest.raises(DecodeError):
            ExportTraceServiceRequest.FromString(raw)
    else:
        assert repair_protobuf(repaired, REQUEST) == repaired


def test_endless_nesting_is_refused() -> None:
    value = b""
    for _ in range(200):  # AnyValue.array_value.values: two messages a level
        value = _field(5, _field(1, value))
    span = _field(9, _field(2, value))
    with pytest.raises(DecodeError, match="deep"):
        repair_protobuf(_field(1, _field(2, _field(2, span))), REQUEST)


def _field(number: int, content: bytes) -> bytes:
    size, out = len(content), bytearray([number << 3 | 2])
    while size >= 0x80:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*out, size]) + content


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'"cut \\ud83d"', f"cut {REPLACEMENT}"),
        (b'"\\ude00 low"', f"{REPLACEMENT} low"),
        (b'"\\uD83D\\uDE00"', "\U0001f600"),
        (b'"\\\\ud83d"', "\\ud83d"),
        (b'"\xff"', REPLACEMENT),
    ],
)
def test_half_surrogates_and_bad_bytes_in_json_are_replaced(body: bytes, text: str) -> None:
    assert json.loads(repair_json(body)) == text
