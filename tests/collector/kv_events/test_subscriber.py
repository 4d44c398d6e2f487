"""Tests of the subscriber against an engine that speaks ZMQ."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from collector.kv_events import feed as feed_module
from collector.kv_events import link, outbox
from collector.kv_events.health import FeedHealth
from collector.kv_events.settings import KvEvents
from collector.kv_events.subscriber import KvEventSubscriber
from store.batch import Batch, Receipt
from store.database import Database
from store.errors import BusyError
from store.writer import Writer
from tests.collector.kv_events.engine import HOST, Engine, free_port, removed, stored

WAIT_S = 15.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path) as opened:
        yield opened


@contextmanager
def following(database: Database, *entries: KvEvents) -> Iterator[KvEventSubscriber]:
    """Follow the entries; at the end everything is stored."""
    writer = Writer(database)
    subscriber = KvEventSubscriber(entries, writer.submit)
    subscriber.start()
    try:
        yield subscriber
    finally:
        subscriber.close()
        writer.close()


def until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.01)


def addresses() -> tuple[str, str]:
    return f"{HOST}:{free_port()}", f"{HOST}:{free_port()}"


def messages(subscriber: KvEventSubscriber) -> int:
    return sum(stream.messages for feed in subscriber.health() for stream in feed.streams)


def heard(subscriber: KvEventSubscriber, engine: Engine) -> None:
    """Wait until the subscription has reached the engine: a message came that was not replayed."""

    def once() -> bool:
        engine.publish(stored(1))
        time.sleep(0.02)
        return any(stream.messages > stream.replayed for feed in subscriber.health() for stream in feed.streams)

    until(once)


def sequences(database: Database) -> list[int]:
    rows = database.sql("SELECT DISTINCT ts, sequence FROM kv_events ORDER BY ts").to_pylist()
    return [row["sequence"] for row in rows]


def drops(database: Database) -> dict[str, int]:
    rows = database.sql("SELECT reason, sum(rows)::INT AS n FROM ingest_drops GROUP BY reason").to_pylist()
    return {row["reason"]: row["n"] for row in rows}


def only(subscriber: KvEventSubscriber) -> FeedHealth:
    (feed,) = subscriber.health()
    return feed


@pytest.mark.parametrize("binds", [False, True])
def test_events_of_an_engine_that_binds_or_connects_are_stored(database: Database, binds: bool) -> None:
    address, replay = addresses()
    entry = KvEvents(address, replay, bind=binds, topic="kv-events", service="chat", instance="gpu1:8000")
    with Engine(address, replay, bind=not binds) as engine, following(database, entry) as subscriber:
        heard(subscriber, engine)
        last = engine.publish(stored(2**64 - 1, b"\x01" * 32, tokens=32), removed(1), {"type": "AllBlocksCleared"})
        until(lambda: only(subscriber).streams[0].sequence == last)
        until(lambda: only(subscriber).replay == "caught_up")
    assert sequences(database) == list(range(last + 1))
    rows = database.sql(f"SELECT * FROM kv_events WHERE sequence = {last} ORDER BY position").to_pylist()
    assert [row["kind"] for row in rows] == ["stored", "removed", "cleared"]
    assert {(row["service"], row["instance"], row["stream"]) for row in rows} == {
        ("chat", "gpu1:8000", f"{address}/kv-events")
    }
    assert drops(database) == {}


def test_what_was_sent_before_the_subscriber_came_is_replayed(database: Database) -> None:
    address, replay = addresses()
    with Engine(address, replay) as engine:
        for number in range(2_000):
            engine.publish(stored(number))
        until(engine.sent)
        with following(database, KvEvents(address, replay)) as subscriber:
            until(lambda: messages(subscriber) == 2_000)
            assert only(subscriber).streams[0].replayed == 2_000
    assert sequences(database) == list(range(2_000))


def test_a_gap_at_the_end_is_found_when_the_engine_is_silent(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "IDLE_S", 0.2)
    address, replay = addresses()
    with Engine(address, replay) as engine, following(database, KvEvents(address, replay)) as subscriber:
        heard(subscriber, engine)
        last = engine.publish(stored(1), heard=False)
        until(lambda: only(subscriber).streams[0].sequence == last)
    assert sequences(database) == list(range(last + 1))


@pytest.mark.parametrize("old", [False, True])
def test_a_gap_is_replayed(database: Database, old: bool) -> None:
    address, replay = addresses()
    with (
        Engine(address, replay, old=old) as engine,
        following(database, KvEvents(address, replay, topic="kv-events")) as subscriber,
    ):
        heard(subscriber, engine)
        for number in range(300):
            engine.publish(stored(number), heard=number % 100 < 90)
        last = engine.publish(stored(0))
        until(lambda: only(subscriber).streams[0].sequence == last and messages(subscriber) == last + 1)
        (stream,) = only(subscriber).streams
        assert (stream.missing, stream.lost, stream.restarts) == (0, 0, 0)
        assert stream.replayed >= 30
    assert sequences(database) == list(range(last + 1))
    assert drops(database) == {}


def test_a_gap_that_cannot_be_replayed_is_counted(database: Database) -> None:
    address, replay = addresses()
    with (
        Engine(address, replay, keep=5) as engine,
        following(database, KvEvents(address, replay)) as subscriber,
    ):
        heard(subscriber, engine)
        until(lambda: only(subscriber).replay == "caught_up" and only(subscriber).streams[0].missing == 0)
        known = only(subscriber).streams[0].lost
        for _ in range(24):
            engine.publish(stored(1), heard=False)
        engine.publish(stored(1))
        until(lambda: only(subscriber).streams[0].lost == known + 20)
        until(lambda: only(subscriber).streams[0].missing == 0)
    assert drops(database) == {"gap": known + 20}


def test_an_engine_that_starts_again_collides_with_nothing(database: Database) -> None:
    address, replay = addresses()
    with following(database, KvEvents(address, replay)) as subscriber:
        for run in range(3):
            with Engine(address, replay) as engine:
                for number in range(40):
                    engine.publish(stored(number, run))

                def arrived(run: int = run, engine: Engine = engine) -> bool:
                    """Keep sending until the new run is told from the old one and complete."""
                    last = engine.publish(stored(run))
                    time.sleep(0.05)
                    streams = only(subscriber).streams
                    return bool(streams) and streams[0].restarts == run and streams[0].sequence == last

                until(arrived)
                until(lambda: only(subscriber).replay == "caught_up" and only(subscriber).streams[0].missing == 0)
        (stream,) = only(subscriber).streams
        assert (stream.restarts, stream.lost) == (2, 0)
    counts = database.sql("SELECT count(*) AS n FROM kv_events WHERE sequence < 40").to_pylist()[0]["n"]
    assert counts == 120
    assert drops(database) == {}


def test_messages_that_cannot_be_read_are_counted_and_nothing_ends(database: Database) -> None:
    address, replay = addresses()
    with Engine(address, replay) as engine, following(database, KvEvents(address, replay)) as subscriber:
        heard(subscriber, engine)
        engine.send_raw(b"kv-events")
        engine.send_raw(b"kv-events", b"short", b"")
        engine.publish(body=b"\xc1\xc1")
        engine.publish({"type": "BlockMoved"}, ["BlockStored"], 7)
        last = engine.publish(stored(9))
        until(lambda: only(subscriber).streams[0].sequence == last)
        until(lambda: only(subscriber).replay == "caught_up")
        assert only(subscriber).malformed >= 3
        assert only(subscriber).connected == 1
        assert only(subscriber).streams[0].lost == 0
    found = drops(database)
    assert found["unreadable_event"] == 1
    assert found["unknown_event"] == 2


def test_ten_thousand_events_are_complete(database: Database) -> None:
    address, replay = addresses()
    with Engine(address, replay) as engine, following(database, KvEvents(address, replay)) as subscriber:
        heard(subscriber, engine)
        for number in range(2_500):
            engine.publish(*[stored(number * 4 + i, tokens=32) for i in range(4)])
        last = engine.publish(stored(0))
        until(lambda: messages(subscriber) == last + 1)
    assert sequences(database) == list(range(last + 1))
    assert database.sql("SELECT count(*) AS n FROM kv_events").to_pylist()[0]["n"] == last + 1 + 2_500 * 3


def test_a_subscriber_that_starts_again_stores_nothing_twice(database: Database) -> None:
    address, replay = addresses()
    entry = KvEvents(address, replay)
    with Engine(address, replay) as engine:
        for number in range(50):
            engine.publish(stored(number))
        for _ in range(2):
            with following(database, entry) as subscriber:
                until(lambda: messages(subscriber) == 50)
    assert database.sql("SELECT count(*) AS n FROM kv_events").to_pylist()[0]["n"] == 50


def test_a_store_that_is_busy_for_a_while_gets_everything(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "BATCH_ROWS", 200)
    monkeypatch.setattr(outbox, "FLUSH_S", 0.05)
    monkeypatch.setattr(link, "MOST_AT_ONCE", 50)
    monkeypatch.setattr(link, "_QUEUE_MESSAGES", 100)
    address, replay = addresses()
    writer = Writer(database)
    busy = threading.Event()

    def submit(batch: Batch) -> "Future[Receipt]":
        if busy.is_set():
            raise BusyError("full")
        return writer.submit(batch)

    subscriber = KvEventSubscriber([KvEvents(address, replay)], submit)
    subscriber.start()
    with Engine(address, replay) as engine:
        heard(subscriber, engine)
        until(lambda: only(subscriber).replay == "caught_up")
        busy.set()
        for number in range(3_000):
            engine.publish(stored(number))
        until(engine.sent)
        time.sleep(0.3)
        assert only(subscriber).waiting < 600  # a batch held, another one collected, and what one turn adds
        busy.clear()
        last = engine.publish(stored(0))
        until(lambda: messages(subscriber) == last + 1)
        subscriber.close()
    writer.close()
    assert sequences(database) == list(range(last + 1))
    assert drops(database) == {}


def test_ranks_are_followed_each_at_its_port(database: Database) -> None:
    port = next(p for p in iter(free_port, 0) if p < 65_000)
    with (
        Engine(f"{HOST}:{port}") as first,
        Engine(f"{HOST}:{port + 1}") as second,
        following(database, KvEvents(f"{HOST}:{port}", data_parallel_ranks=2)) as subscriber,
    ):

        def both() -> bool:
            first.publish(stored(1))
            second.publish(stored(1), rank=1)
            time.sleep(0.02)
            return all(feed.streams for feed in subscriber.health())

        until(both)
        assert [feed.streams[0].rank for feed in subscriber.health()] == [0, 1]


def test_an_address_that_is_taken_is_told_and_the_others_go_on(database: Database) -> None:
    taken, address = addresses()
    with (
        Engine(taken),
        Engine(address) as engine,
        following(database, KvEvents(taken, bind=True), KvEvents(address)) as subscriber,
    ):

        def second_heard() -> bool:
            engine.publish(stored(1))
            time.sleep(0.02)
            return bool(subscriber.health()[1].streams)

        until(second_heard)
        assert "cannot bind" in subscriber.health()[0].error
        assert subscriber.health()[1].error == ""


def test_run_follows_until_cancelled_and_stores_what_waits(database: Database) -> None:
    address, replay = addresses()
    writer = Writer(database)
    subscriber = KvEventSubscriber([KvEvents(address, replay)], writer.submit)

    async def follow() -> None:
        task = asyncio.create_task(subscriber.run())
        await asyncio.to_thread(until, lambda: messages(subscriber) == 3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with Engine(address, replay) as engine:
        for number in range(3):
            engine.publish(stored(number))
        asyncio.run(follow())
    writer.close()
    assert sequences(database) == [0, 1, 2]


def test_without_entries_nothing_runs() -> None:
    def refuse(batch: Any) -> Any:
        raise AssertionError(batch)

    subscriber = KvEventSubscriber([], refuse)
    subscriber.start()
    assert subscriber.health() == []
    subscriber.close()
