"""Limits of a group's jitter and gaps: they hold the truth as often as they say, and are null where little is known."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics.stats.order_statistics import quantile_limits
from analytics.stream import intervals
from analytics.stream.gaps import events, streams
from benchmarks.accuracy.stream import covered
from tests.analytics.stream.simulated import hour
from tests.analytics.stream.test_stream import after, arrivals, run


def group(seed: int, n: int) -> dict[str, Any]:
    return run(hour(seed, n=n)).frames["groups"].row(0, named=True)


def test_limits_enclose_what_they_are_of_and_narrow_with_streams() -> None:
    few, many = group(1, 200), group(1, 2000)
    for name, unit in (("ji_p50", ""), ("ji_pooled", ""), ("ji_overall", ""), ("itl_p50", "_s"), ("itl_p99", "_s")):
        width = []
        for row in (few, many):
            low, value, high = (row[f"{name}{end}{unit}"] for end in ("_low", "", "_high"))
            assert None not in (low, value, high), name
            assert low <= value <= high
            width.append(high / low)
        assert width[1] < width[0], name


def test_few_streams_have_values_and_no_limits() -> None:
    row = group(2, 5)
    assert row["ji_p50"] is not None
    assert row["itl_p50_s"] is not None
    for name in ("ji_p50_low", "ji_pooled_low", "ji_overall_low", "itl_p50_low_s", "itl_p99_low_s", "ji_p99"):
        assert row[name] is None, name


def test_streams_without_jitter_have_none_and_no_limits() -> None:
    row = run(arrivals([after([20_000] * 9)] * 40)).frames["groups"].row(0, named=True)
    assert row["ji_pooled"] == 0.0
    assert row["ji_overall"] == pytest.approx(0.0, abs=1e-6)
    assert row["ji_pooled_low"] is None


def test_overall_jitter_is_that_of_all_gaps() -> None:
    arrived = hour(3)
    row = run(arrived).frames["groups"].row(0, named=True)
    gaps = events(arrived)["gap_us"].drop_nulls().to_numpy()
    assert row["ji_overall"] == pytest.approx(gaps.std(ddof=1) / gaps.mean(), rel=1e-9)
    assert row["gaps"] == gaps.size
    assert row["ji_overall"] > row["ji_pooled"], "streams of unequal speed"


def test_ranks_are_those_of_sorting() -> None:
    values = np.random.default_rng(6).lognormal(size=5001)
    for effect in (1.0, 7.3):
        for q in (0.5, 0.99):
            assert intervals._ranked(pl.Series(values), q, effect) == quantile_limits(values, q, effect=effect)


def test_limits_hold_the_truth_where_streams_and_minutes_differ() -> None:
    """Reduced from benchmarks/accuracy/stream.py: 60 runs; limits that covered below 80 % would show."""
    found = covered(60, n=400, minutes=0.1, own=0.3)
    assert min(share for name, share in found.items() if not name.endswith("none")) >= 0.85, found


def test_limits_of_gaps_take_gaps_of_a_stream_for_alike() -> None:
    arrived = hour(8)
    rows = events(arrived)
    ts = arrived.with_row_index("stream").select("stream", "ts")
    whole = intervals.with_block(streams(rows).join(ts, on="stream"))
    gaps = rows.drop_nulls("gap_us").select("stream", gap=pl.col("gap_us") / 1e6)
    limits, naive = intervals.of_gaps(gaps, whole, "gap", 0.5), quantile_limits(gaps["gap"].to_numpy(), 0.5)
    width, usual = ((high or 0.0) - (low or 0.0) for low, high in (limits, naive))
    assert width > 2 * usual
