"""The cheapest concurrency on hours whose minimum is known."""

from datetime import datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from analytics.connections.cheapest import FOUND, cheapest
from analytics.stats import convex, unimodal
from tests.analytics.connections.simulated import BEFORE, COSTS, Array, run, traffic, unit_costs, window_of
from tests.analytics.frames_of import START

DOCUMENTS = {"ALB": (800.0, 2.37), "Front Door": (1200.0, 1.69), "GCP LB": (2100.0, 0.92)}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("shape", ["bend", "smooth", "saturating"])
def test_the_documents_minima_are_found_within_a_fifth_and_inside_their_interval(name: str, shape: str) -> None:
    best, growth = DOCUMENTS[name]
    row = cheapest(*unit_costs(11, best, growth, shape=shape), resamples=60, seed=1)
    assert row["verdict"] == FOUND
    assert row["concurrency"] == pytest.approx(best, rel=0.2)
    assert row["low"] <= best <= row["high"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_growth_is_found_within_a_tenth(name: str) -> None:
    best, growth = DOCUMENTS[name]
    row = cheapest(*unit_costs(11, best, growth), resamples=60, seed=1)
    truth = growth * (row["highest"] / best - 1) / 2
    assert row["growth"] == pytest.approx(truth, rel=0.1)


def test_a_cost_that_only_falls_has_no_minimum() -> None:
    concurrency = np.exp(np.random.default_rng(1).uniform(0, 4, 300))
    row = cheapest(concurrency, 1 + 50 / concurrency, resamples=50, seed=1)
    assert row["verdict"].startswith("no minimum within what was seen: cost per request falls")
    assert "concurrency" not in row


def test_a_cost_that_only_rises_or_does_not_depend_has_no_minimum() -> None:
    rng = np.random.default_rng(1)
    concurrency = np.exp(rng.uniform(0, 4, 300))
    assert "rises" in cheapest(concurrency, 1 + concurrency, resamples=50, seed=1)["verdict"]
    flat = cheapest(concurrency, np.exp(rng.normal(0, 0.05, 300)), resamples=50, seed=1)
    assert "does not depend" in flat["verdict"]


def test_few_hours_and_a_narrow_range_are_refused() -> None:
    concurrency, cost = unit_costs(1, 800, 2.0)
    assert "48 hours" in cheapest(concurrency[:47], cost[:47], resamples=50, seed=1)["verdict"]
    narrow = np.linspace(700, 1000, 200)
    assert "less than 2 times" in cheapest(narrow, narrow, resamples=50, seed=1)["verdict"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.1, 10), min_size=4, max_size=12))
def test_a_convex_fit_is_convex_and_no_worse_than_a_line(values: list[float]) -> None:
    y = np.array(values)
    x = np.arange(y.size, dtype=float)
    fitted = convex.fit(x, y, np.ones(y.size))
    assert np.all(np.diff(fitted, 2) >= -1e-6)
    line = np.polyval(np.polyfit(x, y, 1), x)
    assert np.sum((fitted - y) ** 2) <= np.sum((line - y) ** 2) + 1e-6


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=12))
def test_a_unimodal_fit_falls_then_rises_and_leaves_unimodal_points_alone(values: list[float]) -> None:
    y = np.array(values)
    fitted = unimodal.fit(y, np.ones(y.size))
    turn = int(np.argmin(fitted))
    assert np.all(np.diff(fitted[: turn + 1]) <= 1e-9)
    assert np.all(np.diff(fitted[turn:]) >= -1e-9)
    valley = np.concatenate([np.sort(y)[::-1], np.sort(y)])
    assert unimodal.fit(valley, np.ones(valley.size)) == pytest.approx(valley)


def line(hour: int, cost: str, **more: object) -> dict[str, object]:
    at = datetime(START.year, START.month, START.day, START.hour + hour)
    base = {"bucket": at, "service": "edge", "currency": "USD", "category": "Usage", "cost": Decimal(cost)}
    return base | {"span_s": 3600.0} | more


def test_costs_join_by_service_and_hour_and_leave_out_taxes_and_long_charges() -> None:
    rows = traffic(2, (4 * 3600, BEFORE))
    lines = [line(h, "7.5") for h in range(4)]
    lines += [line(1, "100", category="Tax"), line(1, "100", span_s=86_400.0), line(1, "9", service="other")]
    costs = pl.DataFrame(lines, schema=COSTS)
    result = run(rows, window_of(4 * 3600), costs)
    hours = result.frames["unit_costs"]
    assert [at.hour for at in hours["hour"]] == [13, 14]  # the first and the last request's hour may be cut
    assert set(hours["cost"]) == {Decimal("7.5")}
    first = hours.row(0, named=True)
    asked = rows.filter(pl.col("ts").dt.hour() == 13)
    assert first["requests"] == asked.height
    assert first["unit_cost"] == (Decimal(7500) / asked.height).quantize(Decimal("0.000001"))
    assert first["concurrency"] == pytest.approx(asked["duration_s"].sum() / 3600, rel=0.02)
    assert "48 hours" in result.frames["cheapest"]["verdict"][0]


def test_two_currencies_are_two_answers_and_never_added() -> None:
    costs = pl.DataFrame([line(1, "7.5"), line(1, "3", currency="EUR")], schema=COSTS)
    result = run(traffic(2, (4 * 3600, BEFORE)), window_of(4 * 3600), costs)
    assert sorted(result.frames["unit_costs"]["currency"]) == ["EUR", "USD"]
    assert result.frames["buckets"]["unit_cost"].null_count() == result.frames["buckets"].height


def test_costs_of_no_such_service_are_said() -> None:
    costs = pl.DataFrame([line(1, "7.5", service="other")], schema=COSTS)
    result = run(traffic(2, (4 * 3600, BEFORE)), window_of(4 * 3600), costs)
    assert any("none name this service" in note for note in result.notes)


def by_trying_every_turn(y: Array, weight: Array) -> float:
    """Least squares of the unimodal fits, one turn after the other."""
    found = []
    for turn in range(y.size + 1):
        left = isotonic_regression(y[:turn], weights=weight[:turn], increasing=False).x if turn else y[:0]
        right = isotonic_regression(y[turn:], weights=weight[turn:]).x if turn < y.size else y[:0]
        found.append(float(np.sum(weight * (y - np.concatenate([left, right])) ** 2)))
    return min(found)


@pytest.mark.parametrize("seed", range(20))
def test_the_turn_of_a_unimodal_fit_is_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, weight = rng.normal(size=1 + seed), rng.uniform(0.1, 3, 1 + seed)
    squares = float(np.sum(weight * (y - unimodal.fit(y, weight)) ** 2))
    assert squares == pytest.approx(by_trying_every_turn(y, weight), abs=1e-9)
