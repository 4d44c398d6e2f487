"""Tests of what an endpoint's messages lead to: rows, requests for replay, counts."""

import pytest

from collector.kv_events import feed as module
from collector.kv_events.feed import GAP, MALFORMED, Feed
from collector.kv_events.message import END
from collector.kv_events.settings import Endpoint
from tests.collector.kv_events.engine import payload, stored

ADDRESS, REPLAY = "tcp://127.0.0.1:5557", "tcp://127.0.0.1:5558"
LATER = 100.0


def live(number: int, ts_s: float | None = None, *, topic: bytes = b"kv", rank: int = 0) -> list[bytes]:
    body = payload(number if ts_s is None else ts_s, stored(number), rank=rank)
    return [topic, number.to_bytes(8, "big"), body]


def again(number: int, ts_s: float | None = None) -> list[bytes]:
    return [b"", *live(number, ts_s)]


def caught_up(*numbers: int) -> Feed:
    """Return a feed that has heard the numbers live, and the answer to its first question."""
    feed = Feed(Endpoint(ADDRESS, REPLAY))
    feed.connected()
    for number in numbers:
        feed.live(live(number))
    assert feed.ask(0.0) == 0
    for number in numbers:
        feed.replayed(again(number), 0.0)
    feed.replayed([b"", b"", END, b""], 0.0)
    assert feed.replay == "caught_up"
    return feed


def test_the_first_question_is_for_all_that_is_kept() -> None:
    feed = Feed(Endpoint(ADDRESS, REPLAY))
    feed.connected()
    assert feed.replay == "waiting"
    assert feed.ask(0.0) == 0
    assert feed.ask(1.0) is None  # one question at a time
    for number in (4, 5):
        feed.replayed(again(number), 1.0)
    feed.replayed([b"", b"", END, b""], 1.0)
    (stream,) = feed.health()
    assert (stream.sequence, stream.messages, stream.replayed, stream.missing, stream.lost) == (5, 2, 2, 0, 0)
    assert feed.ask(2.0) is None


def test_a_stream_first_heard_after_the_answer_is_asked_for_again() -> None:
    feed = Feed(Endpoint(ADDRESS, REPLAY))
    feed.connected()
    feed.ask(0.0)
    feed.replayed([b"", b"", END, b""], 0.0)
    assert feed.ask(1.0) is None
    feed.live(live(3))
    assert feed.ask(LATER + 1) == 0


def test_a_gap_is_asked_for_from_the_last_message_before_it() -> None:
    feed = caught_up(0, 1)
    feed.live(live(4))
    assert feed.ask(LATER) == 1
    for number in (1, 2, 3, 4):
        feed.replayed(again(number), LATER)
    feed.live(live(5))
    feed.replayed([b"", b"", END, b""], LATER)
    (stream,) = feed.health()
    assert (stream.messages, stream.replayed, stream.missing, stream.lost) == (6, 2, 0, 0)
    assert feed.rows.drops == {}
    assert sorted(row[1] for row in feed.rows.rows) == [0, 1, 2, 3, 4, 5]


def test_what_the_engine_no_longer_keeps_is_lost_and_counted() -> None:
    feed = caught_up(0, 1)
    feed.live(live(9))
    feed.ask(LATER)
    for number in (6, 7, 8, 9):
        feed.replayed(again(number), LATER)
    feed.replayed([b"", b"", END, b""], LATER)
    assert feed.health()[0].lost == 4
    assert feed.rows.drops == {GAP: 4}
    assert feed.ask(LATER + 1) is None


def test_a_hole_within_an_answer_is_asked_for_once_more() -> None:
    feed = caught_up(0)
    feed.live(live(6))
    feed.ask(LATER)
    for number in (0, 1, 2, 5, 6):
        feed.replayed(again(number), LATER)
    feed.replayed([b"", b"", END, b""], LATER)
    assert feed.health()[0].missing == 2
    assert feed.ask(LATER + 1) == 2
    for number in (2, 5, 6):
        feed.replayed(again(number), LATER)
    feed.replayed([b"", b"", END, b""], LATER)
    assert (feed.health()[0].missing, feed.health()[0].lost) == (0, 2)


def test_without_replay_a_gap_is_lost_at_once() -> None:
    feed = Feed(Endpoint(ADDRESS))
    for number in (0, 5):
        feed.live(live(number))
    assert feed.ask(LATER) is None
    assert feed.replay == "none"
    assert feed.rows.drops == {GAP: 4}


def test_an_engine_that_does_not_answer_is_asked_again_and_the_gap_lost_in_the_end() -> None:
    feed = caught_up(0)
    feed.live(live(3))
    now_s = LATER
    for _ in range(module.PATIENCE):
        assert feed.ask(now_s) == 0
        now_s += module.ANSWER_S
        assert feed.ask(now_s) is None
        assert feed.replay == "unanswered"
        now_s += module.UNANSWERED_S
    assert feed.rows.drops == {GAP: 2}


