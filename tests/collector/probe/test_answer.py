"""What is read from the events of an answer, and how tokens are counted where events carry several."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.probe.answer import Answer
from collector.probe.faults import FaultError
from collector.probe.sse import EventReader
from collector.probe.tokens import Counted, count_tokens

DONE = b"[DONE]"


def event(text: str | None = None, usage: int | None = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if text is None else [{"delta": {"content": text}, "finish_reason": finish}]
    message: dict[str, Any] = {"choices": choices, **more}
    if usage is not None:
        message["usage"] = {"prompt_tokens": 5, "completion_tokens": usage}
    return msgspec.json.encode(message)


def counted(*events: bytes) -> Counted:
    answer = Answer()
    for number, one in enumerate(events):
        answer.take(one, number)
    return count_tokens(answer)


def test_events_that_state_counts_carry_the_increase() -> None:
    found = counted(event("", 0), event("a b", 2), event("c", 3), event("d e f", 6), event(None, 6), DONE)
    assert (found.tokens, found.basis, len(found.arrivals)) == ([2, 1, 3], "usage", 3)


def test_one_token_each_needs_no_list() -> None:
    assert counted(event("a", 1), event("b", 2)).tokens is None
    found = counted(event("a"), event("b"), event(None, 2), DONE)
    assert (found.tokens, found.basis) == (None, "one_each")


def test_a_token_without_text_counts_where_the_events_state_counts() -> None:
    found = counted(event("a", 1), event("", 2), event("b", 3))
    assert [arrival.at_ns for arrival in found.arrivals] == [0, 1, 2]


def test_the_end_token_is_the_event_that_ends() -> None:
    found = counted(event("a"), event("b"), event("", finish="stop"), event(None, 3))
    assert [arrival.at_ns for arrival in found.arrivals] == [0, 1, 2]
    assert found.basis == "one_each"


def test_a_total_is_shared_out_by_length_where_events_carry_several() -> None:
    found = counted(event("aaaa"), event("a" * 12), event("aaaa"), event(None, 8))
    assert (found.tokens, found.basis) == ([2, 4, 2], "by_text")


def test_thought_that_is_not_shown_is_no_token_of_an_event() -> None:
    usage = {"completion_tokens": 102, "completion_tokens_details": {"reasoning_tokens": 100}}
    last = msgspec.json.encode({"choices": [], "usage": usage})
    assert counted(event("a"), event("b"), last).basis == "one_each"


def test_without_any_count_one_each_is_assumed_and_said() -> None:
    assert counted(event("a"), event("b"), DONE).basis == "assumed"
    assert counted().basis == "assumed"


def test_a_count_at_the_end_only_is_no_count_of_that_event() -> None:
    found = counted(event("a"), event("b"), event("", usage=2, finish="stop"))
    assert (len(found.arrivals), found.basis) == (2, "one_each")


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(0, 400)
)  # fmt: skip
def test_shares_add_up_and_are_never_negative(lengths: list[int], total: int) -> None:
    found = counted(*(event("x" * length) for length in lengths), event(None, total))
    shares = found.tokens if found.tokens is not None else [1] * len(found.arrivals)
    assert sum(shares) == total
    assert min(shares) >= (1 if total >= len(lengths) else 0)


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"refusal": "no"},
        {"tool_calls": [{"function": {"name": "f", "arguments": None}}]},
    ],
)
def test_every_part_of_an_answer_is_an_arrival(delta: dict[str, Any]) -> None:
    answer = Answer()
    answer.take(msgspec.json.encode({"choices": [{"delta": delta}]}), 1)
    assert len(answer.arrivals) == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "BAD_ANSWER"),
        (b"<html>", "BAD_ANSWER"),
        (b"\xff", "BAD_ANSWER"),
        (b"[]", "BAD_ANSWER"),
        (b"{}", "BAD_ANSWER"),
        (b'{"error": {"code": 429, "message": "m"}}', "HTTP_429"),
        (b'{"error": {"code": "overloaded"}}', "ERROR_IN_ANSWER"),
        (b'{"error": "text"}', "ERROR_IN_ANSWER"),
    ],
)
def test_what_is_no_answer_is_a_fault(body: bytes, code: str) -> None:
    with pytest.raises(FaultError) as caught:
        Answer().take(body, 0)
    assert caught.value.fault.code == code


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "usage", "completion_tokens", "content", "tool_calls", "function", "id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_an_answer_or_a_fault(value: Any) -> None:
    try:
        Answer().take(msgspec.json.encode(value), 0)
    except FaultError as error:
        assert error.fault.code  # noqa: PT017 - both ways out are right


@given(
    st.lists(st.sampled_from([b"a", b"{}", b"two words", DONE]), max_size=6), st.lists(st.integers(0, 60)), st.data()
)
def test_events_are_the_same_wherever_the_body_is_cut(
    events: list[bytes], cuts: list[int], data: st.DataObject
) -> None:
    ending = data.draw(st.sampled_from([b"\n", b"\r\n"]))
    body = b": hello" + ending * 2
    for one in events:
        body += b"event: x" + ending + b"data: " + one + ending * 2
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    reader = EventReader()
    found = [got for start, end in pairwise(places) for got in reader.feed(body[start:end])]
    assert found + list(reader.finish()) == events


def test_an_event_in_two_lines_and_one_without_its_last_line_are_read() -> None:
    reader = EventReader()
    assert list(reader.feed(b"data: a\ndata:b\n\ndata: c")) == [b"a\nb"]
    assert list(reader.finish()) == [b"c"]
