"""The month's cost: spent to the cent, the rest with limits, by tiers where they are known, refused below a week."""

import csv
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analytics import frames
from analytics.cost.forecast import COLUMNS, rows
from analytics.cost.tiered import daily_costs, month_cost
from analytics.tiers.schedule import Schedule, parse_schedule
from tests.analytics.cost.lines import lines
from tests.analytics.cost.test_projection import WEEK, simulated

START = datetime(2026, 10, 1)


def hourly(days: int, seed: int = 0, **more: Any) -> pl.DataFrame:
    """Costs of the simulated days, evenly over their hours, in cents."""
    made = simulated(days, seed)
    hours = range(24 * days)
    return lines(
        {"bucket": START + timedelta(hours=h), "sku": "vm", "cost": f"{made[h // 24] / 24:.2f}", **more} for h in hours
    )


def forecast(made: pl.DataFrame, now: datetime, zone: str = "UTC", **more: Any) -> dict[str, Any]:
    [row] = rows(made, {"service": "chat"}, "USD", now.replace(tzinfo=UTC), zone, **more)
    return row


def test_spent_is_exact_and_the_month_is_within_its_limits() -> None:
    made = hourly(61)
    now = datetime(2026, 11, 12, 9)
    row = forecast(made.filter(pl.col("bucket") < now), now)
    month = made.filter(pl.col("bucket") >= datetime(2026, 11, 1))
    assert row["spent"] == month.filter(pl.col("bucket") < now)["cost"].sum()
    assert row["spent"] < row["low"] < row["low_80"] < row["forecast"] < row["high_80"] < row["high"]
    whole = month.filter(pl.col("bucket") < datetime(2026, 12, 1))["cost"].sum()
    assert row["low"] < whole < row["high"]
    assert abs(row["forecast"] / whole - 1) < Decimal("0.03")
    assert (row["days"], row["why"]) == (42, None)
    assert frames.build(["service"], COLUMNS, [row])["forecast"].to_list() == [row["forecast"]]


def test_the_month_is_that_of_the_report_zone() -> None:
    made = hourly(40)
    now = datetime(2026, 10, 31, 23, 30)
    assert forecast(made, now)["period_end"] == datetime(2026, 11, 1)
    row = forecast(made, now, "Europe/Berlin")
    assert (row["period_start"], row["period_end"]) == (datetime(2026, 10, 31, 23), datetime(2026, 11, 30, 23))
    first = forecast(made, datetime(2026, 11, 1))
    assert (first["period_end"], first["spent"]) == (datetime(2026, 12, 1), 0)
    assert first["forecast"] > 0


def test_below_seven_days_it_refuses_in_words() -> None:
    row = forecast(hourly(5), datetime(2026, 10, 6))
    assert (row["forecast"], row["low"], row["high"]) == (None, None, None)
    assert "5 whole days" in row["why"]
    assert row["spent"] > 0
    wide = forecast(hourly(9), datetime(2026, 10, 10))
    assert "wide: 9 days only" in wide["why"]
    assert wide["forecast"] is not None


def test_credits_and_taxes_count_once() -> None:
    usage = hourly(40)
    at = datetime(2026, 11, 5)
    once = lines(
        [
            {"bucket": at, "sku": "credit", "cost": -500, "category": "Credit"},
            {"bucket": at, "sku": "tax", "cost": 90, "category": "Tax"},
        ]
    )
    now = datetime(2026, 11, 10)
    plain, with_both = forecast(usage, now), forecast(pl.concat([usage, once]), now)
    assert with_both["forecast"] - plain["forecast"] == Decimal(-410)
    assert "(-410.00 in 95 days) are not expected again" in with_both["why"]


def test_what_ended_a_week_ago_is_not_expected() -> None:
    row = forecast(hourly(33), datetime(2026, 11, 12))
    assert row["forecast"] == row["low"] == row["high"] == row["spent"].quantize(Decimal("0.01"))
    assert row["method"] == "no usage in the last 7 days"


def test_no_lines_at_all_are_refused() -> None:
    row = forecast(lines([]), datetime(2026, 11, 12))
    assert (row["spent"], row["forecast"]) == (0, None)


def test_daily_bills_and_a_level_that_is_known_to_be_new() -> None:
    made = simulated(60, 4)
    made[35:] *= 2.0
    bill = lines({"bucket": START + timedelta(days=d), "cost": f"{cost:.2f}"} for d, cost in enumerate(made))
    now, level = datetime(2026, 11, 10), datetime(2026, 11, 5, tzinfo=UTC)
    row = forecast(bill.filter(pl.col("bucket") < now), now, restarts=[level])
    truth = float(bill.filter(pl.col("bucket") >= datetime(2026, 11, 1))["cost"].sum()) + 0.0
    expected = truth + 200 * WEEK[[(60 + i) % 7 for i in range(1)]].sum()
    assert abs(float(row["forecast"]) / expected - 1) < 0.08
    assert "since 2026-11-05" in row["method"]


def test_december_is_priced_by_tiers_and_not_by_the_last_unit_price(shared: Path) -> None:
    folder = shared / "cases" / "57-graduated-tiers-and-month-reset"
    with (folder / "bill.csv").open() as file:
        bill = lines(
            {"bucket": datetime.fromisoformat(row["day"]), "sku": "tokens", "unit": "M",
             "quantity": float(row["quantity_m"]), "cost": row["cost"]}
            for row in csv.DictReader(file)
        )  # fmt: skip
    now = datetime(2026, 12, 11)
    given = {"tokens": parse_schedule(["0:2", "50:1.5", "200:1"])}
    for tiers in (None, given):
        row = forecast(bill, now, schedules=tiers)
        assert row["spent"] == 175
        assert abs(row["forecast"] - 435) < 2
        assert row["low"] <= 435 <= row["high"]
        assert row["method"] == "quantity by price tiers of tokens"
    by_unit_price = forecast(bill, now, schedules={})
    assert by_unit_price["high"] - by_unit_price["low"] > 5 * (row["high"] - row["low"])


def test_a_month_by_its_schedule_equals_the_exact_one_and_the_next_begins_anew() -> None:
    graduated = parse_schedule(["0:2", "50:1.5", "200:1"])
    volume = Schedule("volume", graduated.tiers, fee=Decimal(3), minimum=Decimal(20))
    quantities = np.array([0.0, 1.0, 50.0, 50.5, 200.0, 200.1, 900.0])
    for schedule in (graduated, volume):
        exact = [float(schedule.cost(Decimal(repr(float(q))))) for q in quantities]
        assert np.allclose(month_cost(schedule, quantities), exact)
    days = [datetime(2026, 11, 29).date() + timedelta(days=i) for i in range(4)]
    made = daily_costs(graduated, np.full((1, 4), 10.0), days, 180.0)
    assert made.tolist() == [[15.0, 15.0, 20.0, 20.0]]
