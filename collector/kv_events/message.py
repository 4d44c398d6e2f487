"""One message of an event stream: its frames on the wire, and the events in it.

vLLM and SGLang send three frames: topic, sequence (8 bytes, big-endian) and msgpack `[ts, [event, …], rank]`. An event
is a map with `type` (vLLM), or an array that begins with its type (older vLLM, SGLang).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from store.errors import SourceError

SEQUENCE_BYTES = 8
END = (-1).to_bytes(SEQUENCE_BYTES, "big", signed=True)
"""Sequence that ends the answer to a replay."""
_LARGEST = 2**63 - 1
_YEAR_10000_S = 253_402_300_800
_FIELDS = {
    "BlockStored": (
        "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys",
        "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window",
    ),
    "BlockRemoved": ("block_hashes", "medium", "group_idx"),
    "AllBlocksCleared": (),
}  # fmt: skip
"""Fields by type, in the order of the array form; versions only ever added to the end."""

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of one message: topic (None where an old replay leaves it out), sequence, and the packed events."""

    topic: str | None
    sequence: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """What a payload holds. `events` are maps with `type`; None stands where one is of no form known here."""

    ts_s: float
    events: Sequence[Event | None]
    rank: int | None = None


def live_frames(parts: Sequence[bytes]) -> Frames:
    """Return the frames of a published message. Raises SourceError for what is none."""
    if len(parts) != 3:
        raise SourceError(f"a message of {len(parts)} frames", "three are expected: topic, sequence, events")
    return _frames(parts)


def replayed_frames(parts: Sequence[bytes]) -> Frames | None:
    """Return the frames of a message sent again; None for the mark that ends a replay.

    An empty frame comes first; older engines leave the topic out. Raises SourceError for what is none.
    """
    given = parts[1:] if parts and not parts[0] else parts
    if len(given) not in (2, 3):
        raise SourceError(f"a replayed message of {len(parts)} frames", "topic, sequence and events are expected")
    return None if given[-2] == END else _frames(given)


def _frames(parts: Sequence[bytes]) -> Frames:
    sequence, payload = parts[-2:]
    number = int.from_bytes(sequence, "big")
    if len(sequence) != SEQUENCE_BYTES or number > _LARGEST:
        raise SourceError(f"a sequence number of {len(sequence)} bytes", "8 bytes, big-endian, are expected")
    topic = parts[0].decode(errors="replace") if len(parts) > 2 else None
    return Frames(topic, number, payload)


def read_payload(payload: bytes) -> Message:
    """Unpack the events of a message. Raises SourceError where it is no `[ts, [event, …], …]`."""
    try:
        body = msgspec.msgpack.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise SourceError(f"a payload that is no msgpack: {error}", "is it a stream of KV events?") from error
    if not isinstance(body, list) or len(body) < 2 or not isinstance(body[1], list):
        raise SourceError("a payload that is no list of time and events", "is it a stream of KV events?")
    ts_s, events, *more = body
    if type(ts_s) not in (int, float) or not 0 <= ts_s < _YEAR_10000_S:  # NaN is neither
        raise SourceError(f"a payload whose time is {ts_s!r}", "seconds since 1970 are expected")
    rank = more[0] if more and type(more[0]) is int else None
    return Message(float(ts_s), [_event(event) for event in events], rank)


def _event(event: Any) -> Event | None:
    """Return an event as a map; None for what is no event."""
    if isinstance(event, dict):
        return event if isinstance(event.get("type"), str) and all(isinstance(name, str) for name in event) else None
    if not isinstance(event, list) or not event or not isinstance(event[0], str):
        return None
    kind, *values = event
    names = _FIELDS.get(kind, ())
    unnamed = [f"field_{number}" for number in range(len(names) + 1, len(values) + 1)]
    return {"type": kind, **dict(zip((*names, *unnamed), values, strict=False))}
