"""Analysis `ab`: known differences are found in the right place, no difference is not, few rows give no verdict."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics.ab import ANALYSIS, WORSE, AbParams
from analytics.ab.arms import Arm
from analytics.ab.compare import Comparison, difference_rows
from analytics.result import Result, Status
from analytics.stats.clusters import design_effect
from benchmarks.accuracy.ab import arm, decided, false_alarms, latencies, rejections
from store.errors import UsageError
from tests.analytics.frames_of import requests, times, window_of


def answer(n: int, tail: float = 1.0, body: float = 1.0, seed: int = 0, **params: Any) -> Result:
    rng = np.random.default_rng(seed)
    second = rng.random(n) < 0.5
    values = np.where(second, latencies(rng, n, tail, body), latencies(rng, n, 1.0, 1.0))
    columns = {
        "ts": times(np.sort(rng.random(n) * 7200)), "ttft_s": values, "status": ["ok"] * n,
        "error_code": pl.Series([None] * n, dtype=pl.String), "service_version": np.where(second, "v2", "v1"),
    }  # fmt: skip
    frame = requests(columns)
    given = ANALYSIS.make_params({"variant": "service_version=v1,v2"} | params)
    return ANALYSIS.run({"requests": frame}, given, window_of(frame))


def verdicts(result: Result) -> dict[str, str]:
    return dict(result.frames["difference"].select("metric", "verdict").iter_rows())


def test_a_tail_that_is_worse_is_found_where_the_body_is_alike() -> None:
    result = answer(20_000, tail=1.5)
    said = verdicts(result)
    assert said["p99_s"].startswith("slower")
    assert "slower" not in said["p50_s"]
    assert said["tail_live"].startswith("decided: tail worse")
    assert [f.trigger for f in result.findings] == [WORSE.name]
    assert result.findings[0].evidence["trace_ids"]


def test_a_faster_variant_is_called_faster_and_pages_nobody() -> None:
    result = answer(20_000, body=0.8)
    assert verdicts(result)["p50_s"].startswith("faster")
    assert result.findings == ()


def test_no_difference_gives_no_finding_and_a_detectable_effect() -> None:
    result = answer(20_000, seed=1)
    assert result.findings == ()
    assert not any(text.startswith(("slower", "faster")) for text in verdicts(result).values())
    assert 0 < result.frames["difference"].filter(pl.col("metric") == "p99_s")["detectable"][0] < 0.5


def test_below_2000_per_variant_there_is_no_verdict_on_p99() -> None:
    result = answer(1_000, tail=3.0)
    assert verdicts(result)["p99_s"].startswith("no verdict")
    assert any("no verdict on P99" in note for note in result.notes)


def test_while_the_experiment_runs_only_the_sequential_test_decides() -> None:
    said = verdicts(answer(20_000, tail=1.5, mode="live"))
    assert said["p99_s"].startswith("not final")
    assert said["tail_live"].startswith("decided")


def test_before_and_after_a_time_are_variants() -> None:
    result = answer(10_000, split="2026-11-30T13:00:00Z")
    assert result.frames["variants"]["variant"].to_list() == ["before", "after"]


def test_one_variant_alone_is_refused_with_what_would_work() -> None:
    result = answer(500, variant="model=a,b")
    assert result.status is Status.REFUSED
    assert "--variant service_version=v1,v2" in result.notes[0]


def test_a_time_that_is_none_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        answer(100, split="yesterday-ish")


def test_size_and_power_are_those_promised() -> None:
    size = rejections(60, 2_000, 1.0, 1.0)
    power = rejections(30, 2_000, 1.5, 1.0)
    assert size["p99_s"] <= 0.15
    assert size["p50_s"] <= 0.15
    assert power["p99_s"] >= 0.4


def test_peeking_raises_no_false_alarms_and_finds_a_tail() -> None:
    assert decided(60, 20_000, 1.0)[0] <= 0.05
    assert decided(20, 20_000, 1.5)[0] >= 0.9


def test_failures_that_come_in_storms_have_a_design_effect_of_their_own() -> None:
    cell = np.repeat(np.arange(60), 50)
    storms = np.isin(cell, [3, 40])  # two minutes in which all fail
    assert design_effect(storms, cell) == pytest.approx(50 * 60 / 59, rel=0.01)
    alone = np.arange(3_000) % 30 == 0
    assert design_effect(alone, cell) == 1.0
    rng = np.random.default_rng(0)
    calm = arm(rng, 3_000)
    bad = Arm("y", calm.values[~storms], calm.at_us[~storms], cell[~storms], 3_000, 100, cell[storms])
    rows = {row["metric"]: row for row in difference_rows(Comparison(calm, bad, AbParams(resamples=60)))}
    assert rows["error_ratio"]["estimate"] == pytest.approx(100 / 3_000)
    assert rows["error_ratio"]["p"] > 0.05  # two storms are two events, not a hundred
    alone_p = Comparison(calm, bad, AbParams(resamples=60)).share(0, 3_000, 100, 3_000, 1.0)["p"]
    assert alone_p < 1e-6


def test_clustering_raises_no_false_alarms() -> None:
    for together in (True, False):
        assert false_alarms(12, 2_500, together=together)["any"] <= 0.17


def test_the_difference_that_would_be_seen_is_that_of_the_textbook() -> None:
    from scipy.stats import norm
    from statsmodels.stats.power import NormalIndPower
    from statsmodels.stats.proportion import proportion_effectsize

    rng = np.random.default_rng(2)
    of = Comparison(arm(rng, 8_000), arm(rng, 8_000), AbParams(resamples=400))
    share = of.share(400, 8_000, 400, 8_000, 1.0)
    seen = 0.05 * share["detectable"]
    power = NormalIndPower().power(proportion_effectsize(0.05 + seen, 0.05), 8_000, 0.05)
    assert power == pytest.approx(0.8, abs=0.05)  # by arcsine; the statement takes the variance without an effect
    median = next(row for row in difference_rows(of) if row["metric"] == "p50_s")
    density = 0.97 * norm.pdf(0.0) / (0.4 * np.exp(-1.0))  # of the body, where the median is; the tail hardly moves it
    error = np.sqrt(2 * 0.25 / 8_000) / density
    assert median["detectable"] * median["_base"] == pytest.approx((1.959964 + 0.841621) * error, rel=0.2)
