"""A lane runs one task at a time and never waits for one that hangs."""

from threading import Event

import pytest

from collector.gpu.lane import Lane


def test_a_task_returns_its_value_or_raises_its_error() -> None:
    lane: Lane[int] = Lane("test")
    assert lane.start(lambda: 7)
    assert lane.result(5) == 7
    assert lane.start(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        lane.result(5)
    assert lane.stuck_s == 0


def test_while_a_task_hangs_no_other_starts() -> None:
    release = Event()
    lane: Lane[bool] = Lane("test")
    assert lane.start(lambda: release.wait(30))
    with pytest.raises(TimeoutError):
        lane.result(0.05)
    assert not lane.start(lambda: True)
    assert lane.stuck_s > 0.05
    release.set()
    assert lane.result(5)
    assert lane.start(lambda: False)


def test_a_lane_without_a_task_has_no_result() -> None:
    with pytest.raises(RuntimeError, match="nothing started"):
        Lane[int]("test").result(1)