def test_an_answer_that_ends_without_its_mark_counts_as_answer() -> None:
    feed = caught_up(0)
    feed.live(live(3))
    feed.ask(LATER)
    feed.replayed(again(1), LATER)
    assert feed.ask(LATER + module.ANSWER_S - 1) is None
    assert feed.ask(LATER + module.ANSWER_S) == 1  # 2 is still missing
    assert feed.health()[0].lost == 0


def test_a_restart_is_no_gap_and_what_was_sent_before_it_was_heard_is_asked_for() -> None:
    feed = caught_up(0, 1, 2)
    feed.live(live(1, 50.0))
    assert feed.ask(LATER) == 0
    for number, ts_s in ((0, 49.0), (1, 50.0)):
        feed.replayed(again(number, ts_s), LATER)
    feed.replayed([b"", b"", END, b""], LATER)
    (stream,) = feed.health()
    assert (stream.restarts, stream.missing, stream.lost, stream.messages) == (1, 0, 0, 5)
    assert feed.rows.drops == {}


def test_a_restart_that_looks_like_a_gap_shows_in_the_answer() -> None:
    feed = caught_up(0, 1, 2)
    feed.live(live(7, 57.0))
    assert feed.ask(LATER) == 2
    feed.replayed(again(2, 52.0), LATER)
    feed.replayed([b"", b"", END, b""], LATER)  # belongs to a question that no longer counts
    assert feed.health()[0].restarts == 1
    assert feed.ask(LATER + 1) == 0
    for number in range(8):
        feed.replayed(again(number, 50.0 + number), LATER)
    feed.replayed([b"", b"", END, b""], LATER)
    assert (feed.health()[0].missing, feed.health()[0].lost) == (0, 0)
    times = {(row[1], row[3]) for row in feed.rows.rows}
    assert times == {(n, n * 1_000_000) for n in range(3)} | {(n, (50 + n) * 1_000_000) for n in range(8)}


def test_messages_that_cannot_be_read_are_counted_and_no_gap() -> None:
    feed = caught_up(0)
    feed.live([b"kv"])
    feed.live([b"kv", (1).to_bytes(8, "big"), b"\xc1"])
    feed.live(live(2))
    assert feed.malformed == 2
    assert feed.rows.drops == {MALFORMED: 2}
    assert feed.health()[0].missing == 0


def test_topics_and_ranks_are_streams_of_their_own() -> None:
    feed = Feed(Endpoint(ADDRESS))
    feed.live(live(0))
    feed.live(live(0, topic=b"kv2"))
    feed.live(live(5, rank=1))
    assert [stream.stream for stream in feed.health()] == [
        f"{ADDRESS}/kv", f"{ADDRESS}/kv2", f"{ADDRESS}/kv/rank1",
    ]  # fmt: skip
    assert sum(stream.restarts + stream.lost for stream in feed.health()) == 0


def test_an_old_replay_without_topic_belongs_to_the_one_stream() -> None:
    feed = caught_up(0)
    feed.live(live(2))
    feed.ask(LATER)
    feed.replayed([b"", (1).to_bytes(8, "big"), payload(1.0, stored(1))], LATER)
    feed.replayed([b"", END, b""], LATER)
    (stream,) = feed.health()
    assert (stream.messages, stream.replayed) == (3, 1)


def test_questions_keep_their_distance() -> None:
    feed = caught_up(0)
    feed.live(live(2))
    assert feed.ask(0.1) is None
    assert feed.ask(module.ASK_EVERY_S) == 0


def test_an_engine_that_comes_back_is_asked_whether_it_is_a_new_run() -> None:
    feed = caught_up(0, 1)
    feed.disconnected()
    feed.connected()
    feed.live(live(2, 52.0))  # the first number that is heard of the new run follows the last of the old one
    assert feed.ask(1.0) == 0
    feed.replayed(again(0, 50.0), 1.0)
    assert feed.health()[0].restarts == 1
    assert feed.peers == 1


def test_an_engine_that_is_silent_is_asked_whether_it_sent_more() -> None:
    feed = caught_up(0, 1)
    assert feed.ask(module.IDLE_S - 0.1) is None
    assert feed.ask(module.IDLE_S) == 1
    for number in (1, 2):
        feed.replayed(again(number), LATER)
    feed.replayed([b"", b"", END, b""], LATER)
    assert feed.health()[0].sequence == 2
    assert feed.ask(LATER) is None


def test_an_answer_to_no_question_is_ignored() -> None:
    feed = caught_up(0)
    feed.replayed(again(1), LATER)
    assert feed.health()[0].messages == 1


@pytest.mark.parametrize("rank", [0, None])
def test_the_first_rank_has_the_plain_name(rank: int | None) -> None:
    feed = Feed(Endpoint(ADDRESS))
    feed.live([b"", (0).to_bytes(8, "big"), payload(1.0, stored(1), rank=rank)])
    assert feed.health()[0].stream == ADDRESS
