"""Latencies derived from what a span states."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.arrivals import CHUNK_EVENTS, FIRST_EVENTS
from tests.collector.otlp.builders import START_NS, make_event, row_of

CHAT = {"gen_ai.operation.name": "chat"}


@pytest.mark.parametrize("name", sorted(CHUNK_EVENTS | FIRST_EVENTS))
def test_ttft_is_the_earliest_first_token_event_where_no_attribute_says_it(name: str) -> None:
    events = [make_event(name, 300_000_000), make_event(name, 200_000_000), make_event("other", 1)]
    row = row_of(CHAT | {"gen_ai.usage.output_tokens": 5}, events=events, kind=Span.SPAN_KIND_CLIENT)
    assert (row["ttft_s"], row["ttft_source"]) == (pytest.approx(0.2), "client")
    assert row["tpot_s"] == pytest.approx(0.8 / 4)


def test_an_attribute_beats_the_events() -> None:
    row = row_of(CHAT | {"gen_ai.latency.time_to_first_token": 0.1}, events=[make_event("first_token", 5)])
    assert (row["ttft_s"], row["ttft_source"]) == (0.1, "server")


def test_an_event_before_the_start_of_the_span_is_no_ttft() -> None:
    assert row_of(CHAT, events=[make_event("first_token", -5)])["ttft_s"] is None


def test_a_span_that_is_no_request_gets_no_latency() -> None:
    row = row_of(
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.output_tokens": 9},
        events=[make_event("first_token", 5)],
    )
    assert (row["ttft_s"], row["e2e_s"], row["tpot_s"], row["output_tokens"]) == (None, None, None, 9)


def test_a_stated_tpot_is_kept() -> None:
    stated = {"gen_ai.server.time_per_output_token": 0.5, "gen_ai.server.time_to_first_token": 0.1}
    assert row_of(CHAT | stated | {"gen_ai.usage.output_tokens": 9})["tpot_s"] == 0.5


def test_e2e_is_unknown_where_the_end_is() -> None:
    row = row_of(CHAT | {"gen_ai.usage.output_tokens": 9}, end_time_unix_nano=0)
    assert (row["duration_s"], row["e2e_s"], row["quality"]) == (None, None, "open_end")


@given(
    ttft_s=st.floats(0, 10), output_tokens=st.integers(0, 10_000), duration_ns=st.integers(-(10**9), 20 * 10**9)
)  # fmt: skip
def test_ttft_and_tpot_add_up_to_e2e_or_tpot_is_null(ttft_s: float, output_tokens: int, duration_ns: int) -> None:
    attributes = {"gen_ai.response.time_to_first_chunk": ttft_s, "gen_ai.usage.output_tokens": output_tokens}
    row = row_of(attributes, end_time_unix_nano=START_NS + duration_ns)
    if row["tpot_s"] is None:
        assert output_tokens < 2 or row["e2e_s"] is None or row["e2e_s"] < ttft_s
    else:
        assert row["tpot_s"] >= 0
        assert ttft_s + row["tpot_s"] * (output_tokens - 1) == pytest.approx(row["e2e_s"])
