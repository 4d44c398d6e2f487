"""Spikes, levels and trends are told apart, explained, bounded and published; what is planned or small is not told."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

from analytics.cost import ANALYSIS, CostParams
from analytics.result import Result, Severity, Status
from store.errors import UsageError
from tests.analytics.cost.asked import START, analysed, hours, noisy

DAY = 24


def drifts(result: Result) -> list[dict[str, Any]]:
    return result.frames["drifts"].to_dicts()


def told(result: Result) -> set[str]:
    return {finding.trigger for finding in result.findings}


def changed(factor: Any, days: int = 44, seed: int = 1) -> pl.DataFrame:
    """Six weeks of a service whose cost is multiplied by a factor per hour."""
    usual = noisy(days, seed)[:, 0]
    return hours({"chat": usual * factor(np.arange(usual.size)), "other": noisy(days, seed + 100)[:, 0]})


@pytest.fixture(scope="module")
def level() -> Result:
    return analysed(changed(lambda h: np.where(h >= 40 * DAY, 1.4, 1.0)))


def test_a_level_is_one_drift_with_its_size_and_start(level: Result) -> None:
    (one,) = drifts(level)
    assert (one["service"], one["kind"], one["until"]) == ("chat", "level", None)
    assert abs(one["since"] - (START + timedelta(days=40))) <= timedelta(hours=2)
    assert one["size_low"] < 0.4 < one["size_high"]
    assert one["impact_ratio"] == pytest.approx(0.4, abs=0.05)


def test_a_level_has_one_finding_that_lasts_and_a_sample_for_every_group(level: Result) -> None:
    (finding,) = level.findings
    assert (finding.trigger, finding.severity, finding.until) == ("CostDrift", Severity.WARNING, None)
    assert "same hour of week" in finding.summary
    sample = {row["service"]: row["value"] for row in level.samples["cost_drift_ratio"].to_dicts()}
    assert sample == {"chat": pytest.approx(finding.value), "other": 0.0}


def test_a_level_that_lasts_for_a_week_is_the_usual_one() -> None:
    result = analysed(changed(lambda h: np.where(h >= 30 * DAY, 1.4, 1.0)))
    (one,) = drifts(result)
    assert one["usual_since"] is not None
    assert one["until"] is None
    assert all(finding.until is not None for finding in result.findings)


def test_a_spike_is_over_within_a_day() -> None:
    result = analysed(changed(lambda h: np.where((h >= 42 * DAY + 3) & (h < 42 * DAY + 6), 2.2, 1.0)))
    (one,) = drifts(result)
    assert (one["kind"], one["until"] - one["since"]) == ("spike", timedelta(hours=3))
    assert one["peak_ratio"] == pytest.approx(2.2, rel=0.15)
    assert [(f.trigger, f.until is None) for f in result.findings] == [("CostSpike", False)]


def test_three_times_the_usual_cost_calls_a_person() -> None:
    result = analysed(changed(lambda h: np.where(h >= 44 * DAY - 2, 3.6, 1.0)))
    assert told(result) == {"CostP0", "CostSpike"}
    assert result.worst is Severity.CRITICAL


def test_a_trend_goes_on_rising() -> None:
    result = analysed(changed(lambda h: 1.4 ** (np.maximum(h - 34 * DAY, 0) / 168)))
    rising = [one for one in drifts(result) if one["impact"] > 0]
    assert {one["kind"] for one in rising} == {"trend"}
    assert told(result) == {"CostDrift"}


def test_what_stops_is_told_as_information() -> None:
    result = analysed(changed(lambda h: np.where(h >= 41 * DAY, 0.0, 1.0)))
    (one,) = drifts(result)
    assert one["kind"] == "stopped"
    assert told(result) == {"SpendStopped"}


def test_a_fall_is_a_drift_and_no_alert() -> None:
    result = analysed(changed(lambda h: np.where(h >= 40 * DAY, 0.6, 1.0)))
    (one,) = drifts(result)
    assert (one["kind"], one["impact"] < 0, result.findings) == ("level", True, ())


def test_a_service_that_appears_is_new_spend_without_a_percentage() -> None:
    late = [None] * (40 * DAY) + [3.0] * (4 * DAY)
    result = analysed(hours({"old": noisy(44)[:, 0], "new": late}))
    (one,) = drifts(result)
    assert (one["service"], one["kind"], one["impact_ratio"], one["expected"]) == ("new", "new", None, 0.0)
    assert told(result) == {"NewSpend"}


def test_a_planned_change_is_marked_and_does_not_alert() -> None:
    lines = changed(lambda h: np.where(h >= 40 * DAY, 1.4, 1.0))
    begins = START + timedelta(days=39, hours=20)
    planned = f'{begins:%Y-%m-%dT%H:%M}Z..{begins + timedelta(days=1):%Y-%m-%dT%H:%M}Z service=chat "bigger model"'
    result = analysed(lines, changes=[planned])
    assert [one["planned"] for one in drifts(result)] == ["bigger model"]
    assert result.findings == ()
    assert result.samples["cost_drift_ratio"]["value"].max() == 0
    assert any("bigger model: no alert" in note for note in result.notes)


def test_small_drifts_are_left_out_in_money_and_in_percent() -> None:
    cheap = hours({"chat": noisy(44, 1, level=0.001)[:, 0] * np.where(np.arange(44 * DAY) >= 40 * DAY, 2.0, 1.0)})
    assert drifts(analysed(cheap)) == []
    dear = changed(lambda h: np.where(h >= 40 * DAY, 1.3, 1.0))
    assert drifts(analysed(dear, least_percent=50)) == []
    assert len(drifts(analysed(dear, least_percent=20))) == 1


def test_what_an_hour_is_expected_to_cost_does_not_depend_on_the_future() -> None:
    lines = changed(lambda h: np.where(h >= 30 * DAY, 1.5, 1.0), days=36)
    cut = lines.filter(pl.col("bucket") < START + timedelta(days=32))
    bands = ["service", "bucket", "expected", "low", "high", "score"]
    short = analysed(cut).frames["hours"].select(bands)
    long = analysed(lines).frames["hours"].select(bands).join(short, on=["service", "bucket"], how="semi")
    assert short.sort("service", "bucket").equals(long.sort("service", "bucket"))


def test_hours_whose_lines_are_still_coming_in_are_not_judged() -> None:
    lines = pl.concat([changed(lambda h: 1.0 + 0 * h).with_columns(sku=pl.lit(str(i))) for i in range(3)])
    late = START + timedelta(days=43, hours=20)
    lines = lines.filter((pl.col("bucket") < late) | (pl.col("sku") == "0"))
    result = analysed(lines)
    assert drifts(result) == []
    assert any("newest 4 hours" in note for note in result.notes)
    assert result.frames["hours"].filter(pl.col("bucket") >= late)["expected"].null_count() == 8


def test_daily_lines_are_judged_by_the_day() -> None:
    daily = noisy(42).reshape(42, 24).sum(axis=1) * np.where(np.arange(42) >= 38, 1.4, 1.0)
    result = analysed(hours({"chat": daily}, grain="day"))
    (one,) = [one for one in drifts(result) if one["impact"] > 0]
    assert (one["basis"], one["since"], one["kind"]) == ("billed daily", START + timedelta(days=38), "level")
    assert one["compared_with"] == "same day of week"


@pytest.mark.parametrize(("zone", "offset_h"), [("America/New_York", -4), ("Europe/Berlin", 2)])
def test_days_of_a_bill_are_days_of_the_report_zone(zone: str, offset_h: int) -> None:
    daily = noisy(18).reshape(18, 24).sum(axis=1) * np.where(np.arange(18) >= 16, 2.0, 1.0)
    lines = hours({"chat": daily}, grain="day").with_columns(
        sku=pl.lit("gpu"), unit=pl.lit("Hours"), quantity=pl.col("cost").cast(pl.Float64)
    )
    result = analysed(lines, zone=zone)
    (one,) = [one for one in drifts(result) if one["impact"] > 0]
    days = result.frames["days"]
    assert days.filter(days["day"] == one["since"])["cost"].to_list() == lines["cost"].to_list()[16:17]
    assert one["since"] == START + timedelta(days=16) - timedelta(hours=offset_h)
    assert "volume" in one["explanation"]


def test_monthly_lines_are_in_the_totals_and_not_judged() -> None:
    monthly = hours({"support": [500.0]}, grain="month")
    result = analysed(pl.concat([hours({"chat": noisy(30)[:, 0]}), monthly]))
    assert result.frames["totals"].filter(pl.col("basis") == "billed monthly")["cost"].to_list() == [Decimal(500)]
    assert any("billed for months" in note for note in result.notes)
    assert set(result.frames["hours"]["service"]) == {"chat"}


def test_the_explanation_of_a_drift_adds_up_to_its_change() -> None:
    lines = changed(lambda h: np.where(h >= 41 * DAY, 1.5, 1.0)).with_columns(
        sku=pl.lit("gpu"), unit=pl.lit("Hours"), quantity=pl.col("cost").cast(pl.Float64)
    )
    result = analysed(lines)
    rows = result.frames["explained"].to_dicts()
    assert rows
    for row in rows:
        assert row["price"] + row["volume"] + row["mix"] == row["total"] == row["after"] - row["before"]
    assert drifts(result)[0]["explanation"]


def test_no_number_is_infinite_whatever_the_costs() -> None:
    odd = {"zero": [0.0] * 400, "flat": [2.5] * 400, "one": [1e9] + [0.0] * 399, "negative": [-1.0] * 400}
    result = analysed(hours(odd))
    for frame in result.frames.values():
        for name, kind in frame.schema.items():
            assert not kind.is_float() or frame[name].drop_nulls().is_finite().all(), name


def test_years_of_many_services_are_bounded_and_say_so() -> None:
    result = analysed(hours({f"s{i}": noisy(44, i)[:, 0] for i in range(8)}))
    assert result.frames["hours"].height <= 6000
    assert any(note.startswith("hours: the newest 7 days") for note in result.notes)


def test_lines_without_a_cost_are_said_not_to_count() -> None:
    lines = hours({"chat": noisy(3)[:, 0]}).with_columns(cost=pl.lit(None, pl.Decimal(38, 18)))
    result = analysed(lines)
    assert result.frames["totals"]["cost"].to_list() == [None]
    assert any("state no cost" in note for note in result.notes)


def test_without_lines_it_is_empty_and_says_how_to_get_some() -> None:
    result = analysed(hours({}))
    assert result.status is Status.EMPTY
    assert "import a bill" in result.notes[0]


def test_a_kind_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(UsageError, match="kind 'database'"):
        analysed(hours({"chat": noisy(3)[:, 0]}), method="rolling", kinds="database")


def test_requests_are_asked_for_unless_the_filter_is_about_bills_alone() -> None:
    assert "requests" in ANALYSIS.inputs(CostParams(where=(("region", "eu"),)))
    assert set(ANALYSIS.inputs(CostParams(where=(("sku", "x"),)))) == {"lines"}


def test_a_label_that_is_called_like_a_column_of_the_answer_is_refused() -> None:
    with pytest.raises(UsageError, match="grouped by kind"):
        ANALYSIS.inputs(CostParams(by=("kind",)))


def test_more_groups_than_memory_holds_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analytics.cost.grid.MOST_CELLS", 72 * 2)
    result = analysed(hours({"small": [1.0] * 72, "large": [9.0] * 72, "larger": [10.0] * 72}))
    assert set(result.frames["hours"]["service"]) == {"large", "larger"}
    assert set(result.frames["totals"]["service"]) == {"small", "large", "larger"}
    assert any(note.startswith("1 groups of the least cost") for note in result.notes)


def test_after_a_planned_change_of_level_the_baseline_begins_anew() -> None:
    lines = changed(lambda h: np.where(h >= 38 * DAY, 1.6, 1.0))
    begins = START + timedelta(days=38)
    planned = f"{begins:%Y-%m-%d}..{begins + timedelta(hours=6):%Y-%m-%dT%H:%M}Z service=chat level"
    result = analysed(lines, changes=[planned])
    assert [finding for finding in result.findings if finding.until is None] == []
    assert {finding.trigger for finding in analysed(lines).findings} == {"CostDrift"}


def test_times_of_drifts_are_naive_utc() -> None:
    assert ANALYSIS.lookback == timedelta(days=42)
    since = drifts(analysed(changed(lambda h: np.where(h >= 40 * DAY, 1.4, 1.0)), zone="Asia/Kolkata"))[0]["since"]
    assert isinstance(since, datetime)
    assert since.tzinfo is None
