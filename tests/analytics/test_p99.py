"""What drives P99: known truth, recordings, refusals in words, and alerts that agree with findings."""

import csv
import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics import codec
from analytics.catalog import load
from analytics.p99 import ABOVE, FAR_ABOVE, FRAMES
from analytics.p99.windows import by_window
from analytics.result import Result, Status
from store.errors import UsageError
from store.query import MetricQuery, SpanQuery
from store.window import Window
from tests.analytics.frames_of import burstgpt, metric, requests, times, vllm_real, window_of
from tests.analytics.simulated import DRIVERS, scenario

ANALYSIS = load("p99")


def run(spans: pl.DataFrame, metrics: pl.DataFrame | None = None, window: Window | None = None, **given: Any) -> Result:
    inputs = {"requests": spans} | ({} if metrics is None else {"metrics": metrics})
    result = ANALYSIS.run(inputs, ANALYSIS.make_params(given), window or window_of(spans))
    assert codec.from_json(codec.to_json(result), ANALYSIS.frames).findings == result.findings
    return result


def shares(result: Result) -> dict[str, float]:
    return dict(result.frames["contributions"].select("driver", "share").iter_rows())


def slopes(result: Result) -> dict[str, float]:
    return dict(result.frames["coefficients"].select("term", "estimate").iter_rows())


def words(result: Result) -> str:
    return "\n".join(result.notes)


@pytest.mark.parametrize("cause", ["queue", "kv", "pcie"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_driver_behind_a_simulated_tail_comes_first(cause: str, seed: int) -> None:
    result = run(*scenario(cause, seed))
    found = shares(result)
    assert result.status is Status.OK
    assert max(found, key=lambda name: found[name]) == DRIVERS[cause]
    assert math.fsum(found.values()) == 1.0
    others = result.frames["contributions"].filter(pl.col("driver").is_in([DRIVERS[c] for c in DRIVERS if c != cause]))
    assert others["ci_low"].max() < 0.02
    assert abs(result.frames["fit"]["coverage"][0] - 0.99) <= 0.01


def test_without_an_effect_no_metric_is_accused() -> None:
    found = shares(run(*scenario(None, 3), drivers=",".join(DRIVERS.values())))
    assert found == {}


def test_twins_share_one_contribution_and_only_one_has_a_slope() -> None:
    result = run(*scenario("queue", 4), drivers="requests_waiting,twin_of_waiting,input_tokens")
    found = shares(result)
    assert max(found, key=lambda name: found[name]) == "requests_waiting + twin_of_waiting"
    assert "twin_of_waiting" not in slopes(result)
    assert "not separable" in words(result)
    assert result.frames["vif"].filter(pl.col("driver") == "twin_of_waiting")["vif"][0] > 30


def test_the_burstgpt_replay_gives_the_published_coefficients(shared: Path) -> None:
    spans, metrics = burstgpt(shared / "data" / "burstgpt_vllm_replay")
    drivers = "requests_waiting,kv_usage_percent,input_tokens"
    result = run(spans, metrics, drivers=drivers, by="none", tail_rows=40)
    found = slopes(result)
    assert result.frames["fit"].select("tau", "n", "n_tail").row(0) == (0.99, 3991, 40)
    assert result.frames["fit"]["r1"][0] == pytest.approx(0.877, abs=0.002)
    assert found["(intercept)"] == pytest.approx(0.0408, abs=0.004)
    assert found["requests_waiting"] == pytest.approx(0.4260, rel=0.02)
    assert found["kv_usage_percent"] == pytest.approx(0.0627, rel=0.02)
    assert found["input_tokens"] == pytest.approx(3.8e-5, abs=2e-5)
    assert max(shares(result), key=lambda name: shares(result)[name]) == "requests_waiting"


def test_with_forty_tail_rows_automatic_drivers_are_fitted_at_a_lower_quantile_which_is_said(shared: Path) -> None:
    spans, metrics = burstgpt(shared / "data" / "burstgpt_vllm_replay")
    result = run(spans, metrics, by="none")
    assert result.frames["fit"]["tau"][0] == 0.95
    assert "40 of 50 at tau 0.99" in words(result)


def test_with_forty_tail_rows_a_named_driver_keeps_its_quantile_and_low_confidence_is_said(shared: Path) -> None:
    spans, metrics = burstgpt(shared / "data" / "burstgpt_vllm_replay")
    result = run(spans, metrics, drivers="requests_waiting", by="none")
    assert result.frames["fit"]["tau"][0] == 0.99
    assert "low confidence: 40 tail rows" in words(result)


def windowed_p99(levels: list[float], each: int = 100) -> pl.DataFrame:
    """Windows of a minute whose latencies are all of one level."""
    count = len(levels)
    rows = pl.DataFrame(
        {
            "ts": [
                datetime(2026, 11, 30) + timedelta(seconds=60 * i + 60 * j / each)
                for i in range(count)
                for j in range(each)
            ],
            "y": [level for level in levels for _ in range(each)],
        }
    )
    window = Window(datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC) + timedelta(minutes=count))
    return by_window(rows.with_columns(pl.col("ts").cast(pl.Datetime("us"))), window, timedelta(minutes=1), 0.99)


def test_an_incident_does_not_become_its_own_baseline() -> None:
    table = windowed_p99([1.0] * 10 + [5.0] * 10)
    assert table["ratio"].to_list() == [None] * 3 + [1.0] * 7 + [5.0] * 10


def test_a_level_that_most_windows_have_is_the_new_baseline() -> None:
    table = windowed_p99([1.0] * 4 + [5.0] * 6)
    assert table["ratio"].to_list()[4:] == [5.0] * 5 + [1.0]


def test_the_burst_of_a_real_engine_is_associated_with_its_queue(shared: Path) -> None:
    spans, metrics = vllm_real(shared / "data" / "vllm_real")
    phases = [json.loads(line) for line in (shared / "data" / "vllm_real" / "labels.jsonl").read_text().splitlines()]
    end = datetime.fromtimestamp(phases[3]["end"], UTC)
    burst = spans.filter(pl.col("ts") < end.replace(tzinfo=None))
    result = run(burst, metrics)
    found = shares(result)
    assert max(found, key=lambda name: found[name]) == "requests_waiting"
    assert 0.1 < slopes(result)["requests_waiting"] < 0.3  # 113 waiting, 23 s


def windows_case(path: Path) -> pl.DataFrame:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    ts = pl.Series(columns.pop("ts")).str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="us")
    return requests(columns | {"ts": ts})


