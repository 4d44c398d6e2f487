"""More of the fit: covariates, effects over quantiles, bent effects, and calibration with its own error."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics.catalog import load
from analytics.p99.curvature import held_out_gain
from analytics.result import Result
from analytics.stats.quantile_regression import fit
from store.errors import UsageError
from store.query import MetricQuery, SpanQuery
from store.window import Window
from tests.analytics.frames_of import metric, requests, times, window_of

ANALYSIS = load("p99")


def run(spans: pl.DataFrame, metrics: pl.DataFrame | None = None, **given: Any) -> Result:
    inputs = {"requests": spans} | ({} if metrics is None else {"metrics": metrics})
    return ANALYSIS.run(inputs, ANALYSIS.make_params({"resamples": 20} | given), window_of(spans))


def answers(n: int = 20_000, seed: int = 0) -> pl.DataFrame:
    """Whole answers: 20 ms a token over most of the time, and a queue that adds a tenth of a second each."""
    rng = np.random.default_rng(seed)
    tokens = rng.geometric(1 / 200, n)
    depth = rng.poisson(4, n)
    e2e = 0.02 * tokens * rng.lognormal(0, 0.05, n) + 0.1 * depth + rng.exponential(0.05, n)
    at = times(np.sort(rng.random(n)) * 7200)
    return requests({"ts": at, "e2e_s": e2e, "output_tokens": tokens, "depth": depth.astype(str)})


def test_output_length_is_adjusted_for_and_hides_no_driver() -> None:
    result = run(answers(), target="e2e_s", drivers="depth")
    rows = {row["term"]: row for row in result.frames["coefficients"].to_dicts()}
    assert rows["output_tokens"]["role"] == "covariate"
    assert rows["depth"]["role"] == "driver"
    assert rows["output_tokens"]["estimate"] == pytest.approx(0.022, rel=0.1)
    assert result.frames["contributions"]["driver"].to_list() == ["depth"]
    assert result.frames["contributions"]["share"].to_list() == [1.0]
    explained = result.frames["fit"].row(0, named=True)
    assert explained["r1_covariates"] > 0.7
    assert 0.2 < explained["r1"] < 0.9
    assert explained["r1_low"] > 0


def test_a_covariate_that_is_named_as_driver_is_a_driver_and_none_asks_for_no_adjustment() -> None:
    named = run(answers(), target="e2e_s", drivers="depth,output_tokens")
    assert named.frames["contributions"]["driver"][0] == "output_tokens"
    assert named.frames["fit"]["r1_covariates"][0] is None
    alone = run(answers(), target="e2e_s", drivers="depth", covariates="none")
    assert alone.frames["coefficients"]["term"].to_list() == ["(intercept)", "depth"]
    assert alone.frames["fit"]["r1"][0] < 0.1


def test_without_covariates_r1_is_that_of_koenker_and_machado() -> None:
    spans = answers()
    result = run(spans, target="e2e_s", drivers="depth,output_tokens", tau=0.9)
    columns = [spans["depth"].cast(pl.Float64).to_numpy(), spans["output_tokens"].to_numpy().astype(float)]
    design, y = np.column_stack([np.ones(spans.height), *columns]), spans["e2e_s"].to_numpy()
    base = fit(design[:, :1].copy(), y, 0.9).loss
    assert result.frames["fit"]["r1"][0] == pytest.approx(1 - fit(design, y, 0.9).loss / base, abs=1e-9)


def test_windowed_least_squares_adjusts_as_well() -> None:
    spans = answers()
    level = np.random.default_rng(1).integers(0, 60, 121)[(np.arange(spans.height) * 121) // spans.height]
    spans = spans.with_columns(
        e2e_s=pl.col("e2e_s") + 0.1 * pl.Series(level), depth=(pl.col("depth").cast(pl.Int64) + level).cast(pl.String)
    )
    result = run(spans, target="e2e_s", drivers="depth", method="ols", bucket="1m")
    assert result.frames["contributions"]["driver"].to_list() == ["depth"]
    assert set(result.frames["coefficients"]["role"]) == {"intercept", "driver", "covariate"}


def test_output_length_is_asked_for_with_whole_answers_only() -> None:
    def columns(**given: str) -> tuple[str, ...]:
        query = ANALYSIS.inputs(ANALYSIS.make_params(given))["requests"]
        assert isinstance(query, SpanQuery)
        return query.columns

    assert "output_tokens" in columns(target="e2e_s", drivers="queue_s")
    assert "output_tokens" not in columns(target="ttft_s")
    assert "output_tokens" not in columns(target="e2e_s", covariates="none")
    assert "input_tokens" in columns(target="ttft_s", drivers="queue_s", covariates="input_tokens")


def test_a_covariate_without_data_is_refused_when_a_person_named_it() -> None:
    result = run(answers(), target="e2e_s", drivers="depth", covariates="promt_tokens")
    assert any("driver promt_tokens has no data here" in note for note in result.notes)
    fine = run(answers().drop("output_tokens"), target="e2e_s", drivers="depth")
    assert fine.frames["coefficients"]["term"].to_list() == ["(intercept)", "depth"]


def test_effects_show_as_a_curve_over_quantiles() -> None:
    rng = np.random.default_rng(0)
    n = 30_000
    depth = rng.random(n)
    y = 1 + depth * rng.exponential(1, n)  # slope at tau: -log(1 - tau)
    spans = requests({"ts": times(np.sort(rng.random(n)) * 7200), "ttft_s": y, "depth": depth.astype(str)})
    result = run(spans, drivers="depth", taus="0.5,0.9,0.9999", resamples=60)
    curve = result.frames["quantiles"]
    assert curve["tau"].to_list() == [0.5, 0.9, 0.99]  # three requests lie beyond 0.9999
    assert curve["estimate"].to_list() == pytest.approx([-np.log(1 - tau) for tau in (0.5, 0.9, 0.99)], rel=0.12)
    assert (curve["ci_low"] < curve["estimate"]).all()
    last = result.frames["coefficients"].row(1, named=True)
    assert (curve["estimate"][2], curve["ci_low"][2]) == (last["estimate"], last["ci_low"])


@pytest.mark.parametrize("taus", ["half", "0,0.5", "1.5"])
def test_what_is_no_quantile_is_a_usage_error(taus: str) -> None:
    with pytest.raises(UsageError, match="taus"):
        run(answers(2000), target="e2e_s", drivers="depth", taus=taus)


def gain(shape: Any, seed: int = 0, n: int = 24_000) -> float:
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    y = shape(x) + 0.1 * rng.exponential(1, n)
    found = held_out_gain(np.column_stack([np.ones(n), x, rng.random(n)]), y, 0.95, np.arange(n) // 100)
    assert found is not None
    return found


def test_bent_effects_are_told_from_straight_ones() -> None:
    assert gain(lambda x: 2 * x) < 0.02
    assert gain(lambda x: 0.2 * x / (1.02 - x)) > 0.3
    assert gain(lambda x: 3 * x**3) > 0.1


def test_a_bend_is_said_in_words() -> None:
    rng = np.random.default_rng(0)
    n = 24_000
    load_ = rng.random(n) * 0.95
    y = 0.1 * load_ / (1 - load_) + 0.05 * rng.exponential(1, n)
    spans = requests({"ts": times(np.sort(rng.random(n)) * 7200), "ttft_s": y, "load": load_.astype(str)})
    result = run(spans, drivers="load", tau=0.95)
    assert "non-linear" in result.frames["fit"]["verdict"][0]
    assert any("linear effects are averages" in note for note in result.notes)


def test_a_thin_tail_is_not_checked_for_bends() -> None:
    assert held_out_gain(np.ones((200, 2)), np.arange(200.0), 0.99, np.arange(200)) is None


def test_the_error_of_the_coverage_grows_where_neighbours_are_alike() -> None:
    rng = np.random.default_rng(0)
    n, each = 24_000, 200
    depth = rng.random(n)
    shared = np.repeat(rng.exponential(1, n // each), each)  # a level that all requests of 200 s have in common
    at = times(np.arange(n) * 1.0)
    errors = []
    for noise in (rng.exponential(1, n), shared + 0.01 * rng.random(n)):
        result = run(
            requests({"ts": at, "ttft_s": depth + noise, "depth": depth.astype(str)}), drivers="depth", tau=0.9
        )
        errors.append(result.frames["fit"]["coverage_error"][0])
    assert errors[0] == pytest.approx(np.sqrt(0.09 / 6000 * 4 / 3), rel=0.3)
    assert errors[1] > 4 * errors[0]


def test_a_hit_ratio_is_made_of_its_two_counters() -> None:
    rng = np.random.default_rng(0)
    seconds = np.arange(0, 7200, 10.0)
    bad = seconds > 5400
    queries = np.cumsum(rng.integers(80, 120, seconds.size)).astype(float)
    hits = np.cumsum(np.where(bad, 5, 60) * np.ones(seconds.size))
    samples = pl.concat(
        [
            metric("prefix_cache_hits_total", times(seconds).to_list(), hits.tolist(), series_id=1),
            metric("prefix_cache_queries_total", times(seconds).to_list(), queries.tolist(), series_id=2),
        ]
    ).sort("ts")
    at = np.sort(rng.random(9000) * 7200)
    y = np.where(at > 5400, 0.6, 0.2) * rng.lognormal(0, 0.2, 9000)
    spans = requests({"ts": times(at), "ttft_s": y, "input_tokens": rng.integers(10, 900, 9000)})
    result = run(spans, samples)
    assert result.frames["contributions"]["driver"][0] == "prefix_cache_hit_ratio"
    assert result.frames["coefficients"].row(1, named=True)["per"] == "ratio"
    drivers = json.loads(result.frames["tail"]["drivers"][0])
    assert drivers["prefix_cache_hit_ratio"] == pytest.approx(0.05, abs=0.02)
    query = ANALYSIS.inputs(ANALYSIS.make_params({}))["metrics"]
    assert isinstance(query, MetricQuery)
    assert {"prefix_cache_hits_total", "prefix_cache_queries_total", "prefix_cache_hit_ratio"} <= set(query.names)


def test_the_analysis_stays_small_in_what_it_prints() -> None:
    window = Window(datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC) + timedelta(hours=1))
    empty = requests({"ts": times([]), "ttft_s": []})
    result = ANALYSIS.run({"requests": empty}, ANALYSIS.make_params({}), window)
    assert all(frame.height == 0 for frame in result.frames.values())
