"""What changed between two parts of the window: parts add up, known causes get their share, and limits are honest."""

from datetime import UTC, datetime, timedelta
from math import fsum
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.catalog import load
from analytics.p99.change import Change, change
from analytics.result import Result
from store.errors import UsageError
from store.window import Window
from tests.analytics.frames_of import requests, times

ANALYSIS = load("p99")
START = datetime(2026, 11, 30, 12, tzinfo=UTC)
WHOLE = Window(START, START + timedelta(hours=2))


def part(n: int, seed: int, at: float, **more: Any) -> pl.DataFrame:
    """Rows of one part: y depends on depth by 0.1 and on length by 0.01; `slower` is what no driver explains."""
    rng = np.random.default_rng(seed)
    depth = rng.poisson(more.get("depth", 2.0), n).astype(float)
    length = rng.gamma(2, more.get("length", 10.0), n)
    y = 0.1 * depth + 0.01 * length + rng.exponential(0.05, n) + more.get("slower", 0.0)
    return pl.DataFrame({"ts": times(at + np.arange(n)), "y": y, "depth": depth, "length": length})


def split(before: pl.DataFrame, after: pl.DataFrame, *names: str, resamples: int = 0) -> Change:
    found = change(before, after, names or ("depth", "length"), 0.9, resamples, 0)
    assert isinstance(found, Change)
    return found


def parts_of(found: Change) -> dict[str, float]:
    return {one.name: one.change for one in found.parts}


def test_the_driver_that_grew_gets_the_rise_and_nothing_is_left() -> None:
    found = split(part(5000, 1, 0), part(5000, 2, 9000, depth=20))
    grown = parts_of(found)
    assert grown["depth"] == pytest.approx(found.total.change, rel=0.05)
    assert abs(grown["length"]) < 0.03 * found.total.change
    assert abs(found.rest.change) < 0.05 * found.total.change
    assert found.most is not None
    assert (found.most.name, round(found.most.before), round(found.most.after)) == ("depth", 2, 20)


def test_what_no_driver_explains_is_the_rest() -> None:
    found = split(part(5000, 1, 0), part(5000, 2, 9000, slower=1.0))
    assert found.rest.change == pytest.approx(1.0, rel=0.05)
    assert max(map(abs, parts_of(found).values())) < 0.05


def test_two_drivers_share_a_rise_by_what_each_added() -> None:
    grown = parts_of(split(part(8000, 1, 0), part(8000, 2, 9000, depth=12, length=60)))
    assert grown["depth"] == pytest.approx(1.2, rel=0.2)
    assert grown["length"] == pytest.approx(1.5, rel=0.2)


@settings(max_examples=15, deadline=None)
@given(st.floats(0, 20), st.floats(5, 50), st.floats(-0.2, 2), st.integers(0, 100))
def test_parts_and_rest_add_up_to_the_change_of_the_quantile(
    depth: float, length: float, slower: float, seed: int
) -> None:
    before, after = part(600, seed, 0), part(600, seed + 1, 9000, depth=depth, length=length, slower=slower)
    found = split(before, after)
    quantiles = [float(np.quantile(rows["y"].to_numpy(), 0.9)) for rows in (before, after)]
    assert (found.before, found.after) == pytest.approx(quantiles)
    assert fsum([*parts_of(found).values(), found.rest.change]) == pytest.approx(found.total.change, abs=1e-9)
    assert found.total.change == pytest.approx(quantiles[1] - quantiles[0], abs=1e-12)


def test_equal_parts_have_no_change_and_their_limits_hold_zero() -> None:
    found = split(part(6000, 1, 0), part(6000, 2, 9000), resamples=100)
    for one in (*found.parts, found.rest, found.total):
        assert one.low <= 0.02
        assert one.high >= -0.02
        assert one.low <= one.change <= one.high


def test_limits_hold_a_known_rise_and_are_not_wide() -> None:
    found = split(part(6000, 1, 0), part(6000, 2, 9000, slower=0.5), resamples=100)
    assert found.rest.low <= 0.5 <= found.rest.high
    assert found.rest.high - found.rest.low < 0.2


def stalled(n: int, seed: int, at: float, pressure: float) -> pl.DataFrame:
    """A queue that stalled CPUs fill; only the queue is seen by a request."""
    rng = np.random.default_rng(seed)
    cpu = np.clip(pressure + 0.02 * rng.standard_normal(n), 0, 1)
    waiting = np.maximum(np.round(40 * (cpu - 0.15) + 5 * rng.standard_normal(n)), 0)
    y = 0.1 + 0.2 * waiting + rng.exponential(0.05, n)
    return pl.DataFrame(
        {"ts": times(at + np.arange(n)), "y": y, "cpu_pressure_ratio": cpu, "requests_waiting": waiting}
    )


def test_a_queue_that_follows_from_stalled_cpus_is_theirs_and_one_that_does_not_is_its_own() -> None:
    names = ("cpu_pressure_ratio", "requests_waiting")
    contended = split(stalled(3000, 1, 0, 0.15), stalled(3000, 2, 9000, 0.9), *names)
    assert contended.most is not None
    assert contended.most.name == "cpu_pressure_ratio"
    assert contended.most.change > 0.8 * contended.total.change
    busy = stalled(3000, 2, 9000, 0.15).with_columns(pl.col("requests_waiting") + 30, pl.col("y") + 6)
    burst = split(stalled(3000, 1, 0, 0.15), busy, *names)
    assert burst.most is not None
    assert burst.most.name == "requests_waiting"
    assert parts_of(burst)["requests_waiting"] == pytest.approx(burst.total.change, rel=0.1)


def test_too_few_requests_are_refused_in_words() -> None:
    assert "too few requests" in str(change(part(10, 1, 0), part(8, 2, 900), ("depth",), 0.99, 0, 0))


def run(spans: pl.DataFrame, **more: Any) -> Result:
    return ANALYSIS.run({"requests": spans}, ANALYSIS.make_params({"drivers": "depth", "resamples": 20} | more), WHOLE)


def two_hours(factor: float) -> pl.DataFrame:
    """A request a second for two hours; in the second one the queue is `factor` times as deep."""
    both = [part(3600, 1, 0), part(3600, 2, 3600, depth=2.0 * factor)]
    rows = pl.concat(both)
    return requests({"ts": rows["ts"], "ttft_s": rows["y"], "depth": rows["depth"].cast(pl.String)})


def test_before_names_a_part_of_the_window_and_the_frame_adds_up() -> None:
    result = run(two_hours(5), before="2026-11-30T12:00:00Z..2026-11-30T13:00:00Z", tau=0.95)
    frame = result.frames["change"]
    assert frame["part"].to_list() == ["depth", "rest", "total"]
    assert frame["share"].to_list()[-1] == 1.0
    assert frame["change"][0] + frame["change"][1] == pytest.approx(frame["change"][2])
    assert frame["after"][2] > frame["before"][2]
    assert any("2026-11-30T12:00:00Z..2026-11-30T13:00:00Z against what follows" in note for note in result.notes)


def test_without_an_episode_and_without_before_there_is_no_change_to_split() -> None:
    assert run(two_hours(1)).frames["change"].height == 0


@pytest.mark.parametrize(
    "before", ["1h", "2026-11-30T10:00:00Z..2026-11-30T12:30:00Z", "2026-11-30T13:00:00Z..2026-11-30T14:00:00Z", "x..y"]
)
def test_a_before_outside_of_the_window_is_a_usage_error(before: str) -> None:
    with pytest.raises(UsageError):
        run(two_hours(1), before=before)
