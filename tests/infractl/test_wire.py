"""Batches on their way to a server come back equal, and anything else is refused in words."""

import msgspec
import polars as pl
import pytest

from infractl import wire
from store.batch import Batch
from store.errors import UsageError


def test_batches_come_back_equal():
    made = [Batch(f"s{n}", {"events": pl.DataFrame({"event_id": [f"e{n}", None]})}, {"no_time": n}) for n in range(3)]
    found = wire.unpack(wire.pack(made))
    assert [(b.batch_id, b.source, b.drops) for b in found] == [(b.batch_id, b.source, b.drops) for b in made]
    assert all(a.frames["events"].equals(b.frames["events"]) for a, b in zip(found, made, strict=True))
    assert wire.unpack(wire.pack([])) == []


def test_an_unknown_table_is_refused():
    with pytest.raises(UsageError, match="to a table 'nothing'"):
        wire.unpack(wire.pack([Batch("s", {"nothing": pl.DataFrame({"a": [1]})})]))


@pytest.mark.parametrize("frame", [b"", b"no stream", b"\xff\xff\xff\xff\xff\xff\xff\x7f" * 4])
def test_a_body_that_is_no_list_of_batches_is_refused(frame: bytes):
    item = {"batch_id": "b", "source": "s", "drops": {}, "frames": {"spans": frame}}
    for body in (b"", frame, msgspec.msgpack.encode({}), msgspec.msgpack.encode([item])):
        with pytest.raises(UsageError, match="no list of batches"):
            wire.unpack(body)
