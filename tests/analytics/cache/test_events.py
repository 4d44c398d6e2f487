"""KV events: by hand, and a public trace replayed through a real socket."""

import gzip
import json
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics.cache.events import replay
from analytics.stats.stack_distance import pollution, stack
from collector.kv_events.message import read_payload
from collector.kv_events.rows import Origin, Rows
from collector.kv_events.settings import KvEvents
from store.database import Database
from store.query import RowQuery
from tests.analytics.cache.given import simulated
from tests.analytics.frames_of import window_of
from tests.collector.kv_events import test_subscriber
from tests.collector.kv_events.engine import Engine, payload, removed, stored
from tests.collector.kv_events.test_subscriber import addresses, following, only, until

COLUMNS = ("ts", "stream", "sequence", "position", "kind", "block_hashes", "parent_block_hash", "medium")
SIZE, FIRST_S = 10_000, 1_796_000_000.0


def rows(*messages: bytes) -> pl.DataFrame:
    taken = Rows()
    for number, body in enumerate(messages):
        taken.add(Origin("offline"), number, read_payload(body))
    return taken.frame().select(COLUMNS)


def pollution_of(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    made, _ = replay(frame, 10.0)
    return made.select("expired", "redundant", "pending").rows()


def test_a_block_stored_again_after_its_removal_is_expired_and_an_unused_one_redundant() -> None:
    made = pollution_of(rows(payload(1, stored(1)), payload(2, removed(1)), payload(3, stored(1))))
    assert made == [(False, True, False), (True, False, True)]


def test_a_block_that_a_second_request_continues_was_used_and_so_were_those_before_it() -> None:
    first = stored(1, 2, 3)
    second = stored(4, parent_block_hash=2)
    gone = removed(1, 2, 3, 4)
    made = pollution_of(rows(payload(1, first), payload(2, second), payload(3, gone)))
    assert [redundant for _, redundant, _ in made] == [False, False, True, True]


def test_a_block_that_is_there_already_is_redundant_and_a_cleared_cache_pollutes_nothing() -> None:
    assert [r for _, r, _ in pollution_of(rows(payload(1, stored(1)), payload(2, stored(1))))] == [False, True]
    cleared = pollution_of(rows(payload(1, stored(1)), payload(2, {"type": "AllBlocksCleared"}), payload(3, stored(1))))
    assert cleared == [(False, False, False), (False, False, True)]


def test_a_block_that_another_tier_has_already_was_moved_there_and_ages_run_per_tier() -> None:
    host: Any = {"medium": "CPU"}
    made, gone = replay(
        rows(
            payload(1, stored(1, 2)),
            payload(3, stored(1, **host)),
            payload(5, removed(1)),
            payload(9, {**removed(1), **host}),
        ),
        10.0,
    )
    assert made.select("medium", "moved", "present", "evicted", "age_s").rows() == [
        ("GPU", False, False, True, 4.0),
        ("GPU", False, True, False, 8.0),
        ("CPU", True, False, True, 6.0),
    ]
    assert gone == {"GPU": 1, "CPU": 1}


def messages(prompts: list[list[int]]) -> Iterator[bytes]:
    """What an engine with an LRU cache would publish, one message per request."""
    cache: OrderedDict[int, None] = OrderedDict()
    for number, prompt in enumerate(prompts):
        events: list[dict[str, Any]] = []
        for parent, block in zip([None, *prompt], prompt, strict=False):
            if block in cache:
                cache.move_to_end(block)
                continue
            events.append(stored(block, tokens=1, parent_block_hash=parent))
            cache[block] = None
            if len(cache) > SIZE:
                events.append(removed(cache.popitem(last=False)[0]))
        yield payload(FIRST_S + number, *events)


def test_the_whole_trace_replayed_through_a_socket_is_as_polluted_as_offline(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_subscriber, "WAIT_S", 120.0)
    with gzip.open(shared / "data/mooncake_trace/conversation_trace.jsonl.gz") as file:
        prompts = [json.loads(line)["hash_ids"] for line in file]
    bodies = list(messages(prompts))
    moments = [datetime.fromtimestamp(FIRST_S + number, UTC).replace(tzinfo=None) for number in range(len(prompts))]
    offline, _ = simulated(zip(moments, prompts, strict=True), [SIZE] * len(prompts), tokens=1)
    address, asked = addresses()
    with (
        Database(tmp_path) as database,
        Engine(address, asked, keep=len(bodies)) as engine,
        following(database, KvEvents(address, asked, topic="kv-events")) as subscriber,
    ):
        last = [engine.publish(body=body) for body in bodies][-1]
        until(lambda: bool(only(subscriber).streams) and only(subscriber).streams[0].sequence == last)
        until(lambda: only(subscriber).replay == "caught_up")
        subscriber.close()
        until(lambda: database.read(RowQuery("kv_events", ("ts",)), window_of(offline)).height == offline.height)
        heard = database.read(RowQuery("kv_events", COLUMNS), window_of(offline))
    through, removed = replay(heard, 10.0)
    direct, _ = replay(offline, 10.0)
    assert through.equals(direct)
    cpi = pl.col("expired") | pl.col("redundant")
    assert through.select(cpi.sum()).item() == direct.select(cpi.sum()).item()
    exact = pollution(stack(np.array([block for prompt in prompts for block in prompt])), SIZE)
    assert (through["expired"].sum(), through.height) == (exact.expired.sum(), (~exact.hit).sum())
    assert removed == {"GPU": through.height - SIZE}
    # redundant is an estimate: prompts that end with a cached block leave no event
    assert through["redundant"].sum() == pytest.approx(exact.redundant.sum(), rel=0.005)