@pytest.mark.parametrize("given", [{}, {"method": "ols", "bucket": "1m"}])
def test_constant_and_inseparable_drivers_get_no_slope(shared: Path, given: dict[str, Any]) -> None:
    spans = windows_case(shared / "cases" / "61-collinear-and-constant-regressors" / "windows.csv")
    result = run(spans, target="p99_ms", drivers="cpu_util,mem_wait,kv_latency", **given)
    assert result.status is Status.OK
    assert set(slopes(result)) == {"(intercept)", "kv_latency"}
    assert 6 <= slopes(result)["kv_latency"] <= 9
    assert shares(result) == {"mem_wait + kv_latency": 1.0}
    assert "cpu_util left out: constant" in words(result)
    assert "mem_wait + kv_latency are not separable" in words(result)


def test_rows_without_a_number_are_dropped_counted_and_leave_a_gap(shared: Path) -> None:
    spans = windows_case(shared / "cases" / "62-nan-rows-and-scrape-gaps" / "windows.csv")
    result = run(spans, target="p99_ms", drivers="cpu_util,kv_latency", bucket="1m")
    fit = result.frames["fit"].row(0, named=True)
    assert fit["n"] == spans.height - 3
    assert fit["dropped"] == sum(json.loads(fit["dropped_reasons"]).values()) == 3
    windows = result.frames["windows"]
    assert windows.filter(pl.col("n") == 0).height == 30
    assert windows.filter(pl.col("n") == 0)["p99"].null_count() == 30
    assert windows["p99"].drop_nulls().is_finite().all()


def test_six_requests_give_no_alert_and_no_fit(shared: Path) -> None:
    with (shared / "cases" / "58-p99-of-few-samples" / "few.csv").open() as file:
        latency = [float(row["latency_s"]) for row in csv.DictReader(file)]
    result = run(requests({"ts": times(range(6)), "ttft_s": latency, "input_tokens": [1, 2, 3, 4, 5, 6]}))
    assert result.status is Status.REFUSED
    assert result.findings == ()
    assert result.samples["p99_baseline_ratio"]["value"].to_list() == [None]
    assert result.samples["p99_latency"]["value"].to_list() == [None]
    assert "insufficient samples" in words(result)
    assert "not enough requests: 6" in words(result)
    assert result.frames["windows"]["p99_high"].null_count() == result.frames["windows"].height


