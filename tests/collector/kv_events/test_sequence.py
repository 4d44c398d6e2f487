"""Tests of following sequence numbers."""

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.kv_events import sequence
from collector.kv_events.sequence import Cursor, Ranges, Seen


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 8))))
def test_ranges_are_the_set_of_what_was_added(parts: list[tuple[int, int]]) -> None:
    ranges, numbers = Ranges(), set[int]()
    for low, size in parts:
        ranges.add(low, low + size)
        numbers |= set(range(low, low + size))
    assert {n for n in range(-1, 80) if n in ranges} == numbers
    assert all(end < start for end, start in ranges.holes())
    held = sum(end - start for start, end in zip(ranges.starts, ranges.ends, strict=True))
    assert held == len(numbers)


@settings(deadline=None)
@given(st.sets(st.integers(0, 50), min_size=1), st.randoms())
def test_live_and_replayed_messages_in_any_mix_are_each_new_once(heard: set[int], random: object) -> None:
    cursor = Cursor()
    new = [n for n in sorted(heard) if cursor.take(n, float(n), live=True) is Seen.NEW]
    new += [n for n in range(51) if cursor.take(n, float(n), live=False) is Seen.NEW]
    assert sorted(new) == list(range(51))
    assert cursor.missing() == 0


def test_a_gap_is_missing_until_it_is_filled() -> None:
    cursor = Cursor()
    for number in (3, 4, 8):
        assert cursor.take(number, number, live=True) is Seen.NEW
    assert cursor.missing() == 3
    assert cursor.take(6, 6.0, live=False) is Seen.NEW
    assert cursor.seen.holes() == [(5, 6), (7, 8)]
    cursor.give_up(7)
    assert (cursor.missing(), cursor.lost) == (1, 1)


def test_what_came_before_the_first_message_heard_is_not_missing() -> None:
    cursor = Cursor()
    cursor.take(1000, 1.0, live=True)
    assert cursor.missing() == 0


def test_a_live_number_that_is_not_above_the_last_is_a_new_run() -> None:
    cursor = Cursor()
    for number in range(10):
        cursor.take(number, float(number), live=True)
    assert cursor.take(2, 20.0, live=True) is Seen.RESTARTED
    assert cursor.missing() == 2  # a run begins with 0
    assert cursor.top == 2
    assert cursor.lost == 0


def test_a_live_copy_of_a_replayed_message_is_no_new_run() -> None:
    cursor = Cursor()
    cursor.take(0, 0.0, live=True)
    for number in range(6):
        cursor.take(number, float(number), live=False)
    assert [cursor.take(n, float(n), live=True) for n in (1, 2)] == [Seen.COPY, Seen.COPY]
    assert cursor.take(3, 99.0, live=True) is Seen.RESTARTED


def test_a_replayed_number_at_another_time_is_a_new_run() -> None:
    cursor = Cursor()
    for number, ts_s in ((3, 3.0), (5, 5.0), (9, 50.0)):
        cursor.take(number, ts_s, live=True)
    assert cursor.take(5, 46.0, live=False) is Seen.RESTARTED
    assert cursor.lost == 1  # 4 of the run before; 6 to 8 were never sent by it


def test_a_message_without_a_readable_time_fills_its_place() -> None:
    cursor = Cursor()
    for number in range(3):
        cursor.take(number, None if number == 1 else float(number), live=True)
    assert cursor.missing() == 0


def test_only_so_many_times_are_remembered() -> None:
    cursor = Cursor()
    for number in range(sequence.REMEMBERED + 10):
        cursor.take(number, float(number), live=True)
    assert len(cursor.times) == sequence.REMEMBERED
