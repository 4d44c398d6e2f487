"""The cases of cost: what must alert does, once, and what must not does not."""

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from analytics.result import Finding, Result, Severity
from tests.analytics.cost.asked import imported

CASES = "cases"


def rises(result: Result) -> list[datetime]:
    """Starts of the drifts upwards."""
    frame = result.frames["drifts"]
    return sorted(frame.filter(frame["impact"] > 0)["since"].to_list())


def alerts(result: Result) -> list[Finding]:
    """Findings with one of each drift: a spike of 300 % breaks two bounds."""
    seen: dict[datetime, Finding] = {}
    for finding in result.findings:
        seen.setdefault(finding.since, finding)
    return list(seen.values())


def test_credits_and_refunds_hide_no_spike_and_are_totalled_beside_usage(shared: Path) -> None:
    result = imported(shared / CASES / "43-credits-and-refunds" / "focus.csv", kind=None, by="none")
    start = datetime(2026, 11, 16)
    assert rises(result) == [start + timedelta(hours=170)]
    totals = {row["category"]: row for row in result.frames["totals"].iter_rows(named=True)}
    assert totals["Usage"]["cost"] == Decimal("1748.64")
    assert {row["net"] for row in totals.values()} == {Decimal("93.14")}
    high = result.frames["hours"].filter(result.frames["hours"]["bucket"] == start + timedelta(hours=171))["high"][0]
    assert high == pytest.approx(11, rel=0.15)


@pytest.mark.parametrize(("file", "hours"), [("flat", [170]), ("wake", [168]), ("new", [])])
def test_flat_costs_new_services_and_new_spend(shared: Path, file: str, hours: list[int]) -> None:
    result = imported(shared / CASES / "50-zero-sigma-and-new-service" / f"{file}.csv", by="service")
    start = datetime(2026, 11, 16)
    assert [finding.since.replace(tzinfo=None) for finding in alerts(result)] == [
        start + timedelta(hours=hour) for hour in hours
    ]
    if file == "new":
        assert any("insufficient history (5 h)" in note for note in result.notes)
    if file == "wake":
        assert result.findings[0].trigger == "NewSpend"
        assert result.findings[0].severity is Severity.INFO
        assert result.frames["drifts"]["impact_ratio"].to_list() == [None]
        assert "n/a" in result.findings[0].summary


def test_a_weekly_job_is_usual_and_does_not_hide_a_spike_midweek(shared: Path) -> None:
    result = imported(shared / CASES / "51-weekly-job-and-masked-spike" / "costs.csv", by="service")
    assert rises(result) == [datetime(2026, 10, 26) + timedelta(hours=734)]
    assert result.frames["drifts"]["compared_with"].to_list() == ["same hour of week"]
    assert "same hour of week" in result.findings[0].summary


def test_an_old_spike_does_not_hide_a_lasting_rise_and_each_is_told_once(shared: Path) -> None:
    result = imported(shared / CASES / "52-one-old-spike-inflates-sigma" / "costs.csv", by="service")
    start = datetime(2026, 11, 16)
    assert rises(result) == [start + timedelta(hours=100), start + timedelta(hours=168)]
    lasting = {finding.since.replace(tzinfo=None) for finding in result.findings if finding.until is None}
    assert lasting == {start + timedelta(hours=168)}
    assert len(alerts(result)) == 2


@pytest.mark.parametrize(
    ("file", "zone", "hours"),
    [("berlin-2026-10-25", "Europe/Berlin", 25), ("berlin-2026-03-29", "Europe/Berlin", 23),
     ("newyork-2026-11-01", "America/New_York", 25)],
)  # fmt: skip
def test_days_on_which_a_clock_changes_have_their_hours(shared: Path, file: str, zone: str, hours: int) -> None:
    result = imported(shared / CASES / "53-dst-23-and-25-hour-days" / f"{file}.csv", by="service", zone=zone)
    assert result.findings == ()
    assert result.frames["drifts"].height == 0
    assert result.frames["hours"].height == hours
    assert set(result.frames["hours"]["cost"]) == {Decimal(10)}
    assert result.frames["days"].select("cost", "hours", "per_hour").rows() == [(Decimal(10 * hours), hours, 10.0)]


def test_currencies_have_totals_of_their_own(shared: Path) -> None:
    result = imported(shared / CASES / "55-mixed-currencies" / "focus.csv", kind=None, by="none")
    totals = result.frames["totals"]
    assert dict(totals.select("currency", "cost").iter_rows()) == {
        "USD": Decimal(100), "EUR": Decimal(50), "JPY": Decimal(15000),
    }  # fmt: skip
    assert any("never added up" in note for note in result.notes)


def test_prices_that_start_again_with_the_month_are_no_drift(shared: Path) -> None:
    result = imported(shared / CASES / "57-graduated-tiers-and-month-reset" / "bill.csv", by="none")
    assert result.findings == ()
    assert rises(result) == []
    assert all(sample["value"].max() == 0 for name, sample in result.samples.items() if name.startswith("cost_"))
    assert any("first tier" in note for note in result.notes)


@pytest.mark.parametrize(("empty", "count"), [("skip", 8), ("zero", 10), ("auto", 8)])
def test_the_plain_rule_fires_on_the_hours_of_a_real_bill_that_it_should(shared: Path, empty: str, count: int) -> None:
    path = shared / "data/cloud_bills/aws_cur_anonymous_export.csv"
    result = imported(path, kind=None, by="none", method="rolling", empty=empty)
    hours = result.frames["hours"].filter(result.frames["hours"]["alert"])
    assert hours.height == count
    assert hours["bucket"].min() == datetime(2023, 11, 4, 19)
    first = hours.sort("bucket").row(0, named=True)
    assert float(first["cost"]) == pytest.approx(0.10098)
    if empty != "zero":
        assert first["expected"] == pytest.approx(0.006646, abs=1e-6)
    assert any(("count as 0" if empty == "zero" else "are left out") in note for note in result.notes)


def test_totals_of_a_real_focus_bill_are_exact(shared: Path) -> None:
    result = imported(shared / "data/focus_1_0/focus_sample.csv", kind=None, by="cost_service")
    totals = result.frames["totals"]
    assert round(sum(totals["cost"], Decimal(0)), 6) == Decimal("20.520227")
    compute = totals.filter(totals["cost_service"] == "Amazon Elastic Compute Cloud")
    assert round(sum(compute["cost"], Decimal(0)), 6) == Decimal("16.041693")
