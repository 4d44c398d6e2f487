"""When a target is scraped next."""

from hypothesis import given
from hypothesis import strategies as st

from collector.prometheus.schedule import LONGEST_S, MOST_INTERVALS, intervals, next_due_s


def test_a_target_that_keeps_failing_is_tried_less_often_and_one_that_works_at_every_turn() -> None:
    assert [intervals(15, failing) for failing in range(9)] == [1, 1, 1, 2, 4, 8, 8, 8, 8]
    assert [intervals(60, failing) for failing in (0, 2, 3, 4, 5, 99)] == [1, 1, 2, 4, 4, 4]
    assert intervals(600, 99) == 1


@given(st.floats(0.1, 3600), st.integers(0, 10**6))
def test_the_wait_is_bounded(interval_s: float, failing: int) -> None:
    count = intervals(interval_s, failing)
    assert 1 <= count <= MOST_INTERVALS
    assert count == 1 or count * interval_s <= LONGEST_S


@given(st.floats(0, 1e6), st.floats(0, 1e4), st.sampled_from([0.5, 5.0, 15.0, 60.0]), st.integers(0, 20))
def test_the_next_turn_is_ahead_and_on_the_targets_own_grid(
    due_s: float, late_s: float, interval_s: float, failing: int
) -> None:
    found = next_due_s(due_s, due_s + late_s, interval_s, failing)
    turns = (found - due_s) / interval_s
    assert abs(turns - round(turns)) < 1e-6
    assert found >= due_s + late_s - 1e-6
    assert found - due_s >= interval_s * intervals(interval_s, failing) - 1e-6
    assert found - (due_s + late_s) <= interval_s * max(1, intervals(interval_s, failing)) + 1e-6
