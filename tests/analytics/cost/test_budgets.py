"""Budgets: read from a line, held against their lines, and what is said when they will not last."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from analytics import frames
from analytics.cost.budgets import COLUMNS, SIGNALS, TRIGGERS, Budget, Watched, parse, queries, watched
from analytics.cost.changes import parse as change
from analytics.cost.periods import period
from store.errors import UsageError
from store.query import CostQuery
from store.window import Window
from store.zone import zone
from tests.analytics.cost.lines import lines
from tests.analytics.cost.test_projection import simulated

START, NOW = datetime(2026, 9, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)
WINDOW = Window(START, NOW)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("llm: 5000 USD per month", Budget("llm", Decimal(5000), "USD")),
        (
            "llm: 1999.99 eur per quarter where service=chat and env=prod by tenant and region alert 50%",
            Budget(
                "llm", Decimal("1999.99"), "EUR", "quarter", (("service", "chat"), ("env", "prod")),
                ("tenant", "region"), 0.5,
            ),
        ),
        ("all: 1_000_000 JPY per year alert 1.0", Budget("all", Decimal(1000000), "JPY", "year", alert=1.0)),
    ],
)  # fmt: skip
def test_a_line_is_read_and_written_alike(text: str, budget: Budget) -> None:
    assert parse(text) == budget
    assert parse(budget.text()) == budget


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("llm 5000", "cannot be read"),
        ("llm: much USD per month", "amount cannot be 'much'"),
        ("llm: -1 USD per month", "amount cannot be '-1'"),
        ("llm: NaN USD per month", "amount cannot be 'NaN'"),
        ("llm: 5 dollars per month", "currency cannot be 'dollars'"),
        ("llm: 5 USD per week", "period cannot be 'week'"),
        ("llm: 5 USD per month where chat", "where 'chat' cannot be read"),
        ("llm: 5 USD per month alert 120%", "alert cannot be '120%'"),
    ],
)
def test_what_cannot_be_read_is_said_with_a_remedy(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as told:
        parse(text)
    assert told.value.hint


def test_two_budgets_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two budgets are named 'a'"):
        queries(["a: 5 USD per month", "a: 6 USD per month"])


def test_a_budget_asks_for_its_own_lines() -> None:
    asked = queries(["llm: 5 USD per month where service=chat by tenant and model"])
    assert asked == {"budget llm": CostQuery(("tenant", "model", "sku", "tokens_kind", "unit"), (("service", "chat"),))}


def test_periods_are_of_the_calendar_of_the_report_zone() -> None:
    at = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    berlin = zone("Europe/Berlin")
    assert period("month", at, zone("UTC")) == Window(
        datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    )
    assert period("month", at, berlin).start == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert period("quarter", datetime(2026, 5, 5, tzinfo=UTC), berlin) == Window(
        datetime(2026, 3, 31, 22, tzinfo=UTC), datetime(2026, 6, 30, 22, tzinfo=UTC)
    )
    assert period("year", datetime(2026, 5, 5, tzinfo=UTC), berlin).span == timedelta(days=365)


def bill(scale: float = 1.0, **more: Any) -> pl.DataFrame:
    """About 100 a day for 62 days up to NOW, daily."""
    made = simulated(62, 0) * scale
    days = ({"bucket": START.replace(tzinfo=None) + timedelta(days=d), "cost": f"{c:.2f}"} for d, c in enumerate(made))
    return lines(days, **more)


def held(text: str, given: pl.DataFrame | None = None, **more: Any) -> Watched:
    given = bill() if given is None else given
    return watched({parse(text).input: given}, [text], more.pop("window", WINDOW), NOW, "UTC", **more)


def test_one_that_lasts_says_so_and_finds_nothing() -> None:
    found = held("all: 4000 USD per month")
    [row] = found.rows
    assert row["state"] == "lasts"
    assert row["spent"] == bill().filter(pl.col("bucket") >= datetime(2026, 11, 1))["cost"].sum()
    assert row["elapsed_share"] == pytest.approx(20 / 30)
    assert row["burn"] == pytest.approx(row["spent_share"] / row["elapsed_share"])
    assert (row["runs_out"], row["runs_out_low"]) == (None, None)
    assert found.findings == ()
    assert frames.build((), COLUMNS, found.rows).height == 1


def test_one_that_will_not_last_warns_with_the_day_it_runs_out() -> None:
    found = held("all: 2500 USD per month alert 90%")
    [row] = found.rows
    assert row["state"] == "at risk"
    assert row["runs_out_low"] <= row["runs_out"] <= row["runs_out_high"]
    assert datetime(2026, 11, 24) <= row["runs_out"] <= datetime(2026, 11, 28)
    [finding] = found.findings
    assert (finding.trigger, finding.severity) == ("BudgetAtRisk", "warning")
    assert finding.summary.startswith(
        "budget all: 2105.60 USD of 2500.00 USD per month is spent (84%), with 67% of the month over"
    )
    assert "at the end (95 %), and run out on 2026-11-24T00:00:00Z" in finding.summary


def test_one_that_is_spent_is_critical_since_the_hour_it_was() -> None:
    found = held("all: 1000 USD per month where service=chat")
    kinds = {finding.trigger: finding for finding in found.findings}
    assert set(kinds) == {"BudgetSpent", "BudgetAtRisk", "BudgetNearlySpent"}
    spent = kinds["BudgetSpent"]
    sums = bill().filter(pl.col("bucket") >= datetime(2026, 11, 1)).with_columns(pl.col("cost").cum_sum())
    first = sums.filter(pl.col("cost") > 1000)["bucket"].min()
    assert spent.since.replace(tzinfo=None) == first
    assert kinds["BudgetNearlySpent"].since < spent.since
    assert spent.evidence["where"] == {"service": "chat"}
    assert found.rows[0]["runs_out"] is None


def test_findings_exist_exactly_where_triggers_hold() -> None:
    for amount in (500, 2000, 2300, 2500, 2900, 3200, 9000):
        found = held(f"all: {amount} USD per month")
        for trigger in TRIGGERS:
            values = found.samples[trigger.signal.name]["value"]
            assert sum(map(trigger.holds, values)) == sum(f.trigger == trigger.name for f in found.findings)
    assert {signal.name for signal in SIGNALS} == set(found.samples)


def test_each_group_has_the_amount_for_itself() -> None:
    given = pl.concat([bill(tenant="a"), bill(0.2, tenant="b"), bill(0.1, tenant="c")])
    found = held("t: 1000 USD per month by tenant", given)
    assert [(row["group"], row["state"]) for row in found.rows] == [
        ("tenant=a", "spent"), ("tenant=b", "lasts"), ("tenant=c", "lasts"),
    ]  # fmt: skip
    assert {f.labels["group"] for f in found.findings} == {"tenant=a"}


def test_other_currencies_are_not_added_and_said() -> None:
    found = held("all: 4000 USD per month", pl.concat([bill(), bill(currency="EUR").select(bill().columns)]))
    assert found.rows[0]["state"] == "lasts"
    assert found.notes == ("budget all is in USD: lines in EUR are not in it",)
    nothing = held("all: 4000 CHF per month")
    assert nothing.rows == []
    assert any("no lines in CHF" in note for note in nothing.notes)


def test_a_window_that_begins_within_the_period_is_said() -> None:
    late = Window(datetime(2026, 11, 6, tzinfo=UTC), NOW)
    given = bill().filter(pl.col("bucket") >= datetime(2026, 11, 6))
    found = held("all: 4000 USD per month", given, window=late)
    assert "spent is at least what is shown; look further back (--since 28d)" in found.notes[0]
    assert found.rows[0]["why"] == "the lines begin at 2026-11-06, within the period"


def test_a_planned_level_counts_from_its_end_before_the_days_show_it() -> None:
    made = bill()
    later = pl.col("bucket") >= datetime(2026, 11, 19)
    raised = made.with_columns(pl.when(later).then(pl.col("cost") * 3).otherwise("cost").cast(made["cost"].dtype))
    plain = held("all: 9000 USD per month", raised).rows[0]
    planned = held("all: 9000 USD per month", raised, planned=[change("2026-11-18..2026-11-19 level")]).rows[0]
    expected = float(raised.filter(pl.col("bucket") >= datetime(2026, 11, 1))["cost"].sum()) + 10 * 300
    assert abs(float(planned["forecast"]) / expected - 1) < 0.1
    assert abs(float(plain["forecast"]) / expected - 1) > 0.1
    assert "since 2026-11-19" in planned["method"]


def test_too_short_a_history_gives_no_verdict_beyond_spent() -> None:
    given = bill().filter(pl.col("bucket") >= datetime(2026, 11, 17))
    found = held("all: 100 USD per month", given)
    assert found.rows[0]["state"] == "spent"
    assert found.rows[0]["forecast"] is None
    assert {f.trigger for f in found.findings} == {"BudgetSpent", "BudgetNearlySpent"}
    assert held("all: 9000 USD per month", given).rows[0]["state"] == "no forecast"
