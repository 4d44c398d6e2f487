"""Stretches of time are merged, cut and subtracted without losing or repeating a moment."""

import itertools
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from store.rollups.stretches import COARSE, FINE, ceil, clipped, floor, merged, without

START = datetime(2026, 11, 30)
SOME = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(
        lambda pair: (START + min(pair) * FINE, START + max(pair) * FINE)
    ),
    max_size=6,
)


def buckets(stretches: list[tuple[datetime, datetime]]) -> set[int]:
    return {i for low, high in stretches for i in range((low - START) // FINE, (high - START) // FINE)}


@given(SOME)
def test_merged_stretches_cover_the_same_time_and_never_touch(stretches):
    made = merged(stretches)
    assert buckets(made) == buckets(stretches)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(made))


@given(SOME, SOME)
def test_without_is_the_difference(stretches, taken):
    assert buckets(without(stretches, taken)) == buckets(stretches) - buckets(taken)


@given(SOME, st.integers(0, 30), st.integers(0, 30))
def test_clipped_is_the_overlap(stretches, low, high):
    assert buckets(clipped(stretches, START + low * FINE, START + high * FINE)) == {
        i for i in buckets(stretches) if low <= i < high
    }


def test_a_time_on_the_border_begins_its_bucket():
    border = datetime(2026, 11, 30, 12, 5)
    assert floor(border) == ceil(border) == border
    assert floor(border - timedelta(microseconds=1)) == border - FINE
    assert ceil(border + timedelta(microseconds=1), COARSE) == datetime(2026, 11, 30, 13)
