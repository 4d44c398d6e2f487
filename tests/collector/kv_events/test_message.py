"""Tests of reading one message of an event stream."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.kv_events.message import END, live_frames, read_payload, replayed_frames
from store.errors import SourceError
from tests.collector.kv_events.engine import payload, removed, stored

SEVEN = (7).to_bytes(8, "big")


def test_a_live_message_has_topic_sequence_and_payload() -> None:
    frames = live_frames([b"kv-events", SEVEN, b"body"])
    assert (frames.topic, frames.sequence, frames.payload) == ("kv-events", 7, b"body")
    assert live_frames([b"", SEVEN, b"body"]).topic == ""


@pytest.mark.parametrize(
    "parts", [[], [b""], [b"kv", SEVEN], [b"kv", SEVEN, b"", b""], [b"kv", b"7", b""], [b"kv", END, b""]]
)
def test_other_frames_are_refused(parts: list[bytes]) -> None:
    with pytest.raises(SourceError):
        live_frames(parts)


def test_a_replayed_message_may_lack_its_topic() -> None:
    new = replayed_frames([b"", b"kv", SEVEN, b"body"])
    old = replayed_frames([b"", SEVEN, b"body"])
    assert new is not None
    assert old is not None
    assert (new.topic, new.sequence) == ("kv", 7)
    assert (old.topic, old.sequence) == (None, 7)


def test_the_mark_that_ends_a_replay_is_none() -> None:
    assert replayed_frames([b"", b"", END, b""]) is None
    assert replayed_frames([b"", END, b""]) is None


def test_events_are_maps_or_arrays_that_begin_with_their_type() -> None:
    array = ["BlockStored", [1, 2], 9, [5, 6, 7, 8], 2, None, "GPU"]
    message = read_payload(payload(1.5, stored(1, 2), array, ["AllBlocksCleared"], rank=3))
    assert message.ts_s == 1.5
    assert message.rank == 3
    assert message.events[1] == {
        "type": "BlockStored", "block_hashes": [1, 2], "parent_block_hash": 9, "token_ids": [5, 6, 7, 8],
        "block_size": 2, "lora_id": None, "medium": "GPU",
    }  # fmt: skip
    assert message.events[2] == {"type": "AllBlocksCleared"}


def test_what_is_no_event_leaves_the_others() -> None:
    events = read_payload(payload(1.0, 3, [], {"no": "type"}, [1], removed(1))).events
    assert [event is None for event in events] == [True, True, True, True, False]


@pytest.mark.parametrize(
    "body", [3, [], [1.0], [1.0, {}], ["now", []], [float("nan"), []], [True, []], [-1.0, []], [1e15, []]]
)
def test_another_payload_is_refused(body: Any) -> None:
    with pytest.raises(SourceError):
        read_payload(msgspec.msgpack.encode(body))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(body: bytes) -> None:
    try:
        message = read_payload(body)
    except SourceError:
        return
    assert message.ts_s >= 0


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=5), st.floats(0, 4e9), st.integers(0, 7))
def test_what_was_packed_is_read(hashes: list[int], ts_s: float, rank: int) -> None:
    message = read_payload(payload(ts_s, stored(*hashes), rank=rank))
    assert (message.ts_s, message.rank, message.events) == (ts_s, rank, [stored(*hashes)])
