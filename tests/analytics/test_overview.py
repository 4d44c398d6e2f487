"""Services and targets at a glance, and the alerts on errors and dead targets."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics import codec
from analytics.catalog import load
from analytics.overview import HIGH_ERRORS, VERY_HIGH_ERRORS
from analytics.result import Result, Status
from store.window import Window
from tests.analytics.frames_of import metric, requests, times, window_of

ANALYSIS = load("overview")
HOUR = Window(datetime(2026, 11, 30, 12, tzinfo=UTC), datetime(2026, 11, 30, 13, tzinfo=UTC))
UP = metric("up", [], [])


def run(spans: pl.DataFrame, up: pl.DataFrame = UP, window: Window = HOUR, **given: Any) -> Result:
    return ANALYSIS.run({"requests": spans, "up": up}, ANALYSIS.make_params(given), window)


def traffic(bad_minutes: range = range(0), share: float = 0.5, per_minute: int = 40, **more: Any) -> pl.DataFrame:
    """An hour of requests of which a share fails with 429 in some minutes."""
    minute = np.repeat(np.arange(60), per_minute)
    number = np.tile(np.arange(per_minute), 60)
    failed = np.isin(minute, bad_minutes) & (number < share * per_minute)
    columns = {
        "ts": times(minute * 60 + number * 60 / per_minute),
        "status": np.where(failed, "error", "ok"),
        "error_code": [("HTTP_429" if f else None) for f in failed],
        "ttft_s": 0.1 + number / 1000,
        "e2e_s": [None] * minute.size,
        "input_tokens": [None] * minute.size,
        "output_tokens": [10] * minute.size,
    }
    return requests(columns | more)


def test_totals_of_a_service_are_plain_arithmetic() -> None:
    row = run(traffic(range(10, 20))).frames["services"].row(0, named=True)
    assert row["service"] == "llm"
    assert (row["requests"], row["errors"]) == (2400, 200)
    assert row["requests_per_second"] == pytest.approx(2400 / 3600)
    assert row["error_ratio"] == pytest.approx(1 / 12)
    assert row["error_ratio_low"] < row["error_ratio"] < row["error_ratio_high"]
    assert row["ttft_p50_s"] == pytest.approx(0.1195)
    assert row["output_tokens"] == 24_000
    assert row["output_tokens_per_second"] == pytest.approx(24_000 / 3600)


def test_what_no_request_says_is_missing_not_zero() -> None:
    row = run(traffic()).frames["services"].row(0, named=True)
    assert row["input_tokens"] is None
    assert row["e2e_p99_s"] is None


def test_errors_that_last_are_found_at_both_severities_with_codes_and_traces() -> None:
    result = run(traffic(range(50, 60)), bucket="1m")
    warning, critical = sorted(result.findings, key=lambda f: f.severity.rank)
    assert (warning.trigger, critical.trigger) == ("HighErrorRatio", "VeryHighErrorRatio")
    assert warning.until is critical.until is None
    assert warning.since == datetime(2026, 11, 30, 12, 50, tzinfo=UTC)
    assert "200 of 400 requests to llm failed (50%)" in warning.summary
    assert warning.evidence["error_codes"] == [{"error_code": "HTTP_429", "n": 200}]
    assert len(warning.evidence["trace_ids"]) == 5


def test_errors_that_are_over_are_one_finding_with_an_end() -> None:
    (found,) = run(traffic(range(10, 20)), bucket="1m").findings
    assert found.trigger == "VeryHighErrorRatio"
    assert found.until == datetime(2026, 11, 30, 12, 20, tzinfo=UTC)


def test_one_error_of_a_few_requests_is_no_alert() -> None:
    assert run(traffic(range(59, 60), share=0.2, per_minute=5), bucket="1m").findings == ()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 1.0])
def test_a_lasting_finding_exists_exactly_where_the_rule_would_fire(share: float) -> None:
    result = run(traffic(range(59, 60), share=share), bucket="1m")
    value = result.samples["error_low_ratio"]["value"][0]
    lasting = {f.trigger for f in result.findings if f.until is None}
    assert lasting == {t.name for t in (HIGH_ERRORS, VERY_HIGH_ERRORS) if t.holds(value)}


def test_a_pause_is_a_bucket_without_requests() -> None:
    spans = traffic().filter(
        ~pl.col("ts").is_between(datetime(2026, 11, 30, 12, 20), datetime(2026, 11, 30, 12, 24, 59))
    )
    timeline = run(spans, bucket="1m").frames["timeline"]
    quiet = timeline.filter(pl.col("requests") == 0)
    assert timeline.height == 60
    assert quiet.height == 5
    assert quiet["ttft_p99_s"].null_count() == quiet["error_ratio"].null_count() == 5


def test_a_target_that_stopped_answering_is_critical_since_its_first_failure() -> None:
    fine = metric("up", times([0, 60, 120]), [0, 1, 1], instance="a:1")
    dead = metric("up", times([0, 60, 120, 180]), [1, 0, 0, 0], instance="b:1", series_id=2)
    up = pl.concat([fine, dead])
    result = run(traffic().clear(), up, window_of(up))
    assert result.status is Status.OK
    assert result.frames["targets"]["up"].to_list() == [1.0, 0.0]
    (found,) = result.findings
    assert found.trigger == "TargetDown"
    assert found.labels == {"job": "j", "instance": "b:1"}
    assert found.since == datetime(2026, 11, 30, 12, 1, tzinfo=UTC)


def test_a_target_that_is_not_scraped_any_more_has_no_state_and_is_no_finding() -> None:
    result = run(traffic().clear(), metric("up", times([0, 60]), [1, 0], instance="gone:1"))
    assert result.frames["targets"]["up"].to_list() == [None]
    assert result.samples["target_up"]["value"].to_list() == [None]
    assert result.findings == ()


def test_groups_follow_by_and_none_makes_one() -> None:
    spans = traffic(model=["a", "b"] * 1200)
    assert run(spans, by="model").frames["services"]["model"].to_list() == ["a", "b"]
    assert run(spans, by="none").frames["services"]["requests"].to_list() == [2400]


def test_nothing_is_said_in_words_and_survives_json() -> None:
    result = run(traffic().clear())
    assert result.status is Status.EMPTY
    assert "no model requests" in result.notes[0]
    assert codec.from_json(codec.to_json(result), ANALYSIS.frames).status is Status.EMPTY
