"""Analysis `tiers` on bills: what is left out, what is counted together, price changes, and typed-in points."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from analytics.result import Result, Status
from analytics.tiers import ANALYSIS, PRICE_CHANGED, inputs
from analytics.tiers.schedule import Schedule, Tier, parse_schedule
from infractl.main import cli
from store.errors import UsageError
from store.query import CostQuery
from store.window import Window

WINDOW = Window(datetime(2026, 5, 20, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
LIST = parse_schedule(("0:1.20", "50:0.95", "200:0.78"))
DEARER = Schedule("graduated", tuple(Tier(t.from_q, t.unit_price * Decimal("1.1")) for t in LIST.tiers))
TYPES: dict[str, Any] = {
    "bucket": pl.Datetime("us"), "cost": pl.Decimal(38, 18), "effective": pl.Decimal(38, 18), "quantity": pl.Float64,
    "requests": pl.Int64, "lines": pl.Int64, "span_s": pl.Float64,
}  # fmt: skip
TEXTS = (
    "account",
    "provider",
    "sku",
    "model",
    "tokens_kind",
    "cost_service",
    "unit",
    "billing_period",
    "currency",
    "category",
)


def line(day: datetime, quantity: float | None, cost: Decimal | None, **more: Any) -> dict[str, Any]:
    """One row of a CostQuery."""
    given = {"account": "a", "sku": "GB-OUT", "cost_service": "net", "unit": "GB", "currency": "USD",
             "category": "Usage"}  # fmt: skip
    return {**dict.fromkeys(TEXTS), **given, "bucket": day, "quantity": quantity, "cost": cost, "lines": 1, **more}


def bill(months: Sequence[tuple[int, Schedule]], **more: Any) -> list[dict[str, Any]]:
    """Daily lines of months, 11 units a day, each month rounded so far to the cent."""
    rows = []
    for month, schedule in months:
        so_far, charged = Decimal(0), Decimal(0)
        for day in range(28):
            so_far += Decimal("11.3") + day % 3
            cost = schedule.cost(so_far).quantize(Decimal("0.01")) - charged
            charged += cost
            rows.append(line(datetime(2026, month, day + 1), float(Decimal("11.3") + day % 3), cost, **more))
    return rows


def answer(rows: list[dict[str, Any]], **params: Any) -> Result:
    frame = pl.DataFrame(rows, schema=dict.fromkeys(TEXTS, pl.String()) | TYPES)
    return ANALYSIS.run({"costs": frame}, ANALYSIS.make_params(params), WINDOW)


def test_it_asks_for_days_by_item_and_billing_period() -> None:
    asked = inputs(ANALYSIS.make_params({"by": "account,tenant"}))["costs"]
    assert isinstance(asked, CostQuery)
    assert asked.step_s == 86_400
    assert {"account", "tenant", "sku", "unit", "billing_period"} <= set(asked.by)
    assert inputs(ANALYSIS.make_params({"points": "1:2"})) == {}


def test_daily_lines_give_the_schedule_of_the_month_so_far() -> None:
    result = answer(bill([(6, LIST), (7, LIST)]))
    model = result.frames["model"].row(0, named=True)
    assert (model["model"], model["rests_on"], model["months"]) == ("graduated", "cumulative", 2)
    tiers = result.frames["tiers"]
    assert tiers["unit_price"].to_list() == [Decimal("1.2"), Decimal("0.95"), Decimal("0.78")]
    assert tiers["from_q"].to_list() == [0, 50, 200]
    assert result.findings == ()
    assert result.samples["price_change_ratio"]["value"].to_list() == [0.0]


def test_credits_taxes_and_lines_without_a_quantity_are_left_out_and_said() -> None:
    more = [
        line(datetime(2026, 6, 3), 5.0, Decimal(-7), category="Credit"),
        line(datetime(2026, 6, 4), 5.0, Decimal(2), category="Tax"),
        line(datetime(2026, 6, 5), None, Decimal(2)),
    ]
    result = answer([*bill([(6, LIST), (7, LIST)]), *more])
    assert result.frames["model"]["model"].to_list() == ["graduated"]
    assert "2 lines that are no usage (credits, taxes, purchases, ...) are left out" in result.notes
    assert "1 lines without a quantity or a cost are left out" in result.notes


def test_a_month_that_the_window_cuts_is_left_out() -> None:
    result = answer([*bill([(5, DEARER)]), *bill([(6, LIST), (7, LIST)])])
    assert result.frames["model"]["months"].to_list() == [2]
    assert any("began before the window" in note for note in result.notes)


def test_units_currencies_and_accounts_are_apart() -> None:
    rows = [*bill([(6, LIST)]), *bill([(6, LIST)], unit="TB"), *bill([(6, LIST)], currency="EUR"),
            *bill([(6, LIST)], account="b")]  # fmt: skip
    assert answer(rows).frames["model"].height == 4
    together = answer(bill([(6, LIST)], account="b") + bill([(6, LIST)]), by="none").frames["model"]
    assert together.height == 1


def test_a_price_that_changed_is_found_with_its_day_and_what_it_should_have_cost() -> None:
    result = answer(bill([(8, LIST), (9, LIST), (10, LIST), (11, DEARER)]))
    finding = result.findings[0]
    assert finding.trigger == PRICE_CHANGED.name
    assert finding.until is None
    assert finding.since == datetime(2026, 11, 1, tzinfo=UTC)
    assert "GB-OUT (a) costs 10.0% more since 2026-11-01" in finding.summary
    assert result.samples["price_change_ratio"]["value"][0] == pytest.approx(0.1, abs=0.003)
    assert result.frames["changes"]["ratio"][0] == pytest.approx(0.1, abs=1e-4)
    model = result.frames["model"].row(0, named=True)
    assert (model["model"], model["months"]) == ("graduated", 1)


def test_a_change_of_an_earlier_month_is_past() -> None:
    result = answer(bill([(8, LIST), (9, DEARER), (10, DEARER)]))
    assert [finding.until for finding in result.findings] == [datetime(2026, 10, 1, tzinfo=UTC)]
    assert result.samples["price_change_ratio"]["value"].to_list() == [0.0]
    assert result.frames["tiers"]["unit_price"][0] == Decimal("1.32")


def test_the_first_of_the_month_is_no_change_of_price() -> None:
    assert answer(bill([(month, LIST) for month in range(6, 12)])).findings == ()


def daily(prices: Sequence[tuple[datetime, int, str]]) -> list[dict[str, Any]]:
    """Lines of 10 units a day: first day, number of days, unit price."""
    return [
        line(first + timedelta(days=k), 10.0, 10 * Decimal(price)) for first, days, price in prices for k in range(days)
    ]


def test_a_price_that_rises_within_a_month_is_no_tier() -> None:
    """Quantities only grow within a month, so a price that changed in it looks like a tier."""
    result = answer(
        daily([(datetime(2026, 10, 20), 12, "4"), (datetime(2026, 11, 1), 18, "4"), (datetime(2026, 11, 19), 9, "5")])
    )
    assert result.frames["model"]["model"].to_list() == ["one price"]
    assert "until 2026-11-19, when units began to cost more" in result.frames["model"]["reason"][0]
    finding = result.findings[0]
    assert (finding.since, finding.until) == (datetime(2026, 11, 19, tzinfo=UTC), None)
    assert "so that it may be a dearer tier" in finding.summary
    assert result.samples["price_change_ratio"]["value"][0] == pytest.approx(90 / 360, rel=1e-3)


def test_a_price_that_falls_within_a_month_may_be_a_tier_until_the_next_one_confirms_it() -> None:
    once = answer(daily([(datetime(2026, 10, 1), 15, "4"), (datetime(2026, 10, 16), 15, "3")]))
    assert once.frames["model"]["model"].to_list() == ["unknown"]
    assert once.frames["model"]["reason"][0].startswith("graduated prices, or prices that changed on 2026-10-16")
    assert once.frames["tiers"]["verdict"][1] == "a price that changed on 2026-10-16 would look the same"
    assert once.findings == ()
    again = answer(
        daily([(datetime(2026, 10, 1), 15, "4"), (datetime(2026, 10, 16), 15, "3"), (datetime(2026, 11, 1), 5, "4")])
    )
    assert again.frames["model"]["model"].to_list() == ["graduated"]
    assert again.frames["tiers"]["from_identified"].to_list() == [True, True]


def test_a_free_allowance_that_is_used_up_for_the_first_time_is_no_finding() -> None:
    assert answer(daily([(datetime(2026, 11, 1), 10, "0"), (datetime(2026, 11, 11), 15, "3")])).findings == ()


def test_growing_months_with_a_new_price_are_no_volume_tiers() -> None:
    rows = [
        line(datetime(2026, month, 1), 100.0 * k, Decimal(100 * k) * Decimal("2" if k < 5 else "1.5"))
        for k, month in enumerate(range(6, 12), start=1)
    ]
    found = answer(rows).frames["model"].row(0, named=True)
    assert found["model"] == "unknown"
    assert "or prices that changed on 2026-10-01" in found["reason"]


def test_providers_that_name_an_item_alike_are_apart() -> None:
    rows = [*bill([(6, LIST), (7, LIST)], provider="AWS"), *bill([(6, DEARER), (7, DEARER)], provider="GCP")]
    assert answer(rows).frames["model"]["provider"].sort().to_list() == ["AWS", "GCP"]


def test_small_money_is_no_finding() -> None:
    rows = bill([(8, LIST), (9, LIST), (10, DEARER)])
    assert answer(rows, least_impact="1000").findings == ()
    assert answer(rows, least_impact="1000").samples["price_change_ratio"]["value"].to_list() == [0.0]


def test_costs_without_an_order_are_unknown_and_raise_no_alarm() -> None:
    rows = [line(datetime(2026, 6, 1) + timedelta(days=k), 10.0, Decimal(5 + 7 * k % 11) / 10 * 10) for k in range(150)]
    result = answer(rows)
    assert result.frames["model"]["model"].to_list() == ["unknown"]
    assert result.findings == ()
    assert result.samples["price_change_ratio"].is_empty()


def test_yen_are_whole() -> None:
    yen = [line(datetime(2026, 6, k + 1), 10.0, Decimal(round(12.34 * 10)), currency="JPY") for k in range(20)]
    row = answer(yen).frames["tiers"].row(0, named=True)
    assert (row["low"], row["high"]) == pytest.approx((12.25, 12.35))


def test_typed_points_need_no_bill_and_a_price_list_is_checked() -> None:
    given = {"points": "30:36.0,80:103.5,250:249.0", "schedule": "0:1.20,50:0.95,200:0.78"}
    result = ANALYSIS.run({}, ANALYSIS.make_params(given), WINDOW)
    assert result.frames["model"]["model"].to_list() == ["unknown"]
    assert result.frames["check"]["verdict"].to_list() == ["both", "neither", "neither"]
    assert result.frames["check"]["graduated"].to_list() == [Decimal(36), Decimal("88.5"), Decimal("241.5")]
    assert any("average price rises from 1.2 at 30 to 1.294 at 80" in note for note in result.notes)


@pytest.mark.parametrize("points", ["30", "x:1", "30:", "0:5", "nan:1"])
def test_points_that_are_none_are_refused(points: str) -> None:
    with pytest.raises(UsageError):
        ANALYSIS.run({}, ANALYSIS.make_params({"points": points}), WINDOW)


def test_no_usage_is_empty() -> None:
    result = answer([line(datetime(2026, 6, 3), 5.0, Decimal(-7), category="Credit")])
    assert result.status is Status.EMPTY
    assert any("no usage" in note for note in result.notes)


def test_the_bill_with_a_month_reset_gives_its_tiers(shared: Path, tmp_path: Path) -> None:
    """Case 57: 2.0, 1.5, 1.0 from 50 and 200 units of a month; on the 1st the price is 2.0 again."""
    file = shared / "cases" / "57-graduated-tiers-and-month-reset" / "bill.csv"
    run = CliRunner().invoke
    data = ["--data", str(tmp_path / "d")]
    assert run(cli, ["import", str(file), "--as", "bill", "--label", "currency=USD", *data]).exit_code == 0
    got = run(cli, ["analyze", "tiers", "--window", "2026-11-01..2026-12-11", "--format", "json", *data])
    result = pl.read_json(got.output.encode())
    frames = result["frames"][0]
    assert frames["model"][0]["model"] == "graduated"
    assert [float(row["unit_price"]) for row in frames["tiers"]] == [2.0, 1.5, 1.0]
    assert [row["from_q"] for row in frames["tiers"]] == [0, 50, 200]
    assert all(row["identified"] and row["from_identified"] for row in frames["tiers"])
    assert result["findings"][0].is_empty()
