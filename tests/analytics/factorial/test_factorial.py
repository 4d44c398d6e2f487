"""Analysis `factorial`: effects put into simulated cells come back, on the mean and on the spread."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics.factorial import ANALYSIS
from analytics.result import Result, Status
from tests.analytics.frames_of import metric, requests, times, window_of


def answer(n: int, mean: float = 0.0, spread: float = 0.0, both: float = 0.0, **more: Any) -> Result:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, n), rng.integers(0, 2, n)
    y = 1.0 + mean * a + both * a * b + rng.normal(size=n) * (0.1 + spread * b)
    columns = {"ts": times(np.sort(rng.random(n) * 7200)), "ttft_s": y}
    frame = requests(columns).with_columns(
        net=pl.Series(np.where(a, "slow", "quick")), mem=pl.Series(b).cast(pl.String)
    )
    params = ANALYSIS.make_params({"factors": "net,mem", "by": "none"} | more)
    return ANALYSIS.run({"requests": frame.sort("ts")}, params, window_of(frame))


def effect(result: Result, name: str, on: str) -> dict[str, Any]:
    frame = result.frames["effects"]
    return frame.filter(pl.col("effect") == name, pl.col("on") == on).row(0, named=True)


def test_an_effect_on_the_mean_alone_is_found_there_alone() -> None:
    result = answer(2_000, mean=-0.05)
    found = effect(result, "net", "mean")
    assert found["contrast"] == "slow minus quick"
    assert found["ci_low"] < -0.05 < found["ci_high"] < 0
    assert effect(result, "net", "spread")["p_adj"] > 0.05
    assert effect(result, "mem", "mean")["verdict"] == "no effect shown"


def test_an_effect_on_the_spread_alone_is_found_there_alone() -> None:
    result = answer(2_000, spread=0.1)
    assert effect(result, "mem", "spread")["p_adj"] < 0.001
    assert effect(result, "mem", "mean")["p_adj"] > 0.05


def test_an_interaction_is_told_from_effects_that_add_up() -> None:
    assert effect(answer(2_000, mean=0.1), "net x mem", "mean")["p_adj"] > 0.05
    found = effect(answer(2_000, both=0.1), "net x mem", "mean")
    assert found["estimate"] == pytest.approx(0.1, abs=0.03)
    assert found["p_adj"] < 0.001


def test_factors_that_are_missing_or_do_not_vary_are_refused_in_words() -> None:
    assert answer(200, factors="net").status is Status.REFUSED
    absent = answer(200, factors="net,nowhere")
    assert absent.status is Status.REFUSED
    assert "nowhere does not vary" in absent.notes[0]


def test_cells_with_few_requests_are_shown_without_effects() -> None:
    assert answer(40).status is Status.REFUSED


def test_a_metric_is_split_at_its_median() -> None:
    n = 1_000
    frame = requests({"ts": times(np.arange(n) * 7.0), "ttft_s": np.random.default_rng(0).random(n)})
    frame = frame.with_columns(net=pl.Series([("a", "b")[i % 2] for i in range(n)]))
    samples = metric("requests_waiting", times(np.arange(0, 7_000, 60.0)), [float(i % 50) for i in range(117)])
    params = ANALYSIS.make_params({"factors": "net,requests_waiting", "by": "none"})
    result = ANALYSIS.run({"requests": frame, "metrics": samples}, params, window_of(frame))
    assert result.status is Status.OK
    assert result.frames["cells"].height == 4