def incident(factor: float, minutes: range, n: int = 200) -> pl.DataFrame:
    """Two hours of requests whose latency is `factor` as high in some minutes, with a queue to match."""
    rng = np.random.default_rng(5)
    minute = np.repeat(np.arange(120), n)
    inside = np.isin(minute, minutes)
    latency = rng.lognormal(-2, 0.3, minute.size) * np.where(inside, factor, 1.0)
    waiting = np.where(inside, 20, 0) + rng.poisson(1, minute.size)
    at = times(minute * 60 + rng.random(minute.size) * 60)
    return requests({"ts": at, "ttft_s": latency, "queue_depth": waiting.astype(str)})


WHOLE = Window(datetime(2026, 11, 30, 12, tzinfo=UTC), datetime(2026, 11, 30, 14, tzinfo=UTC))


def test_a_lasting_incident_is_found_with_its_start_its_driver_and_traces() -> None:
    result = run(incident(4, range(110, 120)), window=WHOLE, drivers="queue_depth", bucket="1m")
    lasting = [f for f in result.findings if f.until is None]
    assert [f.trigger for f in lasting] == ["P99FarAboveBaseline", "P99AboveBaseline"]
    assert lasting[0].since == datetime(2026, 11, 30, 13, 50, tzinfo=UTC)
    assert "associated with queue_depth, share 1.00" in lasting[0].summary
    assert lasting[0].evidence["moved_most"]["driver"] == "queue_depth"
    assert len(lasting[0].evidence["trace_ids"]) == 5
    assert "cause" not in lasting[0].summary


def test_an_incident_that_is_over_is_one_finding_with_its_end() -> None:
    result = run(incident(4, range(60, 70)), window=WHOLE, drivers="queue_depth", bucket="1m")
    (found,) = result.findings
    assert found.trigger == "P99FarAboveBaseline"
    assert found.since == datetime(2026, 11, 30, 13, tzinfo=UTC)
    assert found.until == datetime(2026, 11, 30, 13, 10, tzinfo=UTC)
    assert result.frames["episodes"]["driver"].to_list() == ["queue_depth"]


def test_usual_traffic_has_no_finding() -> None:
    assert run(incident(1, range(0)), window=WHOLE, drivers="queue_depth").findings == ()


@pytest.mark.parametrize("factor", [1.0, 1.4, 1.6, 1.9, 2.9, 3.2, 4.0])
def test_a_lasting_finding_exists_exactly_where_the_rule_would_fire(factor: float) -> None:
    result = run(incident(factor, range(117, 120)), window=WHOLE, drivers="queue_depth", bucket="1m", resamples=20)
    value = result.samples["p99_baseline_ratio"]["value"][0]
    lasting = {f.trigger for f in result.findings if f.until is None}
    assert lasting == {t.name for t in (ABOVE, FAR_ABOVE) if t.holds(value)}
    assert value == result.frames["windows"]["ratio"][-1]


def test_a_driver_without_data_is_refused_with_its_nearest_names() -> None:
    result = run(incident(1, range(0)), window=WHOLE, drivers="request_waiting")
    assert result.status is Status.REFUSED
    assert "did you mean requests_waiting" in words(result)
    assert not result.frames["windows"].is_empty()


def test_drivers_are_found_as_column_attribute_or_metric_and_prefixes_decide() -> None:
    rng = np.random.default_rng(0)
    at = times(np.sort(rng.random(6000) * 3600))
    spans = requests(
        {"ts": at, "ttft_s": rng.random(6000), "input_tokens": rng.integers(1, 9, 6000), "depth": ["1", "2"] * 3000}
    )
    series = metric("depth", times(np.arange(0, 3600, 60.0)), rng.random(60))
    by_metric = run(spans, series, drivers="depth,input_tokens").frames["vif"]
    by_attribute = run(spans, series, drivers="attr:depth,input_tokens").frames["tail"]
    assert by_metric["driver"].to_list() == ["depth", "input_tokens"]
    assert json.loads(by_attribute["drivers"][0])["depth"] in (1.0, 2.0)


