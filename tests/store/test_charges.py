"""Charge lines are added up in the database: exactly, by hour, label, currency and category, and never across them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.batch import Batch
from store.database import Database
from store.errors import UsageError
from store.query import CostQuery
from store.tables import COSTS
from store.window import Window

NOON = datetime(2026, 11, 30, 12)
DAY = Window.parse("2026-11-30..2026-12-01", NOON)
LINE = {"category": "Usage", "currency": "USD", "service": "chat", "tags": '{"team": "a", "cost.center": "7"}'}


def lines(*rows: dict[str, Any]) -> pl.DataFrame:
    """Charge lines of an hour from noon, each with what a row says otherwise."""
    made = [
        {"line_id": str(i), "ts": NOON, "end_ts": row.get("ts", NOON) + timedelta(hours=1)} | LINE | row
        for i, row in enumerate(rows)
    ]
    types = COSTS.schema()
    return pl.DataFrame(made, schema={name: types[name] for name in types if any(name in row for row in made)})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path) as made:
        yield made


def summed(database: Database, query: CostQuery, *rows: dict[str, Any]) -> pl.DataFrame:
    database.append([Batch("t", {"costs": lines(*rows)})])
    return database.read(query, DAY)


def test_lines_of_an_hour_are_one_row_to_the_last_decimal(database: Database) -> None:
    late = NOON + timedelta(minutes=59)
    found = summed(
        database,
        CostQuery(("service",)),
        {"billed_cost": Decimal("0.1"), "quantity": 2.0},
        {"billed_cost": Decimal("0.2"), "quantity": 3.0, "ts": late, "requests": 4},
    )
    row = found.row(0, named=True)
    assert found.height == 1
    assert (row["bucket"], row["cost"], row["quantity"], row["requests"], row["lines"]) == (
        NOON, Decimal("0.3"), 5.0, 4, 2,
    )  # fmt: skip
    assert found.schema["cost"] == pl.Decimal(38, 18)


def test_currencies_and_categories_are_never_added_up(database: Database) -> None:
    found = summed(
        database,
        CostQuery(),
        {"billed_cost": Decimal(3)},
        {"billed_cost": Decimal(-5), "category": "Credit"},
        {"billed_cost": Decimal(7), "currency": "EUR"},
        {"billed_cost": Decimal(9), "category": None},
    )
    assert set(found.select("currency", "category", "cost").iter_rows()) == {
        ("USD", "Usage", Decimal(3)), ("USD", "Credit", Decimal(-5)), ("EUR", "Usage", Decimal(7)),
        ("USD", None, Decimal(9)),
    }  # fmt: skip


def test_a_line_without_a_billed_cost_counts_with_its_effective_cost(database: Database) -> None:
    found = summed(
        database,
        CostQuery(),
        {"billed_cost": None, "effective_cost": Decimal(2)},
        {"billed_cost": Decimal(1), "effective_cost": Decimal(5)},
    )
    assert found.select("cost", "effective").row(0) == (Decimal(3), Decimal(7))


def test_what_has_no_cost_is_null_and_not_zero(database: Database) -> None:
    found = summed(database, CostQuery(), {"billed_cost": None, "quantity": 12.0})
    assert found.select("cost", "quantity").row(0) == (None, 12.0)


def test_a_label_that_is_no_column_is_read_from_the_tags(database: Database) -> None:
    found = summed(database, CostQuery(("team", "cost.center", "nobody")), {"billed_cost": Decimal(1)})
    assert found.select("team", "cost.center", "nobody").row(0) == ("a", "7", None)


def test_where_compares_columns_and_tags(database: Database) -> None:
    rows = ({"billed_cost": Decimal(1)}, {"billed_cost": Decimal(2), "tags": '{"team": "b"}'})
    assert summed(database, CostQuery(where=(("team", "b"), ("service", "chat"))), *rows)["cost"].to_list() == [2]


def test_a_label_may_be_currency_or_category_and_stands_once(database: Database) -> None:
    found = summed(database, CostQuery(("category", "currency", "service")), {"billed_cost": Decimal(1)})
    assert found.columns[:4] == ["bucket", "category", "currency", "service"]
    assert found.columns.count("currency") == 1


def test_a_label_that_is_named_like_a_sum_is_refused(database: Database) -> None:
    with pytest.raises(UsageError, match="grouped by quantity"):
        database.read(CostQuery(("quantity",)), DAY)


def test_the_longest_charge_period_says_whether_lines_are_hours_or_days(database: Database) -> None:
    found = summed(
        database,
        CostQuery(("service",)),
        {"billed_cost": Decimal(1)},
        {"billed_cost": Decimal(1), "service": "batch", "end_ts": NOON + timedelta(days=1)},
        {"billed_cost": Decimal(1), "service": "odd", "end_ts": None},
    )
    assert dict(found.select("service", "span_s").iter_rows()) == {"chat": 3600.0, "batch": 86400.0, "odd": None}
    assert dict(found.select("service", "grain").iter_rows()) == {"chat": "hour", "batch": "day", "odd": None}


def test_hours_days_and_months_of_one_label_stay_apart(database: Database) -> None:
    spans = (1, 23, 24, 25, 24 * 31)
    rows = ({"billed_cost": Decimal(1), "end_ts": NOON + timedelta(hours=span)} for span in spans)
    found = summed(database, CostQuery(("service",)), *rows)
    assert dict(found.select("grain", "lines").iter_rows()) == {"hour": 1, "day": 3, "month": 1}


def test_buckets_of_a_day_start_at_midnight_utc(database: Database) -> None:
    assert summed(database, CostQuery(step_s=86400), {"billed_cost": Decimal(1)})["bucket"][0] == datetime(2026, 11, 30)


def test_lines_outside_the_window_do_not_count_and_none_are_no_rows(database: Database) -> None:
    day = timedelta(days=1)
    found = summed(database, CostQuery(("service",)), {"billed_cost": Decimal(1), "ts": NOON + day})
    assert found.height == 0
    assert found.schema["service"] == pl.String


def test_the_newest_charge_is_the_newest_row_of_a_store_with_bills_alone(database: Database) -> None:
    assert database.newest() is None
    database.append([Batch("t", {"costs": lines({"billed_cost": Decimal(1)})})])
    assert database.newest() == (NOON + timedelta(hours=1)).replace(tzinfo=UTC)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.decimals("-1e9", "1e9", places=18), min_size=1, max_size=20))
def test_sums_are_those_of_exact_arithmetic(tmp_path_factory: pytest.TempPathFactory, amounts: list[Decimal]) -> None:
    with Database(tmp_path_factory.mktemp("d")) as database:
        hours = [{"billed_cost": a, "ts": NOON + timedelta(hours=i % 3)} for i, a in enumerate(amounts)]
        found = summed(database, CostQuery(), *hours)
    assert found["cost"].to_list() == [sum(amounts[i::3], Decimal(0)) for i in range(min(3, len(amounts)))]
