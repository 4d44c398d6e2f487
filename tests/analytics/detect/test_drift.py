"""Slow drift: ramps over days are found on every rhythm, noise and steps are not, whatever comes later."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from analytics.detect.drift import drifts
from analytics.detect.episodes import find
from analytics.detect.novelty import Floats

DAY, START = 288, 1764547200


def seconds(points: int) -> np.ndarray:
    return START + 300 * np.arange(points)


def usual(rng: np.random.Generator, days: int = 12, series: int = 20) -> Floats:
    day = 2 + np.sin(2 * np.pi * np.arange(days * DAY) / DAY)
    return np.asarray(rng.gamma(25.0, 1 / 25, (days * DAY, series)) * day[:, None])


def test_a_leak_of_a_fifth_a_day_is_told_within_three_days() -> None:
    values = usual(np.random.default_rng(0))
    values[6 * DAY : 10 * DAY] *= 1 + 0.2 * np.arange(4 * DAY)[:, None] / DAY
    found = [d for d in drifts(values, seconds(len(values))) if d.told >= 6 * DAY]
    in_time = {d.column for d in found if d.told < 9 * DAY}
    assert len(in_time) >= 16
    assert all(d.end > d.start for d in found)


def test_creeping_by_a_tenth_a_day_for_a_week_is_told_by_its_end() -> None:
    values = usual(np.random.default_rng(1))
    values[4 * DAY : 11 * DAY] *= 1 + 0.1 * np.arange(7 * DAY)[:, None] / DAY
    assert len({d.column for d in drifts(values, seconds(len(values))) if d.told < 11 * DAY + 36}) >= 18


@pytest.mark.parametrize("kind", ["rhythm", "normal", "poisson", "constant"])
def test_noise_and_rhythm_are_no_drift(kind: str) -> None:
    rng = np.random.default_rng(2)
    made = {
        "rhythm": usual(rng, 21),
        "normal": rng.normal(100, 10, (21 * DAY, 20)),
        "poisson": rng.poisson(2.0, (21 * DAY, 20)).astype(float),
        "constant": np.full((21 * DAY, 2), 7.0),
    }
    assert drifts(made[kind], seconds(21 * DAY)) == []


def test_a_step_is_a_level_and_no_drift() -> None:
    values = usual(np.random.default_rng(3))
    values[6 * DAY :] *= 1.6
    assert [d for d in drifts(values, seconds(len(values))) if d.told >= 6 * DAY] == []


def test_less_than_three_days_or_mostly_missing_days_say_nothing() -> None:
    ramp = np.linspace(1, 9, 12 * DAY)[:, None]
    assert drifts(ramp[: 2 * DAY], seconds(2 * DAY)) == []
    assert drifts(np.empty((0, 3)), seconds(0)) == []
    holey = np.where((np.arange(12 * DAY) // 36 % 8 < 3)[:, None], ramp, np.nan)
    assert drifts(holey, seconds(12 * DAY)) == []


def test_a_drift_is_one_episode_that_lasts_and_does_not_page() -> None:
    values = usual(np.random.default_rng(4), 10, 1)
    values[4 * DAY :, 0] *= 1 + 0.25 * np.arange(6 * DAY) / DAY
    (one,) = [e for e in find(values, seconds(len(values))) if e.kind == "drift"]
    assert one.last == len(values) - 1
    assert not one.page
    assert one.value is not None
    assert one.high is not None
    assert one.value > one.high


@given(st.integers(0, 1000), st.integers(4 * DAY, 8 * DAY), st.floats(-1e4, 1e4))
@settings(deadline=None, max_examples=15)
def test_what_was_told_does_not_change_with_what_comes_later(seed: int, until: int, other: float) -> None:
    values = usual(np.random.default_rng(seed), 8, 3)
    values[2 * DAY :] *= 1 + 0.3 * np.arange(6 * DAY)[:, None] / DAY
    changed = values.copy()
    changed[until:] = other
    told = [
        [d for d in drifts(some, seconds(len(some))) if d.told < until] for some in (values, changed, values[:until])
    ]
    assert told[0] == told[1] == told[2]
