"""Tests of events becoming rows."""

from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.kv_events.message import read_payload
from collector.kv_events.rows import UNKNOWN, UNREADABLE, Origin, Rows, fold
from store.tables import KV_EVENTS
from tests.collector.kv_events.engine import payload, removed, stored

ORIGIN = Origin("s", "chat", "127.0.0.1:8000")


def rows_of(*events: Any, ts_s: float = 1_700_000_000.25) -> Rows:
    rows = Rows()
    rows.add(ORIGIN, 5, read_payload(payload(ts_s, *events)))
    return rows


def test_each_event_is_a_row_at_the_time_of_its_message() -> None:
    frame = rows_of(stored(2**64 - 1, 7, tokens=8), removed(7), {"type": "AllBlocksCleared"}).frame()
    assert frame.schema == KV_EVENTS.schema()
    assert frame["kind"].to_list() == ["stored", "removed", "cleared"]
    assert frame["position"].to_list() == [0, 1, 2]
    assert frame["block_hashes"].to_list() == [[2**64 - 1, 7], [7], None]
    assert frame["tokens"].to_list() == [8, None, None]
    assert frame["ts"].unique().to_list() == [datetime(2023, 11, 14, 22, 13, 20, 250_000)]
    assert frame.row(0, named=True)["service"] == "chat"
    assert frame.row(0, named=True)["instance"] == "127.0.0.1:8000"


def test_no_rows_are_a_frame_too() -> None:
    assert Rows().frame().schema == KV_EVENTS.schema()


def test_no_token_id_and_no_salt_is_kept() -> None:
    event = stored(1, token_ids=[90001, 90002], extra_keys=[["secret-salt"], None], lora_name="poet", session_id="s1")
    text = rows_of(event).frame().write_json()
    assert "90001" not in text
    assert "secret" not in text
    attributes = orjson.loads(rows_of(event).frame()["attributes"][0])
    assert attributes["lora_name"] == "poet"
    assert attributes["session_id"] == "s1"
    assert attributes["extra_keys"][1] is None


def test_equal_keys_have_equal_hashes() -> None:
    first, second = (
        orjson.loads(rows_of(stored(1, extra_keys=[[key]])).frame()["attributes"][0])["extra_keys"] for key in "aa"
    )
    other = orjson.loads(rows_of(stored(1, extra_keys=[["b"]])).frame()["attributes"][0])["extra_keys"]
    assert first == second != other


def test_keys_that_are_all_missing_are_no_attribute() -> None:
    assert rows_of(stored(1, extra_keys=[None])).frame()["attributes"][0] is None


def test_what_cannot_be_read_is_counted_and_leaves_the_others() -> None:
    rows = rows_of(stored("no list"), {"type": "BlockMoved"}, stored(1.5), {"type": "BlockStored"}, 3, removed(1))
    rows_with_text = rows_of({"type": "BlockRemoved", "block_hashes": "text"}, stored(1, block_size=-1))
    assert rows.frame()["position"].to_list() == [0, 5]
    assert rows.drops == {UNKNOWN: 2, UNREADABLE: 2}
    assert rows_with_text.drops == {UNREADABLE: 2}


def test_hashes_become_64_bits() -> None:
    assert fold(-1) == 2**64 - 1
    assert fold(b"abc") == fold(b"abc") != fold(b"abd")
    for wrong in (None, True, 1.5, [1]):
        with pytest.raises(TypeError):
            fold(wrong)


@settings(deadline=None)
@given(st.one_of(st.integers(-(2**63), 2**64 - 1), st.binary(), st.text()))
def test_a_folded_hash_fits_its_column(value: int | bytes | str) -> None:
    assert 0 <= fold(value) < 2**64


Anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            Anything,
            st.dictionaries(st.sampled_from([*stored(1), "extra_keys", "x"]), Anything).map(
                lambda event: {**event, "type": "BlockStored"}
            ),
        ),
        max_size=5,
    )
)
def test_every_event_is_a_row_or_counted(events: list[Any]) -> None:
    rows = rows_of(*events)
    assert rows.frame().height + rows.drops.total() == len(events)
