"""Episodes: what is found of injected incidents, how quiet it is on noise, and that nothing looks ahead."""

from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from analytics.detect.baseline import baseline, middle
from analytics.detect.episodes import Episode, find, unmerged
from analytics.detect.novelty import Floats
from analytics.detect.shift import shifts

DAY = 288


def seconds(points: int, step: int = 300) -> np.ndarray:
    return 1764547200 + step * np.arange(points)


def daily(rng: np.random.Generator, points: int = 12 * DAY) -> Floats:
    day = 100 * (1 + 0.5 * np.sin(2 * np.pi * np.arange(points) / DAY))
    return np.asarray(day * rng.gamma(25.0, 1 / 25, points))


def among(episodes: list[Episode], kind: str, first: int, last: int) -> bool:
    return any(e.kind == kind and first <= e.told <= last for e in episodes)


@pytest.mark.parametrize("seed", range(3))
def test_incidents_of_each_kind_are_found_and_explained_by_their_kind(seed: int) -> None:
    rng, at = np.random.default_rng(seed), 10 * DAY
    series = np.stack([daily(rng) for _ in range(4)], axis=1)
    series[at : at + 2, 0] *= 6
    series[at:, 1] *= 2
    series[at : at + 80, 2] = series[at - 1, 2]
    series[at : at + 30, 3] = np.nan
    found = find(series, seconds(len(series)))
    of = [[e for e in found if e.column == column] for column in range(4)]
    assert any(e.page for e in of[0] if e.kind == "value" and e.first == at)
    assert among(of[1], "level", at, at + DAY // 2)
    assert among(of[2], "flat", at, at + 79)
    assert among(of[3], "missing", at, at + 29)


NOISE: dict[str, Callable[[np.random.Generator], Floats]] = {
    "normal": lambda rng: rng.normal(100, 10, (4032, 20)),
    "lognormal": lambda rng: rng.lognormal(0, 0.5, (4032, 20)),
    "pareto": lambda rng: 1 + rng.pareto(3.0, (4032, 20)),
    "poisson": lambda rng: rng.poisson(2.0, (4032, 20)).astype(float),
}


@pytest.mark.parametrize("name", NOISE)
def test_noise_pages_less_than_once_in_five_series_weeks(name: str) -> None:
    found = find(NOISE[name](np.random.default_rng(3)), seconds(4032))
    assert sum(e.page and e.first >= DAY for e in found) / (20 * (4032 - DAY) / 2016) <= 0.2


@given(st.integers(0, 10_000), st.integers(700, 1500), st.floats(-1e4, 1e4))
@settings(deadline=None, max_examples=12)
def test_what_is_told_by_a_time_does_not_change_with_what_comes_later(seed: int, until: int, other: float) -> None:
    rng = np.random.default_rng(seed)
    series = daily(rng, 6 * DAY)[:, None]
    for _ in range(6):
        at = int(rng.integers(100, len(series)))
        series[at : at + int(rng.integers(1, 40))] *= rng.uniform(0.2, 4)
    series[rng.integers(0, len(series), 5)] = np.nan
    changed = series.copy()
    changed[until:] = other
    told = [
        sorted((e.first, e.kind, e.told, e.p, e.page) for e in unmerged(some, seconds(len(some))) if e.told < until)
        for some in (series, changed, series[:until])
    ]
    assert told[0] == told[1] == told[2]


def test_a_level_shift_of_hourly_cost_is_found_within_twelve_hours() -> None:
    rng = np.random.default_rng(5)
    hours = np.arange(24 * 49)
    pattern = 100 * (1 + 0.4 * np.sin(2 * np.pi * hours / 24)) * np.where(hours // 24 % 7 >= 5, 0.6, 1.0)
    series = pattern[:, None] * (1 + 0.05 * rng.normal(size=(len(hours), 10)))
    at = 40 * 24 + 7
    series[at:] *= 1.4
    found = find(series, seconds(len(series), 3600))
    for column in range(10):
        assert any(at <= e.told <= at + 12 for e in found if e.column == column and e.kind in ("level", "season"))
        assert any(e.kind == "level" and at - 1 <= e.first <= at + 2 for e in found if e.column == column)


def test_the_baseline_follows_the_hour_of_the_day() -> None:
    series = daily(np.random.default_rng(6))[:, None]
    usual = baseline(series, seconds(len(series)))
    truth = 100 * (1 + 0.5 * np.sin(2 * np.pi * np.arange(len(series)) / DAY))
    late = slice(6 * DAY, None)
    assert np.median(np.abs(usual.expected[late, 0] / truth[late] - 1)) < 0.06


def test_the_median_of_columns_passes_over_what_is_missing() -> None:
    values = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan], [2.0, np.nan]])
    assert middle(values)[0] == 2.0
    assert np.isnan(middle(values)[1])


def test_a_spike_is_no_shift() -> None:
    z = np.random.default_rng(7).normal(size=(2000, 3))
    z[1000:1012] += 50
    assert shifts(z, 12) == []


def test_a_first_event_of_a_series_that_was_always_zero_does_not_page_but_a_lasting_one_does() -> None:
    series = np.zeros((1000, 2))
    series[500, 0] = 1.0
    series[500:520, 1] = np.linspace(5, 9, 20)
    found = find(series, seconds(1000))
    assert [e.page for e in found if e.column == 0 and e.first == 500] == [False]
    assert [e.page for e in found if e.column == 1 and e.first == 500] == [True]