def test_inputs_ask_for_what_the_parameters_name() -> None:
    queries = ANALYSIS.inputs(ANALYSIS.make_params({"drivers": "output_tokens,attr:x,metric:y,z", "by": "model,team"}))
    spans, metrics = queries["requests"], queries["metrics"]
    assert isinstance(spans, SpanQuery)
    assert isinstance(metrics, MetricQuery)
    assert {"output_tokens", "ttft_s", "model", "service"} <= set(spans.columns)
    assert spans.attributes == ("x", "z", "team")
    assert spans.not_null == ("ttft_s",)
    assert metrics.names == ("y", "z")


def test_output_length_is_a_driver_of_whole_answers_only() -> None:
    def columns(target: str) -> tuple[str, ...]:
        query = ANALYSIS.inputs(ANALYSIS.make_params({"target": target}))["requests"]
        assert isinstance(query, SpanQuery)
        return query.columns

    assert "output_tokens" in columns("e2e_s")
    assert "output_tokens" not in columns("ttft_s")
    assert "queue_s" not in columns("ttft_s")


def test_services_are_told_apart_and_labels_come_first() -> None:
    calm, busy = incident(1, range(0)), incident(4, range(118, 120))
    both = pl.concat([calm.with_columns(service=pl.lit("calm")), busy.with_columns(service=pl.lit("busy"))]).sort("ts")
    result = run(both, window=WHOLE, drivers="queue_depth", bucket="1m", resamples=20)
    assert {f.labels["service"] for f in result.findings} == {"busy"}
    for name, frame in result.frames.items():
        assert frame.columns == ["service", *(column.name for column in FRAMES[name])]
    pooled = run(both, window=WHOLE, drivers="queue_depth", by="none", resamples=20)
    assert "service" not in pooled.frames["windows"].columns


def test_the_answer_is_the_same_twice_and_the_seed_moves_only_intervals() -> None:
    spans = incident(2, range(60, 70))
    first, again, other = (
        run(spans, window=WHOLE, drivers="queue_depth", seed=seed, resamples=30) for seed in (0, 0, 1)
    )
    assert codec.to_json(first) == codec.to_json(again)
    assert slopes(first) == slopes(other)
    assert first.frames["coefficients"]["ci_low"].to_list() != other.frames["coefficients"]["ci_low"].to_list()


def test_residuals_are_thinned_but_keep_their_extremes() -> None:
    result = run(incident(2, range(60, 70)), window=WHOLE, drivers="queue_depth", resamples=20)
    kept = result.frames["residuals"]
    assert kept.height <= 2000
    worst = result.frames["tail"].row(0, named=True)
    assert kept["residual"].max() >= worst["value"] - worst["fitted"]


def test_few_windows_in_a_row_are_low_confidence() -> None:
    rng = np.random.default_rng(0)
    drift = np.linspace(0, 5, 12_000)
    spans = requests(
        {"ts": times(np.arange(12_000)), "ttft_s": drift + rng.random(12_000) + np.sin(drift), "depth": drift}
    )
    result = run(spans, drivers="depth", resamples=50)
    assert "low confidence" in result.frames["fit"]["verdict"][0]
    assert result.frames["fit"]["n_eff"][0] < 30


def test_a_change_after_three_quarters_is_not_calibrated() -> None:
    rng = np.random.default_rng(0)
    latency = rng.lognormal(0, 0.2, 12_000) * np.where(np.arange(12_000) < 9_000, 1.0, 2.0)
    spans = requests({"ts": times(np.arange(12_000)), "ttft_s": latency, "depth": rng.random(12_000)})
    result = run(spans, drivers="depth", resamples=50)
    assert "not calibrated" in words(result)
    assert result.frames["fit"]["coverage"][0] < 0.9


def test_a_bad_bucket_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="duration"):
        run(incident(1, range(0), 20), window=WHOLE, bucket="soon")


def test_the_latest_window_counts_only_when_it_has_requests() -> None:
    later = Window(WHOLE.start, WHOLE.end + timedelta(minutes=10))
    result = run(incident(4, range(110, 120)), window=later, drivers="queue_depth", bucket="1m", resamples=20)
    assert all(f.until is not None for f in result.findings)
    assert result.samples["p99_baseline_ratio"]["value"].to_list() == [None]
