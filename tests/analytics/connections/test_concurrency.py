"""Requests in progress against a count by plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.connections.concurrency import in_progress

EDGES = np.array([0.0, 4.0, 8.0, 12.0])
REQUESTS = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 9)), min_size=1, max_size=30)


@settings(max_examples=40, deadline=None)
@given(REQUESTS)
def test_mean_and_peak_are_those_of_counting_every_moment(requests: list[tuple[int, int]]) -> None:
    requests = sorted(requests)
    start, seconds = (np.array(part, dtype=float) for part in zip(*requests, strict=True))
    mean, peak = in_progress(start, seconds, EDGES)
    moments = np.arange(0, 12, 0.5)  # whole seconds begin and end requests, so halves see every count
    at_once = np.array([sum(a <= t < a + d for a, d in requests) for t in moments])
    for i in range(3):
        inside = (moments >= EDGES[i]) & (moments < EDGES[i + 1])
        assert mean[i] == pytest.approx(at_once[inside].mean())
        assert peak[i] == at_once[inside].max()


@settings(max_examples=40, deadline=None)
@given(REQUESTS)
def test_a_window_that_holds_all_gives_littles_law(requests: list[tuple[int, int]]) -> None:
    requests = sorted(requests)
    start, seconds = (np.array(part, dtype=float) for part in zip(*requests, strict=True))
    (mean,), _ = in_progress(start, seconds, np.array([0.0, 100.0]))
    assert mean == pytest.approx(len(requests) / 100.0 * seconds.mean())
